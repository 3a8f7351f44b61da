"""The labels of an evaluation's metrics, and the bounds that keep their number small."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from threading import Lock
from typing import Final, Generic, TypeVar

from otel_eval.model import Anchor, Evaluation, Json, Verdict

LabelSet = tuple[str, ...]
Subject = tuple[str | None, ...]
Kind = tuple[Subject, Verdict]
Child = TypeVar("Child")

OTHER: Final = "__other__"
UNKNOWN: Final = "unknown"
EVALUATION: Final = ("agent", "rule", "evaluator")
MAX_SETS: Final = 2000
MAX_LENGTH: Final = 128
MAX_KNOWN: Final = 4 * MAX_SETS
ROOM_FOR_CONFIGURED: Final = 1500
ROOM_FOR_FOUND_AGENTS: Final = 1800
ROOM_FOR_RULES: Final = MAX_SETS - 8
"""The last ones are for `__other__` alone: one for each verdict or skip code."""


class Labels:
    """Reads label values off evaluations; agents beyond `max_agents` become `__other__`.

    Agents that a rule names literally never do: their number is bounded by the rules.
    """

    def __init__(
        self,
        *,
        extra: Mapping[str, str] | None = None,
        max_agents: int = 500,
        literal_agents: Collection[str] = (),
    ) -> None:
        self.extra = tuple(extra or ())
        self.literal_agents = frozenset(map(text, literal_agents))
        self._attributes = tuple((extra or {}).values())
        self._max_agents = max_agents
        self._agents: set[str] = set()

    def subject(self, evaluation: Evaluation) -> Subject:
        """What tells one series from another, as found; cheap, for it is asked every time."""
        anchor = evaluation.anchor
        found = (evaluation.trajectory.agent, evaluation.rule, evaluation.evaluator)
        if not self._attributes:
            return found
        return (*found, *[text(attribute(anchor, name)) for name in self._attributes])

    def is_settled(self, subject: Subject) -> bool:
        """Whether what was found for a subject may be kept for the next time.

        Agents without a name of their own may be many, and get one when a new rule names them.
        """
        return self.agent(subject[0]) != OTHER

    def values(self, subject: Subject, *own: str) -> LabelSet:
        """agent, rule, evaluator, the metric's `own` label values, the configured ones."""
        agent, rule, evaluator, *extra = subject
        return (self.agent(agent), text(rule), text(evaluator), *own, *map(text, extra))

    def agent(self, name: str | None) -> str:
        agent = text(name) or UNKNOWN
        if agent in self._agents or agent in self.literal_agents:
            return agent
        with _admission:
            if len(self._agents) >= self._max_agents:
                return OTHER
            self._agents.add(agent)
        return agent


class Series(Generic[Child]):
    """What a metric keeps per label set, for at most `MAX_SETS` of them.

    A set that finds no room first gives up its configured labels, then its agent, then everything
    but the metric's own label. What traffic brings leaves room for what the rules name.
    """

    def __init__(
        self,
        make: Callable[[LabelSet], Child],
        labels: Labels,
        *,
        own: int = 0,
        configured: bool = True,
    ) -> None:
        self._make = make
        self._labels = labels
        self._own = range(len(EVALUATION), len(EVALUATION) + own)
        self._width = self._own.stop + (len(labels.extra) if configured else 0)
        self._children: dict[LabelSet, Child] = {}
        self._known: dict[tuple[Subject, str], Child] = {}

    def of(self, subject: Subject, own: str = "") -> Child:
        """The child for an evaluation; one look-up, but for the first of its kind."""
        child = self._known.get((subject, own))
        return self._find(subject, own) if child is None else child

    def items(self) -> Collection[tuple[LabelSet, Child]]:
        return self._children.items()

    def at(self, values: LabelSet) -> Child:
        child = self._children.get(values)
        return self._admit(values) if child is None else child

    def _find(self, subject: Subject, own: str) -> Child:
        values = self._labels.values(subject, *((own,) if own else ()))[: self._width]
        child = self.at(values)
        if len(self._known) < MAX_KNOWN and self._labels.is_settled(subject):
            self._known[subject, own] = child
        return child

    def _admit(self, values: LabelSet) -> Child:
        with _admission:
            chosen = next(fold for fold, room in self._folds(values) if self._fits(fold, room))
            if chosen not in self._children:
                self._children[chosen] = self._make(chosen)
            return self._children[chosen]

    def _fits(self, values: LabelSet, room: int) -> bool:
        return values in self._children or len(self._children) < room

    def _folds(self, values: LabelSet) -> Iterator[tuple[LabelSet, int]]:
        bare = self._fold(values, range(self._own.stop, len(values)))
        literal = values[0] in self._labels.literal_agents
        yield values, ROOM_FOR_CONFIGURED
        yield bare, ROOM_FOR_RULES if literal else ROOM_FOR_FOUND_AGENTS
        if not literal:
            yield self._fold(bare, range(1)), ROOM_FOR_RULES
        yield self._fold(bare, set(range(len(bare))) - set(self._own)), MAX_SETS

    @staticmethod
    def _fold(values: LabelSet, positions: Collection[int]) -> LabelSet:
        return tuple(OTHER if at in positions else value for at, value in enumerate(values))


_admission = Lock()
"""Of a label set that is new: seldom, so one lock does for all."""


def _after_fork() -> None:
    """A lock that another thread held when the process forked stays held in the child for ever."""
    global _admission
    _admission = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def attribute(anchor: Anchor, name: str) -> Json:
    """The anchor's attribute of that name, else its resource's."""
    return anchor.attributes.get(name, anchor.resource.get(name))


def text(value: Json) -> str:
    """A label value: short, and always encodable (JSON may hold half of a surrogate pair)."""
    match value:
        case str():
            if len(value) <= MAX_LENGTH and value.isascii():
                return value
            return value[:MAX_LENGTH].encode("utf-8", "replace").decode()
        case None:
            return ""
        case bool():
            return str(value).lower()
    return text(str(value))
