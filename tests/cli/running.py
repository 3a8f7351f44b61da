"""The command line as a user runs it, with a terminal of a known width."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from otel_eval.cli import main

SNAPSHOTS = Path(__file__).parent / "snapshots"

RULES = """\
rules:
  - name: booking
    match: {agent: "travel*"}
    pass_at: 0.8
    evaluators:
      - {type: tool-call-order, tool_calls_order: [book_hotel, check_rate, pay]}
      - {type: tool-call-count, tool_calls_count: {book_hotel: ["=", 1], check_rate: ["=", 1]}}
      - {type: tool-call-args, tool_calls: [{name: book_hotel, args: {nights: 4}}]}
      - {type: tool-call-output, tool_outputs: [{name: check_rate, output: 5}]}
      - {type: tool-call-accuracy, expected: [{tool: check_rate, args: {hotel: Hotel Änne}}]}
      - {type: trajectory-match, expected: [check_rate, book_hotel], partial: true}
      - {type: tool-budget, max_calls: 2, max_tokens: 10}
      - {type: tool-allowlist, allowed: ["check_*"], required: [pay]}
      - {type: tool-error-rate}
      - {type: tool-loop}
  - name: conversation
    per: session
    evaluators: [{type: tool-error-rate}]
  - name: other-agent
    match: {agent: "weather-*"}
    evaluators: [{type: tool-error-rate}]
  - name: other-service
    match: {service: billing}
    evaluators: [{type: tool-error-rate}]
  - name: production
    match: {attributes: {deployment.environment.name: prod}}
    evaluators: [{type: tool-error-rate}]
"""


def run(*words: str, stdin: bytes | None = None, **env: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "140", **env})
    return runner.invoke(main, list(words), input=stdin, prog_name="otel-eval")


def records(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def snapshot(name: str) -> str:
    return (SNAPSHOTS / name).read_text(encoding="utf-8")


def otlp(spans: Sequence[dict[str, Any]], service: str = "app") -> str:
    """One line of the Collector's file exporter."""
    attribute = {"key": "service.name", "value": {"stringValue": service}}
    scope_spans = [{"scope": {"name": "test"}, "spans": list(spans)}]
    resource_spans = {"resource": {"attributes": [attribute]}, "scopeSpans": scope_spans}
    return json.dumps({"resourceSpans": [resource_spans]}) + "\n"


def otlp_span(trace: int, number: int, parent: int | None = None, **texts: str) -> dict[str, Any]:
    """A span that takes a second; the keywords are its attributes, `__` for a dot."""
    span: dict[str, Any] = {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "name": texts.get("tool__name", "work"),
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str((number + 1) * 10**9),
        "attributes": [
            {"key": key.replace("__", "."), "value": {"stringValue": text}}
            for key, text in texts.items()
        ],
    }
    if parent is not None:
        span["parentSpanId"] = f"{parent:016x}"
    return span


def agent_trace(trace: int, tools: Sequence[str], agent: str = "helper", **texts: str) -> str:
    """An agent's span around one span per tool."""
    root = {
        **texts,
        "openinference__span__kind": "AGENT",
        "agent__name": agent,
    }
    kind = {"openinference__span__kind": "TOOL"}
    spans = [otlp_span(trace, 1, None, **root)]
    spans += [
        otlp_span(trace, at, 1, tool__name=tool, input__value="{}", output__value="1", **kind)
        for at, tool in enumerate(tools, start=2)
    ]
    return otlp(spans)
