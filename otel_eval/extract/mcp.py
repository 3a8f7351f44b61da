"""The Model Context Protocol's SDKs: `mcp.method.name`; names only, no arguments, no results."""

from otel_eval.extract.common import text
from otel_eval.extract.dialect import Content, Reading, ToolReading
from otel_eval.extract.errors import error_of
from otel_eval.extract.genai import GenAI
from otel_eval.model import Span

_CALL = "tools/call"


class Mcp(GenAI):
    """Only `tools/call` is a tool call; the client names the tool in the span's name alone."""

    id = "mcp"

    def reads(self, span: Span) -> bool:
        return "mcp.method.name" in span.attributes

    def read(self, span: Span) -> Reading:
        if span.attributes["mcp.method.name"] != _CALL:
            return Reading()
        reading = super().read(span)
        reading.tool = reading.tool or self.tool(span)
        return reading

    def content(self, _span: Span) -> Content:
        return Content()

    def tool(self, span: Span) -> ToolReading | None:
        name = text(span.attributes.get("gen_ai.tool.name")) or _named(span)
        if name is None:
            return None
        reading = ToolReading(name=name, arguments=self.arguments(span), error=error_of(span))
        if reading.error is None:
            self.set_output(span, reading)
        return reading


def _named(span: Span) -> str | None:
    """`MCP send tools/call get_weather` and `tools/call get_weather`."""
    _, found, name = span.name.partition(_CALL + " ")
    return name if found and name else None
