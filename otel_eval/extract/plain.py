"""Spans written by hand: `tool.name`, `input.value`, `output.value`, and UiPath's decorator."""

from otel_eval.extract.common import first, text
from otel_eval.extract.dialect import Content, Reading, ToolReading
from otel_eval.extract.errors import error_of
from otel_eval.extract.values import json_value, value
from otel_eval.model import UNRECORDED, Recorded, Span

_KEYS = ("tool.name", "agent.name", "input.value", "output.value")


class Plain:
    """The least a span can say about a tool call."""

    id = "plain"

    def reads(self, span: Span) -> bool:
        return any(key in span.attributes for key in _KEYS)

    def read(self, span: Span) -> Reading:
        attributes = span.attributes
        reading = Reading()
        reading.agent = text(attributes.get("agent.name"))
        name = text(attributes.get("tool.name"))
        if name:
            reading.tool = _tool(span, name)
        elif reading.agent or _is_uipath_entry(span):
            reading.agent_span = True
            reading.agent = reading.agent or span.name
        return reading

    def content(self, span: Span) -> Content:
        return Content(input=_content(span, "input"), output=_content(span, "output"))


def _content(span: Span, side: str) -> Recorded:
    raw = span.attributes.get(f"{side}.value", UNRECORDED)
    if span.scope.name.startswith("uipath") and span.attributes.get(f"{side}.mime_type"):
        return json_value(raw)
    return value(raw)


def _tool(span: Span, name: str) -> ToolReading:
    error = error_of(span)
    return ToolReading(
        name=name,
        call_id=first(span.attributes, "tool_call.id", "tool.call_id"),
        arguments=_content(span, "input"),
        output=_content(span, "output") if error is None else UNRECORDED,
        error=error,
    )


def _is_uipath_entry(span: Span) -> bool:
    """UiPath's traced entry function is the agent; nothing else names it."""
    return span.scope.name.startswith("uipath") and span.parent_id is None
