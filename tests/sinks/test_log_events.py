from typing import Any

from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

from otel_eval.model import Evaluation, Failure, Score, Skip
from otel_eval.sinks.event import ResultEvent
from otel_eval.sinks.log_events import LogEventSink
from tests.conftest import SPAN_ID, TRACE_ID
from tests.sinks.builders import END_NS, anchor, evaluation


def records(*evaluations: Evaluation, form: ResultEvent | None = None) -> list[Any]:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    sink = LogEventSink(logger_provider=provider, form=form)
    sink.emit(evaluations)
    sink.close()
    return list(exporter.get_finished_logs())


def test_an_evaluation_is_an_event_in_the_anchors_trace() -> None:
    form = ResultEvent(config_hash="c0ffee")
    told = evaluation()

    (found,) = records(told, form=form)

    record = found.log_record
    assert record.event_name == "gen_ai.evaluation.result"
    assert f"{record.trace_id:032x}" == TRACE_ID
    assert f"{record.span_id:016x}" == SPAN_ID
    assert record.trace_flags.sampled
    assert record.timestamp == END_NS
    assert dict(record.attributes) == form.attributes(told)
    assert found.instrumentation_scope.name == "otel_eval"


def test_what_went_wrong_is_a_warning() -> None:
    outcomes = [Score(1.0), Score(0.0), Skip("budget", "spent"), Failure("E", "no")]

    found = records(*(evaluation(each) for each in outcomes))

    assert [each.log_record.severity_number for each in found] == [
        SeverityNumber.INFO,
        SeverityNumber.WARN,
        SeverityNumber.INFO,
        SeverityNumber.WARN,
    ]
    assert [each.log_record.severity_text for each in found] == ["INFO", "WARN", "INFO", "WARN"]


def test_an_anchor_with_made_up_ids_does_not_get_the_callers_trace() -> None:
    with TracerProvider().get_tracer("caller").start_as_current_span("caller"):
        (found,) = records(evaluation(anchor=anchor(trace_id="#1", span_id="#2")))

    assert (found.log_record.trace_id, found.log_record.span_id) == (0, 0)


def test_what_was_sampled_out_is_not_told() -> None:
    assert records(evaluation(Skip("sampled_out", "not in the sample"))) == []
