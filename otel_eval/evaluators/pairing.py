"""Which actual call stands for which expected call: one-to-one, and as many pairs as there can be.

Expected calls are compiled once, when the configuration is read. Calls of different tools never
compete, so each tool is settled by itself: equal arguments first, the rest by maximum matching.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final, TypeAlias

from otel_eval.evaluators.base import listed, plural
from otel_eval.evaluators.call_index import FEW, Expectation, Path, ToolMasks
from otel_eval.evaluators.matchers import Pattern, compile_fields
from otel_eval.evaluators.matching import Masks, key, pair
from otel_eval.evaluators.values import arguments
from otel_eval.model import UNRECORDED, Json, Recorded, ToolCall

MOST_TOLD: Final = 5

Tests: TypeAlias = Mapping[str, Sequence[tuple[int, Callable[[Recorded], bool]]]]


@dataclass
class Pairing:
    """Which expected call was paired with which actual call, by position."""

    total: int
    pairs: dict[int, int] = field(default_factory=dict)
    nearest: dict[int, int] = field(default_factory=dict)
    """For expected calls without a partner a left-over call of the same tool, to explain by."""
    possible: int = 0
    """How many pairs more there could be, had everything been recorded."""
    undecided: str = ""
    """A tool of which an unrecorded value could make a pair."""

    @property
    def lost(self) -> list[int]:
        """The expected calls without a partner."""
        return [position for position in range(self.total) if position not in self.pairs]

    def score(self, *, strict: bool) -> float:
        found = len(self.pairs)
        return float(found == self.total) if strict else found / self.total

    def undecided_tool(self, *, strict: bool) -> str:
        """The tool whose unrecorded values would decide the score; empty if they could not."""
        could_be_perfect = len(self.pairs) + self.possible == self.total
        return self.undecided if could_be_perfect or not strict else ""

    def reason(self, noun: str, told: Callable[[int], str]) -> str:
        """How many were found; `told` says what happened to one that was not."""
        counted = f"{len(self.pairs)} of {plural(self.total, f'expected {noun}')} found"
        lost = self.lost
        if not lost:
            return counted
        some = [told(position) for position in lost[:MOST_TOLD]]
        return f"{counted}; {listed(some, total=len(lost), separator='; ')}"

    def explained(
        self, labels: Sequence[str], expected: Sequence[Json], actual: Sequence[Recorded]
    ) -> dict[str, dict[str, Json]]:
        """For each expected call, under its label, what it was held against."""
        shown: dict[str, dict[str, Json]] = {}
        for i, label in enumerate(labels):
            found = i in self.pairs
            made = self.pairs[i] if found else self.nearest.get(i)
            shown[label] = {"expected": expected[i], "score": 1.0 if found else 0.0}
            if made is not None and actual[made] is not UNRECORDED:
                shown[label]["actual"] = actual[made]
        return shown


@dataclass(frozen=True, slots=True)
class Relation:
    """Which of a tool's calls each expectation accepts, and which are unknown."""

    masks: Masks
    unknown: int

    def pairs(self) -> dict[int, int]:
        return pair(self.masks) if any(self.masks) else {}

    def could_add(self, found: int) -> int:
        """How many more pairs there could be if the unknown calls were what everyone wants."""
        if not self.unknown or found == len(self.masks):
            return 0
        return len(pair([mask | self.unknown for mask in self.masks])) - found


class Plan(ABC):
    """Expected calls, ready to be paired with actual ones.

    Most trajectories are as expected, so what comes in the expected order or is equal is paired
    first, by a test or a look-up each; only the rest has to be searched.
    """

    equals_stay: ClassVar[bool]
    """Whether pairs of equals are part of a best pairing even when others are left to settle."""

    def __init__(self, tools: Sequence[str], keys: Sequence[Hashable]) -> None:
        self.tools = tools
        self._expected: dict[str, list[int]] = {}
        self._equals: dict[str, dict[Hashable, list[int]]] = {}
        for i, (tool, own) in enumerate(zip(tools, keys, strict=True)):
            self._expected.setdefault(tool, []).append(i)
            self._equals.setdefault(tool, {}).setdefault(own, []).append(i)

    @cached_property
    def _tests(self) -> Tests:
        return self.tests()

    @cached_property
    def labels(self) -> list[str]:
        """The tools, each numbered from 0: `search_0`, `search_1`."""
        counts: Counter[str] = Counter()
        labels = []
        for tool in self.tools:
            labels.append(f"{tool}_{counts[tool]}")
            counts[tool] += 1
        return labels

    @abstractmethod
    def key_of(self, call: ToolCall) -> Hashable:
        """Equals the key of an expectation that is met by equality."""

    @abstractmethod
    def relate(self, expected: Sequence[int], calls: Sequence[ToolCall]) -> Relation:
        """Which of these calls, all of one tool, fit which of its expectations."""

    def tests(self) -> Tests:
        """For each tool its expectations, and what the arguments of a call must pass to meet each.

        Empty where no test is faster than the look-up of an equal.
        """
        return {}

    def pair(self, calls: Sequence[ToolCall]) -> Pairing:
        """As many pairs as there can be."""
        made = Pairing(len(self.tools))
        self._pair_in_order(made.pairs, calls)
        if len(made.pairs) < made.total:
            for tool, actual in self._unsettled(made.pairs, calls).items():
                self._pair_tool(made, self._expected[tool], actual, calls)
        return made

    def _pair_in_order(self, pairs: dict[int, int], calls: Sequence[ToolCall]) -> None:
        """Adds the pairs of each tool whose expectations are all met one after the other."""
        tests = self._tests
        met: dict[str, int] = {}
        for j, call in enumerate(calls):
            name = call.name
            if name in tests:
                nth, waiting = met.get(name, 0), tests[name]
                if nth < len(waiting) and waiting[nth][1](call.arguments):
                    pairs[waiting[nth][0]] = j
                    met[name] = nth + 1
        if len(pairs) < len(self.tools):
            for name, nth in met.items():
                if nth < len(tests[name]):
                    for i, _ in tests[name][:nth]:
                        del pairs[i]

    def _unsettled(
        self, pairs: Mapping[int, int], calls: Sequence[ToolCall]
    ) -> dict[str, list[int]]:
        """The calls of each tool that has expectations left."""
        positions: dict[str, list[int]] = {}
        left = {tool for tool, expected in self._expected.items() if expected[0] not in pairs}
        for j, call in enumerate(calls):
            if call.name in left:
                positions.setdefault(call.name, []).append(j)
        return positions

    def _pair_tool(
        self,
        made: Pairing,
        expected: Sequence[int],
        actual: Sequence[int],
        calls: Sequence[ToolCall],
    ) -> None:
        if len(actual) > FEW or not self._tests:
            equal = self._pair_equal(actual, calls)
            if len(equal) == len(expected):
                made.pairs.update(equal)
                return
            if self.equals_stay:
                made.pairs.update(equal)
                taken = set(equal.values())
                expected = [i for i in expected if i not in equal]
                actual = [j for j in actual if j not in taken]
        if actual:
            self._search(made, expected, actual, calls)

    def _pair_equal(self, actual: Sequence[int], calls: Sequence[ToolCall]) -> dict[int, int]:
        """Pairs of equals among the calls of one tool."""
        equals, key_of = self._equals[calls[actual[0]].name], self.key_of
        pairs: dict[int, int] = {}
        taken: dict[Hashable, int] = {}
        for j in actual:
            own = key_of(calls[j])
            wanted = equals.get(own, ())
            nth = taken.get(own, 0)
            if nth < len(wanted):
                pairs[wanted[nth]] = j
                taken[own] = nth + 1
        return pairs

    def _search(
        self,
        made: Pairing,
        expected: Sequence[int],
        actual: Sequence[int],
        calls: Sequence[ToolCall],
    ) -> None:
        relation = self.relate(expected, [calls[j] for j in actual])
        found = relation.pairs()
        if more := relation.could_add(len(found)):
            made.possible += more
            made.undecided = made.undecided or calls[actual[0]].name
        if not found:
            made.nearest.update(zip(expected, actual, strict=False))
            return
        made.pairs.update((expected[i], actual[j]) for i, j in found.items())
        taken = set(found.values())
        lost = (each for i, each in enumerate(expected) if i not in found)
        left = (each for j, each in enumerate(actual) if j not in taken)
        made.nearest.update(zip(lost, left, strict=False))


@dataclass(frozen=True)
class Wanted:
    """An expected call: its arguments as patterns."""

    tool: str
    args: Mapping[str, Json]

    @cached_property
    def fields(self) -> Mapping[str, Pattern]:
        return compile_fields(self.args)

    @cached_property
    def names_absent(self) -> bool:
        return any(pattern.absent for pattern in self.fields.values())

    @cached_property
    def key(self) -> Hashable:
        """Equals the key of equal arguments; with a matcher inside it equals no such key."""
        return frozenset([(name, pattern.key) for name, pattern in self.fields.items()])

    def expectation(self, *, subset: bool) -> Expectation:
        fields: dict[Path, Pattern] = {(name,): each for name, each in self.fields.items()}
        plain = all(pattern.plain for pattern in self.fields.values())
        whole = self.key if plain and not subset else None
        return Expectation(fields, may_have_more=subset, whole=whole)


class ArgsPlan(Plan):
    """Expected calls that are paired by their arguments.

    Equal arguments belong together: whoever else would accept the call also accepts every other
    call that its partner accepts. Only a key that must be absent breaks that rule.
    """

    equals_stay = True

    def __init__(self, wanted: Sequence[Wanted], *, subset: bool) -> None:
        searched = {each.tool for each in wanted if subset and each.names_absent}
        super().__init__(
            [each.tool for each in wanted],
            [object() if each.tool in searched else each.key for each in wanted],
        )
        self.wanted = wanted
        self._subset = subset

    def key_of(self, call: ToolCall) -> Hashable:
        return key(arguments(call))

    def tests(self) -> Tests:
        return {
            tool: [(i, self._expectations[i].accepts) for i in expected]
            for tool, expected in self._expected.items()
        }

    def relate(self, expected: Sequence[int], calls: Sequence[ToolCall]) -> Relation:
        index = ToolMasks(dict(enumerate(map(arguments, calls))))
        masks = [index.fitting(self._expectations[i]) for i in expected]
        return Relation(masks, index.unrecorded)

    @cached_property
    def _expectations(self) -> list[Expectation]:
        return [each.expectation(subset=self._subset) for each in self.wanted]
