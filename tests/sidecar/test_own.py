"""What the sidecar tells is what OpenTelemetry's own objects and encoders would make of it."""

from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan

from otel_eval.model import Evaluation, Failure, Score, Skip
from otel_eval.sidecar.own import ForwardedEvents
from otel_eval.sidecar.parcels import Parcel
from otel_eval.sinks.event import ResultEvent
from otel_eval.sinks.log_events import LogEventSink
from otel_eval.sinks.span_events import SpanEventSink
from tests.conftest import call, trajectory
from tests.sinks.builders import anchor, evaluation

SHOP = {"service.name": "shop", "replicas": 1, "share": 1.0, "canary": True, "zones": ["a", "b"]}
BANK = {"service.name": "bank"}
IN_A_SESSION = trajectory(["search"], per="session", session="s-1", closed_by="idle", whole=False)

CASES: dict[str, Sequence[Evaluation]] = {
    "a score": [evaluation()],
    "scores of one rule": [evaluation(), evaluation(Score(0.5, "1 of 2"), evaluator="count")],
    "a label": [evaluation(Score(0.0, "it was not", label="No"), type="trajectory-judge")],
    "a skip": [evaluation(Skip("arguments_unrecorded", "no arguments"))],
    "a failure": [evaluation(Failure("ZeroDivisionError", "division by zero"))],
    "a judge of each call": [
        evaluation(
            Score(1.0, "why not", label="Yes"),
            evaluator="selection",
            type="tool-selection-accuracy",
            anchor=anchor(span_id=f"00000000000000a{place}"),
            call=call("search", span_id=f"00000000000000a{place}"),
        )
        for place in range(3)
    ],
    "a session": [evaluation(trajectory=IN_A_SESSION, sample=0.25)],
    "parts, rules and agents": [
        evaluation(),
        evaluation(rule="other"),
        evaluation(trajectory=trajectory(part=2, agent=None)),
    ],
    "several resources": [
        evaluation(anchor=anchor(resource=SHOP)),
        evaluation(rule="b", anchor=anchor(resource=BANK)),
        evaluation(rule="c", anchor=anchor(resource=dict(SHOP))),
    ],
    "what was sampled out": [evaluation(), evaluation(Skip("sampled_out", "not in the sample"))],
    "made-up ids": [evaluation(anchor=anchor(trace_id="#1", span_id="#2")), evaluation()],
    "no end": [evaluation(anchor=anchor(end_ns=0))],
    "a long reason": [evaluation(Score(0.5, "ä reason " * 100))],
}
FORMS = {
    "no content": ResultEvent(config_hash="c0ffee"),
    "content": ResultEvent(content=True),
}


@pytest.fixture(params=CASES)
def told(request: pytest.FixtureRequest) -> Sequence[Evaluation]:
    return CASES[request.param]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> ResultEvent:
    return FORMS[request.param]


def requests(
    told: Sequence[Evaluation], form: ResultEvent
) -> tuple[ExportLogsServiceRequest, ExportTraceServiceRequest]:
    taken: list[Parcel] = []
    sink = ForwardedEvents(form, logs=taken.append, spans=taken.append)
    sink.emit(told)
    sink.close()
    bodies = {parcel.signal.name: parcel.body for parcel in taken}
    return (
        ExportLogsServiceRequest.FromString(bodies.get("logs", b"")),
        ExportTraceServiceRequest.FromString(bodies.get("traces", b"")),
    )


def log_records(request: ExportLogsServiceRequest) -> list[Any]:
    """Without when they were made, and without a body: some encoders write an empty one."""
    records = [
        record
        for group in request.resource_logs
        for scoped in group.scope_logs
        for record in scoped.log_records
    ]
    for record in records:
        assert record.observed_time_unix_nano
        assert record.body.WhichOneof("value") is None
        record.ClearField("observed_time_unix_nano")
        record.ClearField("body")
    return records


def spans_of(request: ExportTraceServiceRequest) -> list[Any]:
    """Without their status: the encoder writes one that is empty."""
    spans = [
        span
        for group in request.resource_spans
        for scoped in group.scope_spans
        for span in scoped.spans
    ]
    for span in spans:
        assert (span.status.code, span.status.message) == (0, "")
        span.ClearField("status")
    return spans


def test_log_events_are_as_the_sdk_encodes_them(
    told: Sequence[Evaluation], form: ResultEvent
) -> None:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(Resource({"service.name": "otel-eval"}), shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    LogEventSink(logger_provider=provider, form=form).emit(told)
    expected = encode_logs(exporter.get_finished_logs())

    found, _ = requests(told, form)

    assert log_records(found) == log_records(expected)
    assert found == expected


def test_evaluation_spans_are_as_the_sdk_encodes_them(
    told: Sequence[Evaluation], form: ResultEvent
) -> None:
    spans: list[ReadableSpan] = []
    SpanEventSink(deliver=spans.append, form=form).emit(told)
    expected = encode_spans(spans)

    _, found = requests(told, form)

    assert spans_of(found) == spans_of(expected)
    assert found == expected


def test_nothing_is_sent_where_there_is_nothing_to_tell() -> None:
    taken: list[Parcel] = []
    sink = ForwardedEvents(ResultEvent(), logs=taken.append, spans=taken.append)

    sink.emit([evaluation(Skip("sampled_out", "not in the sample"))])

    assert taken == []


def test_only_the_kind_that_has_a_way_out_is_made() -> None:
    logs: list[Parcel] = []
    spans: list[Parcel] = []

    ForwardedEvents(ResultEvent(), logs=logs.append).emit([evaluation()])
    ForwardedEvents(ResultEvent(), spans=spans.append).emit([evaluation()])

    assert [parcel.signal.name for parcel in logs] == ["logs"]
    assert [parcel.signal.name for parcel in spans] == ["traces"]


def test_half_a_surrogate_pair_costs_one_character_and_not_the_request() -> None:
    logs, traces = requests([evaluation(Score(1.0, "no \ud800 key"))], ResultEvent())

    (record,), (span,) = log_records(logs), spans_of(traces)
    (event,) = span.events
    for holder in (record, event):
        found = {pair.key: pair.value.string_value for pair in holder.attributes}
        assert found["gen_ai.evaluation.explanation"] == "no ? key"


def test_a_reload_shows_in_what_is_told_next() -> None:
    form = ResultEvent(config_hash="old")
    taken: list[Parcel] = []
    sink = ForwardedEvents(form, logs=taken.append)

    sink.emit([evaluation()])
    form.config_hash = "new"
    sink.emit([evaluation()])

    assert [b"old" in parcel.body for parcel in taken] == [True, False]
    assert [b"new" in parcel.body for parcel in taken] == [False, True]


def nested(levels: int, *, lists: bool) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


@pytest.mark.parametrize("lists", [True, False], ids=["lists", "objects"])
@pytest.mark.parametrize("levels", [1, 24, 25, 33, 49, 50, 100])
def test_a_resource_that_is_nested_too_deeply_costs_one_attribute(levels: int, lists: bool) -> None:
    """A reader of protobuf gives up at 100 messages within each other."""
    resource = {"service.name": "deep", "notes": nested(levels, lists=lists)}

    _, found = requests([evaluation(anchor=anchor(resource=resource))], FORMS["content"])

    (group,) = found.resource_spans
    kept = [pair.key for pair in group.resource.attributes]
    assert kept == (["service.name", "notes"] if levels <= 24 else ["service.name"])
    assert len(spans_of(found)) == 1
