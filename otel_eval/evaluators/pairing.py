"""Which actual call stands for which expected call: one-to-one, and as many pairs as there can be.

Expected calls are compiled once, when the configuration is read. Calls of different tools never
compete, so each tool is settled by itself: equal arguments first, the rest by maximum matching.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from otel_eval.evaluators.call_index import Expectation, Path, ToolMasks
from otel_eval.evaluators.matchers import Pattern, compile_fields
from otel_eval.evaluators.matching import Masks, key, pair
from otel_eval.evaluators.values import arguments
from otel_eval.model import UNRECORDED, Json, Recorded, ToolCall


@dataclass
class Pairing:
    """Which expected call was paired with which actual call, by position."""

    total: int
    pairs: dict[int, int] = field(default_factory=dict)
    nearest: dict[int, int] = field(default_factory=dict)
    """For expected calls without a partner a left-over call of the same tool, to explain by."""
    spare: list[int] = field(default_factory=list)
    """The calls of expected tools that are left over after that."""
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

    def leave(self, lost: Sequence[int], actual: Sequence[int]) -> None:
        """Note what one tool has left on both sides."""
        self.nearest.update(zip(lost, actual, strict=False))
        self.spare.extend(actual[len(lost) :])

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

    What is equal is paired first, by look-up; only the rest has to be searched.
    """

    equals_stay: ClassVar[bool]
    """Whether pairs of equals are part of a best pairing even when others are left to settle."""

    def __init__(self, tools: Sequence[str], keys: Sequence[Hashable]) -> None:
        self.tools = tools
        self._names = frozenset(tools)
        self._equals: dict[Hashable, list[int]] = {}
        for i, own in enumerate(zip(tools, keys, strict=True)):
            self._equals.setdefault(own, []).append(i)

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

    def pair(self, calls: Sequence[ToolCall]) -> Pairing:
        """As many pairs as there can be."""
        made = Pairing(len(self.tools))
        left = self._pair_equal(made.pairs, calls)
        if len(made.pairs) == len(self.tools):
            made.spare = left
            return made
        lost = made.lost
        if not self.equals_stay:
            left = self._reopen(made.pairs, {self.tools[i] for i in lost}, left)
            lost = made.lost
        for expected, actual in self._by_tool(lost, left, calls):
            self._pair_tool(made, expected, actual, calls)
        return made

    def _pair_equal(self, pairs: dict[int, int], calls: Sequence[ToolCall]) -> list[int]:
        """Adds pairs of equals and gives back the calls of expected tools that are left."""
        names, equals, key_of = self._names, self._equals, self.key_of
        left: list[int] = []
        taken: dict[Hashable, int] = {}
        for j, call in enumerate(calls):
            if call.name not in names:
                continue
            own = (call.name, key_of(call))
            wanted = equals.get(own, ())
            nth = taken.get(own, 0)
            if nth < len(wanted):
                pairs[wanted[nth]] = j
                taken[own] = nth + 1
            else:
                left.append(j)
        return left

    def _reopen(self, pairs: dict[int, int], tools: Set[str], left: Sequence[int]) -> list[int]:
        """Takes the pairs of these tools apart again."""
        again = [i for i in pairs if self.tools[i] in tools]
        return sorted([*left, *(pairs.pop(i) for i in again)])

    def _by_tool(
        self, lost: Sequence[int], left: Sequence[int], calls: Sequence[ToolCall]
    ) -> Iterable[tuple[list[int], list[int]]]:
        """What is expected of each tool, and its calls."""
        tools: dict[str, tuple[list[int], list[int]]] = {}
        for i in lost:
            tools.setdefault(self.tools[i], ([], []))[0].append(i)
        for j in left:
            tools.setdefault(calls[j].name, ([], []))[1].append(j)
        return tools.values()

    def _pair_tool(
        self,
        made: Pairing,
        expected: Sequence[int],
        actual: Sequence[int],
        calls: Sequence[ToolCall],
    ) -> None:
        if not expected or not actual:
            made.leave(expected, actual)
            return
        relation = self.relate(expected, [calls[j] for j in actual])
        found = relation.pairs()
        if more := relation.could_add(len(found)):
            made.possible += more
            made.undecided = made.undecided or calls[actual[0]].name
        if not found:
            made.leave(expected, actual)
            return
        made.pairs.update((expected[i], actual[j]) for i, j in found.items())
        taken = set(found.values())
        made.leave(
            [each for i, each in enumerate(expected) if i not in found],
            [each for j, each in enumerate(actual) if j not in taken],
        )


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

    def relate(self, expected: Sequence[int], calls: Sequence[ToolCall]) -> Relation:
        index = ToolMasks({j: arguments(call) for j, call in enumerate(calls)})
        masks = [index.fitting(self._expectations[i]) for i in expected]
        return Relation(masks, index.unrecorded)

    @cached_property
    def _expectations(self) -> list[Expectation]:
        return [each.expectation(subset=self._subset) for each in self.wanted]
