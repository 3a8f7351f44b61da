"""Spans that wait for their scores, on their way through the exporter."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from otel_eval.engine import OWN_SCOPE, ClosedTrace
from otel_eval.extract.dialects import DIALECTS
from otel_eval.grouping import place_of
from otel_eval.model import Evaluation, Span
from otel_eval.rules import RuleSet
from otel_eval.sinks import event
from otel_eval.sinks.event import ResultEvent
from otel_eval.sinks.span_events import span_event, with_events

MAX_HELD: Final = 65_536
"""Beyond, spans pass without waiting: their scores go out on spans of their own."""


@dataclass(frozen=True, slots=True)
class _Held:
    span: ReadableSpan
    until: float


class Holder:
    """Keeps spans until their trace is scored or their time is up; none is ever dropped."""

    def __init__(self, form: ResultEvent, *, max_hold: float) -> None:
        self._form = form
        self._max_hold = max_hold
        self._lock = Lock()
        self._held: dict[tuple[str, str], _Held] = {}
        self._leaving: list[ReadableSpan] = []

    def hold(self, span: Span, original: ReadableSpan, now: float) -> bool:
        """False where it should pass: there is no room, or it is held already."""
        key = span.trace_id, span.span_id
        with self._lock:
            if key in self._held or len(self._held) + len(self._leaving) >= MAX_HELD:
                return False
            self._held[key] = _Held(original, now + self._max_hold)
            return True

    def release(self, closed: ClosedTrace) -> list[Evaluation]:
        """The trace was scored: what is held of it may leave, with its events.

        Answers with the evaluations that nothing here carries: their spans are not, or no longer,
        held.
        """
        by_anchor: dict[str, list[Evaluation]] = {}
        for evaluation in filter(event.is_told, closed.evaluations):
            by_anchor.setdefault(evaluation.anchor.span_id, []).append(evaluation)
        with self._lock:
            for span_id in closed.span_ids:
                held = self._held.pop((closed.trace_id, span_id), None)
                if held is not None:
                    self._leaving.append(self._told(held.span, by_anchor.pop(span_id, ())))
        return [evaluation for some in by_anchor.values() for evaluation in some]

    def put(self, span: ReadableSpan) -> None:
        """A span of our own that leaves with the others."""
        with self._lock:
            self._leaving.append(span)

    def take(self, now: float) -> list[ReadableSpan]:
        """What may leave, and what has waited long enough. All wait equally long, so in order."""
        with self._lock:
            for key, held in list(self._overdue(now)):
                self._leaving.append(held.span)
                del self._held[key]
            leaving, self._leaving = self._leaving, []
        return leaving

    def _overdue(self, now: float) -> Iterable[tuple[tuple[str, str], _Held]]:
        for key, held in self._held.items():
            if held.until > now:
                return
            yield key, held

    def _told(self, span: ReadableSpan, evaluations: Sequence[Evaluation]) -> ReadableSpan:
        if not evaluations:
            return span
        return with_events(span, [span_event(each, self._form) for each in evaluations])


def may_anchor(rules: RuleSet) -> Callable[[Span], bool]:
    """Roots, local roots and agents' spans; tool calls too if a rule judges each of them.

    Not for judges: their answers are never waited for.
    """
    every = [each for rule in rules.rules for each in rule.evaluators]
    per_call = any(each.per_call() and not each.needs_model for each in every)

    def test(span: Span) -> bool:
        if span.scope.name == OWN_SCOPE:
            return False
        return place_of(span) in ("root", "entry") or _is_agent_or_call(span, per_call)

    return test


def _is_agent_or_call(span: Span, per_call: bool) -> bool:
    """By any dialect: a span that waits in vain does no harm, one that left cannot be told."""
    readings = (dialect.read(span) for dialect in DIALECTS if dialect.reads(span))
    return any(each.agent_span or (per_call and each.tool is not None) for each in readings)
