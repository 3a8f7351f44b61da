"""Our own telemetry, on the same way out as everything else."""

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import (
    LogRecordExporter,
    LogRecordExportResult,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan

from otel_eval.model import Evaluation
from otel_eval.sidecar.parcels import Parcel, Put
from otel_eval.sidecar.signals import LOGS, TRACES
from otel_eval.sinks.event import ResultEvent
from otel_eval.sinks.log_events import LogEventSink
from otel_eval.sinks.span_events import SpanEventSink


class ForwardedLogs:
    """Evaluations as log events: one request for all that come at a time."""

    def __init__(self, put: Put, form: ResultEvent) -> None:
        self._put = put
        self._collected = _Collected()
        provider = LoggerProvider(Resource({"service.name": "otel-eval"}), shutdown_on_exit=False)
        provider.add_log_record_processor(SimpleLogRecordProcessor(self._collected))
        self._sink = LogEventSink(logger_provider=provider, form=form)

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        self._sink.emit(evaluations)
        if records := self._collected.take():
            self._put(Parcel(signal=LOGS, body=encode_logs(records).SerializeToString()))

    def close(self) -> None:
        """Nothing to do: what was put is on its way."""


class ForwardedSpans:
    """Evaluations as spans `evaluation {rule}`."""

    def __init__(self, put: Put, form: ResultEvent) -> None:
        self._put = put
        self._collected: list[ReadableSpan] = []
        self._sink = SpanEventSink(deliver=self._collected.append, form=form)

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        self._sink.emit(evaluations)
        if self._collected:
            body = encode_spans(self._collected).SerializeToString()
            self._put(Parcel(signal=TRACES, body=body))
            self._collected.clear()

    def close(self) -> None:
        """Nothing to do: what was put is on its way."""


class _Collected(LogRecordExporter):
    """Keeps records until they are encoded together."""

    def __init__(self) -> None:
        self._records: list[ReadableLogRecord] = []

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self._records.extend(batch)
        return LogRecordExportResult.SUCCESS

    def take(self) -> list[ReadableLogRecord]:
        taken, self._records = self._records, []
        return taken

    def force_flush(self, timeout_millis: int = 10_000) -> bool:  # noqa: ARG002  # the SDK's name
        return True

    def shutdown(self) -> None:
        """Nothing to do: nothing is kept for long."""
