"""Evaluations as span events: on a copy of the anchor where we own it, else on a span of our own.

An ended span cannot be changed, so the span of our own is a child of the anchor. It is built
directly, not started by a tracer: its resource is the anchor's, its times are the anchor's end,
and its id follows from what was evaluated, so that a second delivery has the same identity.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
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
        told = sorted(filter(event.is_told, evaluations), key=_subject)
        for _, group in groupby(told, key=_subject):
            span = evaluation_span(list(group), self._form)
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
        name=f"evaluation {first.rule}",
        context=_identity(parent, evaluations),
        parent=parent,
        resource=_resource(first.anchor),
        attributes=_attributes(first),
        events=[span_event(each, form) for each in evaluations],
        links=[Link(parent)],
        start_time=first.anchor.end_ns,
        end_time=first.anchor.end_ns,
        instrumentation_scope=_SCOPE,
    )


def _subject(evaluation: Evaluation) -> tuple[str, ...]:
    """What one evaluation span is about."""
    trajectory, anchor = evaluation.trajectory, evaluation.anchor
    group = trajectory.session if trajectory.per == "session" else trajectory.trace_id
    part = str(trajectory.part)
    agent = trajectory.agent or ""
    return (group or "", part, agent, evaluation.rule, anchor.trace_id, anchor.span_id)


def _identity(parent: SpanContext, evaluations: Sequence[Evaluation]) -> SpanContext:
    """An id of 64 bits that depends on the subject and on which evaluators are told about it.

    A judge's answer comes later than the others': it is a span of its own, not the same one again.
    """
    digest = blake2b(digest_size=8)
    for word in (*_subject(evaluations[0]), *(each.evaluator for each in evaluations)):
        digest.update(word.encode("utf-8", "replace") + b"\0")
    span_id = int.from_bytes(digest.digest()) or 1
    return SpanContext(parent.trace_id, span_id, is_remote=False, trace_flags=SAMPLED)


def _resource(anchor: Anchor) -> Resource:
    return Resource(dict(anchor.resource))


def _attributes(evaluation: Evaluation) -> dict[str, str]:
    found = {
        "openinference.span.kind": "EVALUATOR",
        "otel_eval.rule": evaluation.rule,
        "gen_ai.agent.name": evaluation.trajectory.agent,
        "gen_ai.conversation.id": evaluation.trajectory.session,
    }
    return {name: value for name, value in found.items() if value}
