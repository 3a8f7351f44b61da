from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_eval.model import Score, Skip
from otel_eval.sinks.event import ResultEvent
from otel_eval.sinks.span_events import SpanEventSink, span_event, with_events
from tests.conftest import SPAN_ID, TRACE_ID, trajectory
from tests.sinks.builders import END_NS, anchor, evaluation


def spans(*evaluations, form: ResultEvent | None = None) -> list[ReadableSpan]:
    taken: list[ReadableSpan] = []
    sink = SpanEventSink(deliver=taken.append, form=form)
    sink.emit(evaluations)
    sink.close()
    return taken


def test_the_evaluation_span_is_a_child_of_the_anchor() -> None:
    where = anchor(resource={"service.name": "shop"})
    form = ResultEvent(config_hash="c0ffee")
    told = evaluation(anchor=where)

    (span,) = spans(told, form=form)

    assert span.name == "evaluation flow"
    assert f"{span.context.trace_id:032x}" == TRACE_ID
    assert f"{span.parent.span_id:016x}" == SPAN_ID
    assert span.context.trace_flags.sampled
    assert (span.start_time, span.end_time) == (END_NS, END_NS)
    assert span.resource == Resource({"service.name": "shop"})
    assert span.instrumentation_scope.name == "otel_eval"
    assert dict(span.attributes) == {
        "openinference.span.kind": "EVALUATOR",
        "otel_eval.rule": "flow",
        "gen_ai.agent.name": "agent",
    }
    assert [link.context for link in span.links] == [span.parent]
    (event,) = span.events
    assert (event.name, event.timestamp) == ("gen_ai.evaluation.result", END_NS)
    assert dict(event.attributes) == form.attributes(told)


def test_there_is_one_span_per_rule_and_anchor_and_one_event_per_evaluator() -> None:
    found = spans(
        evaluation(rule="a", evaluator="order"),
        evaluation(rule="b", evaluator="order"),
        evaluation(rule="a", evaluator="count"),
        evaluation(rule="a", evaluator="judge", anchor=anchor(span_id="00000000000000aa")),
    )

    told = [
        (
            span.name,
            f"{span.parent.span_id:016x}",
            [e.attributes["gen_ai.evaluation.name"] for e in span.events],
        )
        for span in found
    ]
    assert sorted(told) == [
        ("evaluation a", "00000000000000aa", ["judge"]),
        ("evaluation a", SPAN_ID, ["order", "count"]),
        ("evaluation b", SPAN_ID, ["order"]),
    ]


def test_the_same_evaluation_gives_the_same_span_id_every_time() -> None:
    (first,), (second,) = spans(evaluation()), spans(evaluation(Score(0.2)))

    assert first.context == second.context
    assert f"{first.context.span_id:016x}" == "bc4eb05104a90827"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"rule": "other"}, id="rule"),
        pytest.param({"evaluator": "judge"}, id="a later answer"),
        pytest.param({"trajectory": trajectory(agent="other")}, id="agent"),
        pytest.param({"trajectory": trajectory(part=2)}, id="part"),
        pytest.param({"anchor": anchor(span_id="00000000000000aa")}, id="run"),
        pytest.param({"trajectory": trajectory(per="session", session="s")}, id="session"),
    ],
)
def test_another_subject_has_another_span_id(other: dict) -> None:
    (first,), (second,) = spans(evaluation()), spans(evaluation(**other))

    assert first.context.span_id != second.context.span_id


def test_no_span_for_an_anchor_with_made_up_ids_or_for_what_was_sampled_out() -> None:
    assert spans(evaluation(anchor=anchor(trace_id="#1", span_id="#2"))) == []
    assert spans(evaluation(Skip("sampled_out", "not in the sample"))) == []


@pytest.mark.parametrize("processor", [SimpleSpanProcessor, BatchSpanProcessor])
def test_a_providers_processors_take_the_span(processor: type) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(processor(exporter))

    SpanEventSink(tracer_provider=provider).emit([evaluation()])
    provider.force_flush()

    assert [span.name for span in exporter.get_finished_spans()] == ["evaluation flow"]
    provider.shutdown()


def test_a_provider_without_processors_takes_nothing_and_says_nothing() -> None:
    SpanEventSink(tracer_provider=trace.NoOpTracerProvider()).emit([evaluation()])


@pytest.fixture
def ended() -> Iterator[ReadableSpan]:
    """A span that dropped the first of its three events."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(span_limits=SpanLimits(max_events=2))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("agent").start_as_current_span("run", attributes={"a": 1}) as span:
        for name in ("one", "two", "three"):
            span.add_event(name)
    yield exporter.get_finished_spans()[0]
    provider.shutdown()


def test_a_copy_has_the_events_and_the_original_is_as_it_was(ended: ReadableSpan) -> None:
    added: list[Event] = [span_event(evaluation(), ResultEvent())]

    copied = with_events(ended, added)

    assert [event.name for event in copied.events] == ["two", "three", "gen_ai.evaluation.result"]
    assert [event.name for event in ended.events] == ["two", "three"]
    assert copied.dropped_events == ended.dropped_events == 1
    assert copied.context == ended.context
    assert copied.attributes == ended.attributes
