"""What a recorded text says: JSON, a Python literal, plain text, or something that was cut off."""

import ast
import json
import math
import re
from collections.abc import Hashable, Sequence
from typing import Final, cast

import orjson

from otel_eval.integers import has_long_integer
from otel_eval.model import UNRECORDED, Json, Recorded

_NUMBER_TAIL = re.compile(r"-?\d*(\.\d*)?([eE][+-]?\d*)?$")
_MAYBE_LITERAL = re.compile(r"\s*(?:[\[({'\"]|(?:None|True|False)\s*$)")
_MAX_LITERAL = 200_000
# Escapes that no repr has, and that Python warns about.
_NO_REPR = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"abfnrtvxuUN0-7\n]")
_LITERAL_START = re.compile(r"[\[({]+\s*b?['\"\]})\d-]|[\[{(]\s*(?:None|True|False)\b")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_OPENINGS = ("{", "[", '"')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[][{}]")
_DEEPEST = 200
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.(?:0|\d*[1-9]))?(?:[eE][+-]?\d+)?")

SPACED: Final = re.compile(r"(?:[^\s,:]|[,:] (?=\S))*")
"""JSON as Python's `json.dumps` lays it out, its strings taken out."""
COMPACT: Final = re.compile(r"[^\s]*")
"""JSON as JavaScript and pydantic lay it out."""
_EITHER: Final = (SPACED, COMPACT)


class NotJson(ValueError):  # noqa: N818  # a question's answer, no failure
    """The text is no JSON document."""


def loads(text: str) -> Json:
    """The JSON value of a text, exact for integers of any size. Raises NotJson.

    What is nested deeper than any reader down the line can follow counts as text.
    """
    if len(text) > _DEEPEST and _depth(text) > _DEEPEST:
        raise NotJson(f"nested deeper than {_DEEPEST}")
    try:
        if has_long_integer(text):
            return json.loads(text)
        return orjson.loads(text)
    except (ValueError, RecursionError):
        try:
            return json.loads(text)  # NaN, Infinity and lone surrogates
        except (ValueError, RecursionError) as error:
            raise NotJson(str(error)) from error


def _depth(text: str) -> int:
    """How deep a text is nested, or more cheaply how deep it could be."""
    openings = text.count("[") + text.count("{")
    if openings <= _DEEPEST:
        return openings
    deepest = depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def value(raw: Json) -> Recorded:
    """A recorded value of unknown encoding: JSON, JSON in JSON, a Python literal, else text."""
    if not isinstance(raw, str):
        return raw
    try:
        parsed = loads(raw)
    except NotJson:
        return UNRECORDED if cut_off(raw) else literal(raw)
    return _again(parsed) if isinstance(parsed, str) else parsed


def json_value(raw: Json) -> Recorded:
    """A value that its writer always encodes as JSON; what is no JSON was text all along."""
    if not isinstance(raw, str):
        return raw
    try:
        return loads(raw)
    except NotJson:
        return UNRECORDED if cut_off(raw) else raw


def value_or_text(raw: Json, *layouts: re.Pattern[str]) -> Recorded:
    """A value whose writer leaves texts as they are and encodes all else as JSON.

    Text that reads as a JSON string was written by nobody's encoder: it is text with quotes in it.
    So is JSON in another layout than the writer's own, where `layouts` says what that is.
    """
    if not isinstance(raw, str):
        return raw
    try:
        parsed = loads(raw)
    except NotJson:
        return text_value(raw)
    return parsed if _is_as_written(parsed, raw, layouts or _EITHER) else raw


def text_value(raw: Json) -> Recorded:
    """A value that is known to be text; it may still be JSON text that was cut off."""
    if isinstance(raw, str) and raw.lstrip()[:1] in ("{", "[") and cut_off(raw):
        return UNRECORDED
    return raw


def _is_as_written(parsed: Json, raw: str, layouts: Sequence[re.Pattern[str]]) -> bool:
    """Whether an encoder would have written it like this: `1.50`, `NaN` and ` 1` are words."""
    match parsed:
        case str():
            return False
        case bool() | None:
            return raw == raw.strip()
        case int() | float():
            return math.isfinite(parsed) and _NUMBER.fullmatch(raw) is not None
    bones = _STRING.sub('""', raw)
    return any(layout.fullmatch(bones) for layout in layouts)


def literal(text: str) -> Recorded:
    """A Python literal's value, else the text; a literal that breaks off is unrecorded."""
    if not _MAYBE_LITERAL.match(text) or len(text) > _MAX_LITERAL or _NO_REPR.search(text):
        return text  # most texts are words, and the parser is slow
    try:
        parsed = plain(ast.literal_eval(text.strip()))
        if isinstance(parsed, str) and len(parsed) < len(text.strip()) - 2:
            return text  # several strings in a row, or escapes: words with quotes in them
        return parsed
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        return UNRECORDED if _breaks_off(text, error) else text


def stringified(text: str) -> Json:
    """The value that Python's `str()` made this text from, else the text."""
    try:
        readable = len(text) <= _MAX_LITERAL and not _NO_REPR.search(text)
        parsed = ast.literal_eval(text) if readable else text
        value = plain(parsed)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value if str(parsed) == text and not isinstance(parsed, str) else text


def plain(raw: object) -> Json:
    """A Python value as JSON has it: tuples and sets become lists, bytes their text."""
    match raw:
        case dict():
            return {
                key if isinstance(key, str) else str(key): plain(item) for key, item in raw.items()
            }
        case list() | tuple() | set():
            return [plain(item) for item in raw]
        case None | bool() | int() | float() | str():
            return raw
        case bytes():
            return str(raw)
    raise TypeError(f"{type(raw).__name__} is no JSON")


def frozen(value: Json) -> Hashable:
    """The value as a key: equal where the values are."""
    match value:
        case dict():
            return frozenset((key, frozen(item)) for key, item in value.items())
        case list():
            return tuple(map(frozen, value))
    return cast(Hashable, value)


def cut_off(text: str) -> bool:
    """Whether the text is JSON up to where it breaks off: a length limit was at work."""
    start = text.lstrip()
    if not start.startswith(_OPENINGS):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _at_the_end(text, error)
    except (ValueError, RecursionError):  # an integer of more digits than Python converts
        return False
    return False


def _again(parsed: str) -> Recorded:
    """JSON text inside a JSON string is decoded once more, if it holds an object or a list."""
    if not parsed.lstrip().startswith(("{", "[")):
        return parsed
    try:
        return loads(parsed)
    except NotJson:
        return UNRECORDED if cut_off(parsed) else parsed


def _at_the_end(text: str, error: json.JSONDecodeError) -> bool:
    rest = text[error.pos :].strip()
    if error.msg.startswith("Unterminated string"):
        return True
    if error.msg.startswith("Invalid \\"):
        return len(rest) < len("\\uXXXX")
    if not rest or any(word.startswith(rest) for word in _WORDS):
        return True
    return error.msg.startswith(("Expecting ',' delimiter", "Expecting value")) and bool(
        _NUMBER_TAIL.match(rest)
    )


def _breaks_off(text: str, error: BaseException) -> bool:
    if not isinstance(error, SyntaxError) or not _LITERAL_START.match(text.lstrip()):
        return False
    return "was never closed" in error.msg or "unterminated string" in error.msg
