"""An agent's telemetry in memory: its providers, and what reached them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_eval.model import Evaluation

RESULT = "gen_ai.evaluation.result"


class Telemetry:
    """Providers of all three signals that export to memory."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.records = InMemoryLogRecordExporter()
        self.logger_provider = LoggerProvider(shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self.records))
        self.spans = InMemorySpanExporter()
        self.tracer_provider = TracerProvider(
            resource=Resource({"service.name": "weather"}), shutdown_on_exit=False
        )
        self.tracer = self.tracer_provider.get_tracer("tests")
        self.evaluations: list[Evaluation] = []

    def export_spans(self) -> None:
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.spans))

    def options(self) -> dict[str, Any]:
        """For a processor or an exporter that reports to these providers."""
        return {
            "meter_provider": self.meter_provider,
            "logger_provider": self.logger_provider,
            "on_evaluation": self.evaluations.append,
        }

    def events(self) -> list[Mapping[str, Any]]:
        """The attributes of the log events."""
        records = [each.log_record for each in self.records.get_finished_logs()]
        return [dict(each.attributes or {}) for each in records if each.event_name == RESULT]

    def evaluation_spans(self) -> list[ReadableSpan]:
        return [span for span in self.spans.get_finished_spans() if is_evaluation(span)]

    def scores(self) -> dict[str, float]:
        """The sum of the scores in the metric, by evaluator."""
        return {
            str(point.attributes["evaluator"]): point.sum
            for point in self.points("otel_eval.score")
        }

    def counts(self, name: str) -> dict[tuple[str, ...], float]:
        """A counter's or a gauge's values by those of its labels."""
        return {tuple(each.attributes.values()): each.value for each in self.points(name)}

    def points(self, name: str) -> Sequence[Any]:
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def call(self, tool: str, output: Any = None, **arguments: Any) -> None:
        """A tool call, in the current span, as the seeds' sample writes it."""
        with self.tracer.start_as_current_span(tool) as span:
            span.set_attribute("tool.name", tool)
            span.set_attribute("input.value", json.dumps(arguments))
            span.set_attribute("output.value", json.dumps({"content": output}))

    def run(self, *tools: str, agent: str = "helper") -> None:
        """A trace in which an agent calls these tools."""
        with self.tracer.start_as_current_span(f"invoke_agent {agent}", attributes=agent_of(agent)):
            for tool in tools:
                self.call(tool)


def agent_of(name: str) -> dict[str, str]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}


def is_evaluation(span: ReadableSpan) -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == "otel_eval"


def results(span: ReadableSpan) -> list[Event]:
    return [event for event in span.events if event.name == RESULT]
