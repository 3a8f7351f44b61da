"""Vercel's AI SDK: `ai.*` up to version 6, GenAI names since version 7. Always exact JSON."""

from collections.abc import Sequence

from otel_eval.extract.common import first, model_call, number, parsed, text, tool_definitions
from otel_eval.extract.dialect import Content, Reading, ToolReading, Turn
from otel_eval.extract.errors import error_of
from otel_eval.extract.genai import GenAI
from otel_eval.extract.messages import turn, turns
from otel_eval.extract.values import json_value
from otel_eval.model import UNRECORDED, Json, ModelCall, Recorded, Span

_SESSION = ("ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.session_id")


class Vercel:
    """The outer span of an operation is the agent's run; its `.do…` spans are the model calls."""

    id = "vercel"

    def reads(self, span: Span) -> bool:
        return "ai.operationId" in span.attributes

    def read(self, span: Span) -> Reading:
        attributes = span.attributes
        operation = str(attributes["ai.operationId"])
        reading = Reading()
        reading.agent = text(attributes.get("ai.telemetry.functionId"))
        reading.session = first(attributes, *_SESSION)
        if operation == "ai.toolCall":
            reading.tool = _tool(span)
        elif ".do" in operation:
            reading.model = _model(span)
        else:
            reading.agent_span = True
        return reading

    def content(self, span: Span) -> Content:
        attributes = span.attributes
        content = Content(tools=tool_definitions(attributes.get("ai.prompt.tools")))
        if ".do" in str(attributes["ai.operationId"]):
            content.inputs = turns(attributes.get("ai.prompt.messages"), _answer)
            content.outputs = _spoken(span)
        else:
            content.input = _question(span)
            content.output = attributes.get("ai.response.text", UNRECORDED)
        return content


class VercelGenAI(GenAI):
    """Version 7, whose scope is `gen_ai`."""

    id = "vercel"

    def reads(self, span: Span) -> bool:
        return span.scope.name == "gen_ai"

    def read(self, span: Span) -> Reading:
        reading = super().read(span)
        reading.session = text(span.attributes.get("ai.settings.context.sessionId"))
        return reading

    def answer(self, raw: Json) -> tuple[Recorded, bool]:
        return raw, True

    def read_result(self, raw: Json, reading: ToolReading) -> None:
        reading.output = json_value(raw)


def _tool(span: Span) -> ToolReading | None:
    attributes = span.attributes
    name = text(attributes.get("ai.toolCall.name"))
    if name is None:
        return None
    error = error_of(span)
    return ToolReading(
        name=name,
        call_id=text(attributes.get("ai.toolCall.id")),
        arguments=_value(span, "ai.toolCall.args"),
        output=_value(span, "ai.toolCall.result") if error is None else UNRECORDED,
        error=error,
    )


def _value(span: Span, key: str) -> Recorded:
    return json_value(span.attributes.get(key, UNRECORDED))


def _model(span: Span) -> ModelCall:
    attributes = span.attributes
    return model_call(
        span,
        first(attributes, "ai.response.model", "ai.model.id"),
        number(attributes, "ai.usage.inputTokens", "ai.usage.promptTokens"),
        number(attributes, "ai.usage.outputTokens", "ai.usage.completionTokens"),
    )


def _spoken(span: Span) -> Sequence[Turn]:
    attributes = span.attributes
    calls = parsed(attributes.get("ai.response.toolCalls"))
    calls = calls if isinstance(calls, list) else []
    blocks = [{"type": "tool_call", **call} for call in calls if isinstance(call, dict)]
    words = text(attributes.get("ai.response.text"))
    if words:
        blocks.insert(0, {"type": "text", "text": words})
    return [turn({"role": "assistant", "content": blocks})] if blocks else ()


def _answer(raw: Json) -> tuple[Recorded, bool]:
    """{type: text | json, value}; version 4 wrote the bare value."""
    if isinstance(raw, dict) and set(raw) == {"type", "value"}:
        return raw["value"], True
    return raw, True


def _question(span: Span) -> Recorded:
    prompt = parsed(span.attributes.get("ai.prompt"))
    if not isinstance(prompt, dict):
        return UNRECORDED
    asked = [each for each in turns(prompt.get("messages")) if each.role == "user"]
    return text(prompt.get("prompt")) or (asked[-1].text if asked else UNRECORDED)
