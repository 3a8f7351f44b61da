"""Where every span went.

received = scored + late + duplicate + own + unevaluated + open, at every moment: spans only ever
move from `open` to one other place, and reads see no move half done.
"""

from collections import Counter
from collections.abc import Mapping
from threading import RLock
from typing import Literal, TypeAlias, TypeVar

from otel_eval.model import ClosedBy

Fate: TypeAlias = Literal["scored", "late", "duplicate", "own"]
Reason: TypeAlias = Literal[
    "not_agent", "no_rule", "no_session", "shed", "trace_full", "undecodable", "error", "shutdown"
]
Label = TypeVar("Label", bound=str)
Values: TypeAlias = dict[tuple[str, ...], float]


class Counters:
    """The engine's counts; `lock` also guards the taking of spans from the engine's queue.

    Reentrant, because a span may end in a finalizer that runs while its own thread holds the lock.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.received = 0
        self.open = 0
        self.fates: Counter[Fate] = Counter()
        self.unevaluated: Counter[Reason] = Counter()
        self.traces: Counter[ClosedBy] = Counter()
        self.sessions: Counter[ClosedBy] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        """Calls into foreign code that went wrong: by its class and by how."""

    def receive(self, spans: int) -> None:
        with self.lock:
            self.received += spans
            self.open += spans

    def settle(self, fate: Fate, spans: int = 1) -> None:
        with self.lock:
            self.open -= spans
            self.fates[fate] += spans

    def pass_over(self, reason: Reason, spans: int = 1) -> None:
        with self.lock:
            self.open -= spans
            self.unevaluated[reason] += spans

    def refuse(self, reason: Reason, spans: int) -> None:
        """Spans that were never taken in."""
        with self.lock:
            self.received += spans
            self.unevaluated[reason] += spans

    def close_trace(self, by: ClosedBy) -> None:
        with self.lock:
            self.traces[by] += 1

    def close_session(self, by: ClosedBy) -> None:
        with self.lock:
            self.sessions[by] += 1

    def fail(self, whose: object, how: str) -> None:
        with self.lock:
            self.errors[type(whose).__name__, how] += 1

    def values(self, queued: int) -> dict[str, Values]:
        """By the names of the OTel instruments. The caller holds the lock and counts the queue."""
        return {
            "otel_eval.spans.received": {(): self.received + queued},
            "otel_eval.spans.scored": {(): self.fates["scored"]},
            "otel_eval.spans.late": {(): self.fates["late"]},
            "otel_eval.spans.duplicate": {(): self.fates["duplicate"]},
            "otel_eval.spans.own": {(): self.fates["own"]},
            "otel_eval.spans.unevaluated": _by_label(self.unevaluated),
            "otel_eval.spans.open": {(): self.open + queued},
            "otel_eval.traces": _by_label(self.traces),
            "otel_eval.sessions": _by_label(self.sessions),
        }


def _by_label(counts: Mapping[Label, int]) -> Values:
    return {(label,): count for label, count in counts.items()}
