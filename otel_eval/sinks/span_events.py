"""Evaluations as span events: on a copy of the anchor where we own it, else on a span of our own.

An ended span cannot be changed, so the span of our own is a child of the anchor. It is built
directly, not started by a tracer: its resource is the anchor's, its times are the anchor's end,
and its id follows from what was evaluated, so that a second delivery has the same identity.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, TracerProvider, get_tracer_provider

from otel_eval.model import Anchor, Evaluation
from otel_eval.sinks import event, instruments
from otel_eval.sinks.anchors import SAMPLED, span_context
from otel_eval.sinks.event import ResultEvent
from otel_eval.sinks.subjects import by_subject, span_id

Deliver = Callable[[ReadableSpan], None]

_SCOPE = InstrumentationScope(instruments.SCOPE)


class SpanEventSink:
    """One span `evaluation {rule}` per rule and anchor, with one event per evaluator."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        deliver: Deliver | None = None,
        form: ResultEvent | None = None,
    ) -> None:
        """`deliver` takes the spans; by default the processors of the provider do."""
        self._taker = processors_of(tracer_provider) if deliver is None else lambda: deliver
        self._form = form or ResultEvent()

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        deliver = self._taker()
        if deliver is None:
            return
        for group in by_subject(filter(event.is_told, evaluations)):
            span = evaluation_span(group, self._form)
            if span is not None:
                deliver(span)

    def close(self) -> None:
        """Nothing to do: who takes the spans flushes them."""


def processors_of(provider: TracerProvider | None) -> Callable[[], Deliver | None]:
    """Hands spans to the processors of an SDK provider, as if one of its tracers had ended them.

    The SDK has no public way to do so. The global provider is looked up each time, because
    applications set it late. A provider that is not the SDK's has no processors: None.
    """

    def taker() -> Deliver | None:
        processor = getattr(provider or get_tracer_provider(), "_active_span_processor", None)
        return None if processor is None else cast(Deliver, processor.on_end)

    return taker


def span_event(evaluation: Evaluation, form: ResultEvent) -> Event:
    """The event for a copy of the anchor."""
    return Event(event.NAME, form.attributes(evaluation), evaluation.anchor.end_ns)


def with_events(span: ReadableSpan, events: Iterable[Event]) -> ReadableSpan:
    """A copy of an ended span with these events added; dropped counts and all else stay."""
    every = BoundedList.from_seq(None, (*span.events, *events))
    every.dropped = span.dropped_events
    annotated = copy.copy(span)
    annotated._events = every
    return annotated


def evaluation_span(evaluations: Sequence[Evaluation], form: ResultEvent) -> ReadableSpan | None:
    """The span for one rule's evaluations about one anchor; None where it has no real id."""
    first = evaluations[0]
    parent = span_context(first.anchor)
    if parent is None:
        return None
    return ReadableSpan(
        name=span_name(first),
        context=_identity(parent, evaluations),
        parent=parent,
        resource=_resource(first.anchor),
        attributes=span_attributes(first),
        events=[span_event(each, form) for each in evaluations],
        links=[Link(parent)],
        start_time=first.anchor.end_ns,
        end_time=first.anchor.end_ns,
        instrumentation_scope=_SCOPE,
    )


def _identity(parent: SpanContext, evaluations: Sequence[Evaluation]) -> SpanContext:
    number = int.from_bytes(span_id(evaluations))
    return SpanContext(parent.trace_id, number, is_remote=False, trace_flags=SAMPLED)


def _resource(anchor: Anchor) -> Resource:
    return Resource(dict(anchor.resource))


def span_name(evaluation: Evaluation) -> str:
    return f"evaluation {evaluation.rule}"


def span_attributes(evaluation: Evaluation) -> dict[str, str]:
    found = {
        "openinference.span.kind": "EVALUATOR",
        "otel_eval.rule": evaluation.rule,
        "gen_ai.agent.name": evaluation.trajectory.agent,
        "gen_ai.conversation.id": evaluation.trajectory.session,
    }
    return {name: value for name, value in found.items() if value}
