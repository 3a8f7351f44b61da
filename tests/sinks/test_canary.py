"""With `emit.content: false`, what agents say and do stays out of everything that leaves us."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_eval import config
from otel_eval.config import Config
from otel_eval.engine import Engine
from otel_eval.evaluators.base import Evaluator
from otel_eval.model import Evaluation, Event, Score, Skip, Span, Status, ToolCall, Trajectory
from tests.conftest import SPAN_ID, span

CANARY = "canary-7f3a"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Quoting(Evaluator):
    """A plug-in that says what it saw."""

    def evaluate(self, trajectory: Trajectory) -> Score:
        seen = str([call.arguments for call in trajectory.tool_calls])
        return Score(0.0, seen, {"seen": seen})


class QuotingCalls(Evaluator):
    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Skip:
        return Skip("timeout", f"{call.output} {trajectory.input}")


class Raising(Evaluator):
    def evaluate(self, trajectory: Trajectory) -> Score:
        raise ValueError(trajectory.tool_calls[0].arguments)


WRONG = {"q": {"$regex": "^nothing$"}, "limit": 5}
EVALUATORS: list[dict[str, Any]] = [
    {"type": "tool-call-count", "tool_calls_count": {"search": ["=", 7], "book": [">", 1]}},
    {"type": "tool-call-order", "tool_calls_order": ["book", "search"]},
    {"type": "tool-call-args", "tool_calls": [{"name": "search", "args": WRONG}]},
    {"type": "tool-call-output", "tool_outputs": [{"name": "search", "output": "else"}]},
    {"type": "tool-call-accuracy", "expected": [{"tool": "search", "args": {"q": "else"}}]},
    {"type": "trajectory-match", "expected": [{"name": "search", "args": {"q": "else"}}]},
    {"type": "tool-allowlist", "allowed": ["book"], "required": ["pay"]},
    {"type": "tool-error-rate"},
    {"type": "tool-loop", "max_repeats": 1},
    {"type": "tool-budget", "max_calls": 1, "max_tokens": 1},
    {
        "type": "tool-args-schema",
        "schemas": {"search": {"properties": {"q": {"type": "integer"}, "limit": {"maximum": 0}}}},
    },
    *({"type": f"{__name__}:{name}"} for name in ("Quoting", "QuotingCalls", "Raising")),
]


def said(role: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": f"{role} {CANARY}"}]}


def tool(name: str, number: int) -> Span:
    """A call that failed, with the canary wherever there is content."""
    return span(
        f"execute_tool {name}",
        span_id=f"{number:016x}",
        parent_id=SPAN_ID,
        start_ns=number,
        end_ns=number + 1,
        status=Status(code="error", message=CANARY),
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": json.dumps({"q": CANARY, "limit": 3}),
            "gen_ai.tool.call.result": json.dumps({"isError": True, "content": CANARY}),
        },
        events=[Event(name="exception", attributes={"exception.message": CANARY})],
    )


def trace() -> list[Span]:
    model = span(
        "chat",
        span_id=f"{99:016x}",
        parent_id=SPAN_ID,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.input.messages": json.dumps([said("system"), said("user")]),
            "gen_ai.output.messages": json.dumps([said("assistant")]),
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": CANARY}]),
        },
    )
    agent = span(
        "invoke_agent shop",
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "shop",
            "gen_ai.conversation.id": "s-1",
            "input.value": CANARY,
            "output.value": CANARY,
        },
        resource={"service.name": "shop"},
    )
    return [model, *(tool("search", each) for each in (1, 2, 3)), tool("book", 4), agent]


class Everything:
    """Every sink that there is, on real providers, and all that comes out of them."""

    def __init__(self, *, content: bool) -> None:
        rules = [{"name": "all", "match": {"agent": "*"}, "evaluators": EVALUATORS}]
        self.config = Config.parse({"rules": rules, "emit": {"content": content}})
        self._metrics, self._logs = InMemoryMetricReader(), InMemoryLogRecordExporter()
        self._spans = InMemorySpanExporter()
        self._meters, self._tracers = MeterProvider([self._metrics]), TracerProvider()
        self._loggers = LoggerProvider()
        self._tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        self.evaluations: list[Evaluation] = []

    def run(self) -> None:
        engine = Engine(self.config.rule_set(), background=False)
        self._page = config.prometheus_sink(self.config, engine.snapshot)
        sinks = config.in_process_sinks(
            self.config,
            meter_provider=self._meters,
            logger_provider=self._loggers,
            tracer_provider=self._tracers,
            pipeline=engine.snapshot,
        )
        for sink in (*sinks, self._page, self):
            engine.add_sink(sink)
        engine.feed(trace())
        engine.close()

    def emit(self, evaluations: list[Evaluation]) -> None:
        self.evaluations.extend(evaluations)

    def close(self) -> None:
        pass

    def outputs(self) -> Iterator[tuple[str, str]]:
        data = self._metrics.get_metrics_data()
        assert data is not None
        yield "metrics", data.to_json()
        yield "scrape page", self._page.page(OPENMETRICS)[0].decode()
        records = self._logs.get_finished_logs()
        assert len(records) == len(self.evaluations)
        yield "log events", "\n".join(record.to_json() for record in records)
        spans = self._spans.get_finished_spans()
        assert sum(len(each.events) for each in spans) == len(self.evaluations)
        yield "evaluation spans", "\n".join(each.to_json() for each in spans)


def test_without_content_a_marked_string_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    everything = Everything(content=False)

    everything.run()

    verdicts = {each.type: each.verdict for each in everything.evaluations}
    assert len(verdicts) == len(EVALUATORS)
    assert set(verdicts.values()) == {"fail", "skip", "error"}
    found = dict(everything.outputs())
    assert [name for name, text in found.items() if CANARY in text] == []
    assert all("shop" in text for text in found.values())
    assert CANARY not in caplog.text


def test_with_content_the_same_string_is_in_the_events_and_in_no_metric() -> None:
    everything = Everything(content=True)

    everything.run()

    found = dict(everything.outputs())
    assert [name for name, text in found.items() if CANARY in text] == [
        "log events",
        "evaluation spans",
    ]
