"""Traceloop's OpenLLMetry: GenAI names, `traceloop.*` kinds, and LangChain's own envelopes."""

from typing import Any

from otel_eval.extract.common import first, parsed, text
from otel_eval.extract.dialect import Content, Reading, ToolReading
from otel_eval.extract.errors import error_of
from otel_eval.extract.genai import GenAI
from otel_eval.extract.messages import dispatched
from otel_eval.extract.values import SPACED, json_value, literal, value, value_or_text
from otel_eval.model import UNRECORDED, Json, Recorded, Span

_PROPERTY = "traceloop.association.properties."


class Traceloop(GenAI):
    """`traceloop.span.kind` says what a span is; the content is an envelope around the value."""

    id = "traceloop"

    def reads(self, span: Span) -> bool:
        attributes = span.attributes
        return "traceloop.span.kind" in attributes or "traceloop.workflow.name" in attributes

    def read(self, span: Span) -> Reading:
        attributes = span.attributes
        reading = super().read(span)
        reading.agent = reading.agent or text(attributes.get(_PROPERTY + "lc_agent_name"))
        reading.session = first(attributes, _PROPERTY + "session_id", _PROPERTY + "thread_id")
        reading.runs_tools = span.scope.name.endswith("langchain")
        kind = attributes.get("traceloop.span.kind")
        if kind == "tool":
            reading.tool = self.tool(span)
        elif kind == "agent":
            reading.agent_span = True
            reading.agent = reading.agent or text(attributes.get("traceloop.entity.name"))
        return reading

    def content(self, span: Span) -> Content:
        content = super().content(span)
        if span.attributes.get("traceloop.span.kind") == "task":
            envelope = parsed(span.attributes.get("traceloop.entity.input"))
            calls = envelope.get("inputs") if isinstance(envelope, dict) else None
            content.requests = dispatched(calls)
        return content

    def answer(self, raw: Json) -> tuple[Recorded, bool]:
        return value_or_text(raw, SPACED), False

    def tool(self, span: Span) -> ToolReading | None:
        attributes = span.attributes
        name = first(attributes, "gen_ai.tool.name", "traceloop.entity.name")
        if name is None:
            return None
        reading = ToolReading(
            name=name,
            call_id=text(attributes.get("gen_ai.tool.call.id")),
            arguments=_arguments(span),
            error=error_of(span),
        )
        _set_output(span, reading)
        if reading.error is not None:
            reading.output = UNRECORDED
        return reading


def _content(span: Span, *keys: str) -> Recorded:
    for key in keys:
        if key in span.attributes:
            return json_value(span.attributes[key])
    return UNRECORDED


def _arguments(span: Span) -> Recorded:
    envelope = _content(span, "gen_ai.tool.call.arguments", "traceloop.entity.input")
    if not isinstance(envelope, dict):
        return envelope
    given = envelope.get("input_str")
    if isinstance(given, str):
        inputs = envelope.get("inputs")
        if isinstance(inputs, dict) and set(inputs) != {"input"}:
            return inputs
        arguments = literal(given)
        return arguments if isinstance(arguments, dict) else UNRECORDED
    positional, named = envelope.get("args"), envelope.get("kwargs")
    if isinstance(positional, list) and isinstance(named, dict):  # the @tool decorator
        return UNRECORDED if positional else named
    return envelope


def _set_output(span: Span, reading: ToolReading) -> None:
    envelope = _content(span, "gen_ai.tool.call.result", "traceloop.entity.output")
    reading.output = envelope
    if not isinstance(envelope, dict) or "output" not in envelope:
        return
    inner = envelope["output"]
    message = inner.get("kwargs") if isinstance(inner, dict) and "lc" in inner else None
    if isinstance(message, dict):
        _from_message(message, reading)
    elif "kwargs" in envelope and span.scope.name.endswith("langchain"):
        reading.output = value(inner)


def _from_message(message: dict[str, Any], reading: ToolReading) -> None:
    reading.call_id = reading.call_id or text(message.get("tool_call_id"))
    reading.output = value_or_text(message.get("content", UNRECORDED), SPACED)
    if message.get("status") == "error":
        reading.error = reading.error or str(message.get("content"))
