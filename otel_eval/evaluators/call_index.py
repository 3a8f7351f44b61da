"""Which of the calls made fit an expected call, for all calls of a tool at once.

Testing each expected call against each call made is a million tests for a thousand calls. Here the
calls are indexed by their argument values, as masks: bit j stands for call j.
"""

from collections.abc import (
    Callable,
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from otel_eval.evaluators.matchers import Pattern
from otel_eval.evaluators.matching import EqualTo, key
from otel_eval.evaluators.values import arguments
from otel_eval.model import UNRECORDED, Json, Recorded, ToolCall

Path: TypeAlias = tuple[str, ...]
"""Where in the arguments: a key, then keys below it."""

MISSING: Final = object()
_SCALARS: Final = frozenset((str, int, type(None)))
FEW: Final = 3  # to test so many calls is faster than to index them


@dataclass(frozen=True)
class Expectation:
    """What the arguments of a call must be.

    `whole` is the key of the arguments as a whole, where plain equality settles it.
    """

    fields: Mapping[Path, Pattern]
    may_lack: bool = False
    may_have_more: bool = False
    whole: Hashable | None = None

    @cached_property
    def needs_arguments(self) -> bool:
        return bool(self.fields) or not self.may_have_more

    @cached_property
    def known(self) -> frozenset[str]:
        """The names that arguments may have where they may not have more."""
        return frozenset(path[0] for path, each in self.fields.items() if not each.absent)

    def accepts(self, given: Recorded) -> bool:
        if not isinstance(given, dict):
            return not self.needs_arguments or (given == "" and self.accepts({}))
        if not self._scalar_items <= given.items():
            return False
        for name in self._numbers:
            if type(given[name]) is bool:  # which Python takes for 1 or 0
                return False
        for name, equals in self._plain:
            if not equals(given.get(name, MISSING)):
                return False
        for path in self._others:
            if not self._fits(given, path):
                return False
        return self.may_have_more or given.keys() <= self.known

    @cached_property
    def _scalars(self) -> dict[str, Json]:
        """The arguments that Python itself can compare, all at once."""
        return {name: each.value for name, each in self._required if type(each.value) in _SCALARS}

    @cached_property
    def _scalar_items(self) -> ItemsView[str, Json]:
        return self._scalars.items()

    @cached_property
    def _numbers(self) -> tuple[str, ...]:
        return tuple(name for name, each in self._scalars.items() if type(each) is int)

    @cached_property
    def _plain(self) -> tuple[tuple[str, Callable[[Json], bool]], ...]:
        return tuple(
            (name, EqualTo(each.value) if type(each.value) in (dict, list) else each.accepts)
            for name, each in self._required
            if name not in self._scalars
        )

    @cached_property
    def _required(self) -> tuple[tuple[str, Pattern], ...]:
        """The arguments that must be there and equal."""
        return tuple(
            (path[0], each)
            for path, each in self.fields.items()
            if len(path) == 1 and each.plain and not self.may_lack
        )

    @cached_property
    def _others(self) -> tuple[Path, ...]:
        required = {(name,) for name, _ in self._required}
        return tuple(path for path in self.fields if path not in required)

    def differences(self, given: Recorded) -> list[str]:
        """The argument keys that do not fit."""
        if not isinstance(given, dict):
            return []
        return list(dict.fromkeys(".".join(path) for path in self._wrong(given)))

    def likeness(self, given: Recorded) -> float:
        """From 0 to 1, the more the fewer arguments would have to change."""
        return 1 / (1 + len(self.differences(given))) if isinstance(given, dict) else 0.0

    def _wrong(self, given: dict[str, Json]) -> Iterator[Path]:
        for path in self.fields:
            if not self._fits(given, path):
                yield path
        if not self.may_have_more:
            yield from ((name,) for name in given if name not in self.known)

    def _fits(self, given: Json, path: Path) -> bool:
        value = at(given, path)
        pattern = self.fields[path]
        if value is MISSING:
            return pattern.absent or self.may_lack
        return pattern.accepts(value)


def at(value: Json, path: Path) -> Json:
    """The value at a path, or MISSING."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


class ToolMasks:
    """The calls of one tool, indexed as far as expectations ask for it."""

    def __init__(self, given: Mapping[int, Recorded]) -> None:
        self._given = given
        self.unrecorded = mask_of([j for j, each in given.items() if each is UNRECORDED])
        self._fields: dict[Path, _Field] = {}
        self._tested: dict[tuple[Path, Hashable], int] = {}

    @cached_property
    def everything(self) -> int:
        return mask_of(self._given)

    @cached_property
    def _objects(self) -> Mapping[int, dict[str, Json]]:
        return {j: given for j, given in self._given.items() if isinstance(given, dict)}

    @cached_property
    def _recorded(self) -> int:
        return mask_of(self._objects)

    @cached_property
    def _whole(self) -> Mapping[Hashable, int]:
        return masks_by((key(given), j) for j, given in self._objects.items())

    @cached_property
    def _having(self) -> Mapping[Hashable, int]:
        return masks_by((name, j) for j, given in self._objects.items() for name in given)

    def fitting(self, expectation: Expectation) -> int:
        """The calls whose recorded arguments fit."""
        if len(self._given) <= FEW:
            return mask_of([j for j, each in self._given.items() if expectation.accepts(each)])
        if expectation.whole is not None:
            return self._whole.get(expectation.whole, 0)
        if not expectation.needs_arguments:
            return self.everything
        mask = self._recorded
        if not expectation.may_have_more:
            mask &= ~self._with_more_than(expectation.known)
        for path in expectation.fields:
            mask &= self._accepted(path, expectation)
        return mask

    def _accepted(self, path: Path, expectation: Expectation) -> int:
        field, pattern = self._field(path), expectation.fields[path]
        mask = field.masks.get(pattern.key, 0) if pattern.plain else self._tested_by(pattern, path)
        return mask | ~field.present if expectation.may_lack or pattern.absent else mask

    def _tested_by(self, pattern: Pattern, path: Path) -> int:
        """What the matchers accept; equal patterns and equal values are tested once."""
        known = (path, pattern.key)
        if known not in self._tested:
            field = self._field(path)
            fitting = (each for each, value in field.values.items() if pattern.accepts(value))
            self._tested[known] = sum(field.masks[each] for each in fitting)
        return self._tested[known]

    def _field(self, path: Path) -> "_Field":
        if path not in self._fields:
            self._fields[path] = _Field(self._objects, path)
        return self._fields[path]

    def _with_more_than(self, known: Set[str]) -> int:
        """The calls with an argument that is not expected."""
        mask = 0
        for name, having in self._having.items():
            if name not in known:
                mask |= having
        return mask


class _Field:
    """One argument: which calls have it, and which have it with which value."""

    def __init__(self, given: Mapping[int, dict[str, Json]], path: Path) -> None:
        found = {j: value for j, each in given.items() if (value := at(each, path)) is not MISSING}
        keys = {j: key(value) for j, value in found.items()}
        self.present = mask_of(found)
        self.values = {keys[j]: value for j, value in found.items()}
        self.masks = masks_by((keys[j], j) for j in found)


def mask_of(positions: Iterable[int]) -> int:
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def masks_by(placed: Iterable[tuple[Hashable, int]]) -> dict[Hashable, int]:
    """For each thing the positions where it is."""
    masks: dict[Hashable, int] = {}
    for thing, position in placed:
        masks[thing] = masks.get(thing, 0) | 1 << position
    return masks


NO_CALLS: Final = ToolMasks({})


def index(calls: Sequence[ToolCall]) -> dict[str, ToolMasks]:
    """The calls by tool."""
    given: dict[str, dict[int, Recorded]] = {}
    for position, call in enumerate(calls):
        given.setdefault(call.name, {})[position] = arguments(call)
    return {name: ToolMasks(each) for name, each in given.items()}
