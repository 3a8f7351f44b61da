"""The ways out of the sidecar: to the forward target, and to where log events go."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from otel_eval.config import Config
from otel_eval.engine import ClosedSession, ClosedTrace, Sink
from otel_eval.holding import may_anchor
from otel_eval.model import Evaluation, Skip
from otel_eval.quantities import to_bytes
from otel_eval.rules import RuleSet
from otel_eval.sidecar.attach import Holder
from otel_eval.sidecar.closings import Closings, Scored
from otel_eval.sidecar.custody import Custody
from otel_eval.sidecar.forward import Forwarder, connect
from otel_eval.sidecar.ledger import Closing, Target, session_key
from otel_eval.sidecar.own import ForwardedEvents
from otel_eval.sidecar.parcels import Parcel, Put
from otel_eval.sidecar.tls import within
from otel_eval.sinks.event import ResultEvent

LOG_QUEUE_MIB: Final = 32

Rules: TypeAlias = Callable[[], RuleSet]
"""The rules as they are now: they change when the configuration is read again."""


class Outbound:
    """Lives in the event loop. Without a target there is no way out, and all of this is empty."""

    def __init__(
        self, config: Config, form: ResultEvent, rules: Rules, custody: Custody | None = None
    ) -> None:
        self._events: Final = config.emit.events
        self._form = form
        self._rules = rules
        self.forwarder: Final = _forwarder(config, custody)
        self._log_forwarder: Final = _log_forwarder(config, custody) or self.forwarder
        self.holder: Final = self._make_holder(config)
        self.closings: Final = None if custody is None else self._make_closings(custody)

    @property
    def forwarders(self) -> list[Forwarder]:
        every = (self.forwarder, self._log_forwarder)
        return list(dict.fromkeys(each for each in every if each is not None))

    @property
    def by_target(self) -> dict[Target, Forwarder]:
        found: dict[Target, Forwarder] = {}
        if self.forwarder is not None:
            found["forward"] = self.forwarder
        if self._log_forwarder is not None:
            found["logs"] = self._log_forwarder
        return found

    def start(self) -> None:
        for forwarder in self.forwarders:
            forwarder.start()

    def sinks(self) -> list[Sink]:
        if self.closings is not None:
            return [_Answers(self.closings.answer, self._rules)]
        logs = self._way_out(self._log_forwarder, "log")
        spans = self._way_out(self.forwarder, "span")
        if self.holder is None:
            return [ForwardedEvents(self._form, logs=logs, spans=spans)] if logs or spans else []
        later = _Later(ForwardedEvents(self._form, spans=spans).emit, self._rules)
        return [ForwardedEvents(self._form, logs=logs), later]

    def _way_out(self, forwarder: Forwarder | None, kind: str) -> Put | None:
        return None if forwarder is None or kind not in self._events else forwarder.put_soon

    def closed(self, trace: ClosedTrace) -> None:
        """Let go of what waited for the scores of this trace."""
        if self.closings is not None:
            self._close_safely(self.closings, trace)
            return
        if self.holder is None or self.forwarder is None:
            return
        if left := self.holder.release(trace):
            ForwardedEvents(self._form, spans=self.forwarder.put_soon).emit(left)

    def _close_safely(self, closings: Closings, trace: ClosedTrace) -> None:
        held: list[Parcel] = []
        spans = trace.evaluations
        if self.holder is not None:
            spans = self.holder.release(trace, held.append)
        parcel = held[0] if held else None
        if parcel is not None and trace.awaited and self.forwarder is not None:
            # Spans wait for evaluators that are quick, and not for models.
            self.forwarder.put(parcel)
            parcel = None
        closings.put(
            Scored(
                closing=Closing(
                    key=trace.trace_id,
                    part=trace.part,
                    closed_by=trace.closed_by,
                    whole=trace.whole,
                    late=trace.late,
                    members=trace.span_ids,
                    sessions=tuple(trace.sessions),
                ),
                awaited=trace.awaited,
                logs=trace.evaluations,
                spans=spans,
                held=parcel,
            )
        )

    def session_closed(self, session: ClosedSession) -> None:
        if self.closings is None:
            return
        self.closings.put(
            Scored(
                closing=Closing(
                    key=session_key(session.session),
                    part=session.part,
                    closed_by=session.closed_by,
                    members=session.traces,
                ),
                awaited=session.awaited,
                logs=session.evaluations,
                spans=session.evaluations,
            )
        )

    def tick(self) -> None:
        if self.holder is not None:
            self.holder.due(time.monotonic())

    async def drain(self, seconds: float) -> bool:
        if self.holder is not None:
            self.holder.drain()
        sent = await asyncio.gather(*(each.drain(seconds) for each in self.forwarders))
        return all(sent)

    def _make_closings(self, custody: Custody) -> Closings:
        return Closings(custody, self.by_target, self._form, self._events)

    def _make_holder(self, config: Config) -> Holder | None:
        forward = config.forward
        if self.forwarder is None or forward is None or forward.mode != "attach":
            return None
        if "span" not in self._events:
            return None
        test_of = lru_cache(maxsize=1)(may_anchor)
        return Holder(
            self.forwarder,
            self._form,
            max_hold=forward.max_hold,
            may_anchor=lambda span: test_of(self._rules())(span),
        )


class _Later:
    """Tells what is not known yet when the trace closes: what judges say, and about sessions."""

    def __init__(self, tell: Callable[[Sequence[Evaluation]], None], rules: Rules) -> None:
        self._tell = tell
        self._rules = rules

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        judges = self._rules().judges
        later = [
            each
            for each in evaluations
            if each.trajectory.per == "session" or (each.rule, each.evaluator) in judges
        ]
        if later:
            self._tell(later)

    def close(self) -> None:
        """Nothing to do: what was told is on its way."""


class _Answers:
    """What models say, also by rules that were replaced since they were asked."""

    def __init__(self, tell: Callable[[Sequence[Evaluation]], None], rules: Rules) -> None:
        self._tell = tell
        self._rules = rules
        self._judges: set[tuple[str, str]] = set()

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        self._judges |= self._rules().judges
        answers = [
            each
            for each in evaluations
            if (each.rule, each.evaluator) in self._judges and not _is_sampled_out(each)
        ]
        if answers:
            self._tell(answers)

    def close(self) -> None:
        """Nothing to do: what was told is on its way."""


def _is_sampled_out(evaluation: Evaluation) -> bool:
    """No model was asked: this was known when the trace closed."""
    match evaluation.outcome:
        case Skip(code="sampled_out"):
            return True
    return False


def _forwarder(config: Config, custody: Custody | None) -> Forwarder | None:
    forward = config.forward
    if forward is None:
        return None
    with within("forward"):
        target = connect(forward.endpoint, forward)
    return Forwarder(target, max_bytes=to_bytes(forward.queue_mib), depot=custody)


def _log_forwarder(config: Config, custody: Custody | None) -> Forwarder | None:
    settings = config.emit.logs
    if settings.endpoint is None:
        return None
    with within("emit.logs"):
        target = connect(settings.endpoint, settings)
    return Forwarder(target, max_bytes=to_bytes(LOG_QUEUE_MIB), depot=custody)
