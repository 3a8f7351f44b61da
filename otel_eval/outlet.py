"""Where evaluations go, and what keeps one destination from disturbing the others."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from otel_eval.counters import Counters
from otel_eval.judge.meters import JudgeCall
from otel_eval.model import Evaluation
from otel_eval.workers import Crew

log = logging.getLogger("otel_eval")

MAX_UNDELIVERED: Final = 1_000
PATIENCE_SECONDS: Final = 1.0
"""How long a sink that is behind may hold up the scoring before its evaluations are dropped."""

Duration: TypeAlias = tuple[str, float]
"""An evaluator's name, and the seconds it took about one trajectory."""


class Sink(Protocol):
    """Where evaluations go. Whatever it raises is counted and concerns nobody else.

    A sink that has `observe_durations(durations)` is also told how long evaluators took, as pairs
    of their name and seconds; one that has `observe_judge(call)` what was asked of judges.
    """

    def emit(self, evaluations: Sequence[Evaluation]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a sink is handed at a time; the last one closes it."""

    evaluations: Sequence[Evaluation] = ()
    durations: Sequence[Duration] = ()
    judge_calls: Sequence[JudgeCall] = ()
    last: bool = False


class Outlet:
    """One sink behind a bounded queue and a thread of its own."""

    def __init__(self, sink: Sink, counters: Counters) -> None:
        self._sink = sink
        self._counters = counters
        self._observe: Callable[[Sequence[Duration]], None] | None = getattr(
            sink, "observe_durations", None
        )
        self._observe_judge: Callable[[JudgeCall], None] | None = getattr(
            sink, "observe_judge", None
        )
        self._crew = Crew(self._deliver, name="otel-eval-sink", most=MAX_UNDELIVERED)
        self._is_stuck = False

    def start(self) -> None:
        self._crew.start()

    def put(self, delivery: Delivery) -> None:
        """Waits for a sink that is behind, but only once for one that is stuck."""
        patience = 0.0 if self._is_stuck else PATIENCE_SECONDS
        self._is_stuck = not self._crew.put(delivery, patience=patience)
        if self._is_stuck:
            self._counters.fail(self._sink, "full")

    def wait(self, seconds: float) -> bool:
        return self._crew.wait(seconds)

    def close(self) -> None:
        """Have the sink closed once it has what waits for it; `finished` tells whether it was."""
        self._crew.close(Delivery(last=True))

    def finished(self, seconds: float) -> bool:
        done = self.wait(seconds)
        if not done:
            self._counters.fail(self._sink, "hung")
        return done

    def _deliver(self, delivery: Delivery) -> None:
        if delivery.evaluations:
            self._call(lambda: self._sink.emit(delivery.evaluations))
        if (observe := self._observe) is not None and delivery.durations:
            self._call(lambda: observe(delivery.durations))
        if self._observe_judge is not None and delivery.judge_calls:
            self._call(lambda: self._tell_calls(delivery.judge_calls))
        if delivery.last:
            self._call(self._sink.close)

    def _tell_calls(self, calls: Sequence[JudgeCall]) -> None:
        if self._observe_judge is not None:
            for call in calls:
                self._observe_judge(call)

    def _call(self, act: Callable[[], None]) -> None:
        try:
            act()
        except KeyboardInterrupt:
            raise
        # A sink may be anyone's code, and some raise what is no Exception: this thread must go on.
        except BaseException as error:
            self._counters.fail(self._sink, "raised")
            log.warning("%s raised %s", type(self._sink).__name__, type(error).__name__)
