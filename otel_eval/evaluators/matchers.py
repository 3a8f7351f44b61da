"""Matchers inside expected arguments and outputs: `{"$regex": …}` and its kin.

Expected JSON is compiled once, when the configuration is read, into a `Pattern`.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final, Protocol

import re2

from otel_eval.evaluators.matching import key
from otel_eval.model import Json


class PatternError(ValueError):
    """A matcher that cannot be used; `place` leads to it, as in `.city` or `[0].unit`."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place
        self.message = message


class _Matcher:
    """Sets the keys of matchers apart from those of values that look the same."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a value must be. Patterns with equal keys accept the same values."""

    key: Hashable
    test: Callable[[Json], bool] | None = None
    """None where no matcher is inside: then the value's own key decides."""
    absent: bool = False
    anything: bool = False
    value: Json = field(default=None, compare=False)
    """The only value accepted, where no matcher is inside."""

    @property
    def plain(self) -> bool:
        return self.test is None

    def accepts(self, value: Json) -> bool:
        return key(value) == self.key if self.test is None else self.test(value)


def compile_pattern(expected: Json, place: str = "") -> Pattern:
    """Read expected JSON; a PatternError names the place of a matcher that cannot be used."""
    if isinstance(expected, dict):
        if any(isinstance(name, str) and name.startswith("$") for name in expected):
            return _matcher(expected, place)
        return object_pattern(compile_fields(expected, place))
    if isinstance(expected, list | tuple):
        return _array([_item(each, f"{place}[{i}]") for i, each in enumerate(expected)])
    return literal(expected)


def literal(value: Json) -> Pattern:
    """The value itself, whatever it looks like."""
    return Pattern(key(value), value=value)


def compile_fields(expected: Mapping[str, Json], place: str = "") -> dict[str, Pattern]:
    """The fields of an expected object; only here does `$absent` make sense."""
    return {name: compile_pattern(value, f"{place}.{name}") for name, value in expected.items()}


def compile_args(args: Mapping[str, Json], place: str, *, remedy: str) -> dict[str, Pattern]:
    """Like `compile_fields`, but a matcher in place of all the arguments is refused.

    It would be read as an argument of that name. One that has such a name says so by `$literal`.
    """
    name, value = next(iter(args.items()), ("", None))
    if len(args) == 1 and name in _MATCHERS and not _is_literal(value):
        raise PatternError(
            place,
            f"{name} stands for the value of one argument, not for all of them ({remedy}; "
            f'for an argument called {name} write {{"{name}": {{"$literal": …}}}})',
        )
    return compile_fields(args, place)


def _is_literal(value: Json) -> bool:
    return isinstance(value, dict) and value.keys() == {"$literal"}


def object_pattern(fields: Mapping[str, Pattern]) -> Pattern:
    """An object with exactly these fields."""
    own = frozenset([(name, each.key) for name, each in fields.items()])
    if all(each.plain for each in fields.values()):
        return Pattern(own, value={name: each.value for name, each in fields.items()})
    required = {name: each for name, each in fields.items() if not each.absent}

    def test(value: Json) -> bool:
        return (
            isinstance(value, dict)
            and value.keys() == required.keys()
            and all(each.accepts(value[name]) for name, each in required.items())
        )

    return Pattern((_Matcher, own), test)


def _item(expected: Json, place: str) -> Pattern:
    item = compile_pattern(expected, place)
    if item.absent:
        raise PatternError(place, "$absent stands for a key of an object, not for an item")
    return item


def _array(items: list[Pattern]) -> Pattern:
    own = tuple([each.key for each in items])
    if all(each.plain for each in items):
        return Pattern(own, value=[each.value for each in items])

    def test(value: Json) -> bool:
        return (
            isinstance(value, list | tuple)
            and len(value) == len(items)
            and all(each.accepts(part) for each, part in zip(items, value, strict=True))
        )

    return Pattern((_Matcher, own), test)


def _matcher(expected: Mapping[str, Json], place: str) -> Pattern:
    name = next(name for name in expected if isinstance(name, str) and name.startswith("$"))
    escape = 'write {"$literal": …} around a value that has such a key itself'
    if name not in _MATCHERS:
        close = get_close_matches(name, _MATCHERS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        known = ", ".join(_MATCHERS)
        raise PatternError(place, f"unknown matcher {name} ({hint}known: {known}; {escape})")
    if len(expected) > 1:
        raise PatternError(place, f"{name} stands alone in its object ({escape})")
    try:
        made = _MATCHERS[name](expected[name])
    except ValueError as error:
        raise PatternError(place, f"{name} {error}") from None
    return made if made.plain else replace(made, key=(_Matcher, key(expected)))


def _pattern(test: Callable[[Json], bool], **marks: bool) -> Pattern:
    return Pattern(key=None, test=test, **marks)


def _any(setting: Json) -> Pattern:
    if setting is not True:
        raise ValueError("takes true")
    return _pattern(lambda _: True, anything=True)


def _absent(setting: Json) -> Pattern:
    if setting is not True:
        raise ValueError("takes true")
    return _pattern(lambda _: False, absent=True)


def _regex(setting: Json) -> Pattern:
    if not isinstance(setting, str):
        raise ValueError("takes a regular expression as text")
    search = compile_regex(setting).search
    return _pattern(lambda value: isinstance(value, str) and search(value) is not None)


class Regex(Protocol):
    """A compiled expression; `search` gives None where nothing fits."""

    def search(self, text: str, /) -> object: ...


def compile_regex(expression: str) -> Regex:
    """RE2, so that no expression can hang on any text."""
    options = re2.Options()
    options.log_errors = False
    try:
        return _Re2(re2.compile(_valid(expression), options))
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise ValueError(f"not an RE2 expression: {reason}") from None


@dataclass(frozen=True, slots=True)
class _Re2:
    """RE2 reads UTF-8, which half a surrogate pair has no form in."""

    compiled: Regex

    def search(self, text: str) -> object:
        try:
            return self.compiled.search(text)
        except UnicodeEncodeError:
            return self.compiled.search(_valid(text))


def _valid(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair that has lost the other."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _two(setting: Json, form: str) -> tuple[Json, Json]:
    if not isinstance(setting, list | tuple) or len(setting) != 2:
        raise ValueError(f"takes {form}")
    return setting[0], setting[1]


def _range(setting: Json) -> Pattern:
    form = "[lowest, highest], numbers or null for an open end"
    low, high = _two(setting, form)
    if not all(end is None or _is_number(end) for end in (low, high)):
        raise ValueError(f"takes {form}")
    lowest = -math.inf if low is None else low
    highest = math.inf if high is None else high
    if lowest > highest:
        raise ValueError("the lowest value comes first")
    return _pattern(lambda value: _is_number(value) and lowest <= value <= highest)


def _approx(setting: Json) -> Pattern:
    centre, tolerance = _two(setting, "[value, tolerance]")
    if not _is_number(centre) or not _is_number(tolerance) or tolerance < 0:
        raise ValueError("takes [value, tolerance], numbers, with a tolerance of 0 or more")

    def test(value: Json) -> bool:
        if not _is_number(value):
            return False
        try:
            away = abs(value - centre)
            # 1.1 - 1.0 is a little more than 0.1 in binary, but not to the person who wrote it.
            return bool(away <= tolerance or math.isclose(away, tolerance, rel_tol=1e-9))
        except OverflowError:
            return False  # an integer beyond all floats is not near to any

    return _pattern(test)


def _in(setting: Json) -> Pattern:
    if not isinstance(setting, list | tuple) or not setting:
        raise ValueError("takes a list of at least one value")
    choices = [_item(each, f"[{index}]") for index, each in enumerate(setting)]
    return _pattern(lambda value: any(choice.accepts(value) for choice in choices))


_TYPES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == value // 1,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _type(setting: Json) -> Pattern:
    if not isinstance(setting, str) or setting not in _TYPES:
        raise ValueError(f"takes one of {', '.join(_TYPES)}")
    return _pattern(_TYPES[setting])


_MATCHERS: Final[Mapping[str, Callable[[Json], Pattern]]] = {
    "$any": _any,
    "$regex": _regex,
    "$range": _range,
    "$approx": _approx,
    "$in": _in,
    "$type": _type,
    "$absent": _absent,
    "$literal": literal,
}
