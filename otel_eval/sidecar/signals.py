"""The three kinds of telemetry that OTLP carries, and what each is called on the wire."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

Form: TypeAlias = Literal["protobuf", "json"]
"""How a request is encoded; its answer is encoded the same way."""


@dataclass(frozen=True, slots=True)
class Signal:
    name: str
    service: str
    request: type[Message] = field(repr=False, compare=False)
    response: type[Message] = field(repr=False, compare=False)

    @property
    def path(self) -> str:
        return f"/v1/{self.name}"

    @property
    def method(self) -> str:
        return f"/{self.service}/Export"


TRACES: Final = Signal(
    "traces",
    "opentelemetry.proto.collector.trace.v1.TraceService",
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
LOGS: Final = Signal(
    "logs",
    "opentelemetry.proto.collector.logs.v1.LogsService",
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
METRICS: Final = Signal(
    "metrics",
    "opentelemetry.proto.collector.metrics.v1.MetricsService",
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
SIGNALS: Final = (TRACES, LOGS, METRICS)
