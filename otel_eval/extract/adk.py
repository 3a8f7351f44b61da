"""Google's Agent Development Kit: GenAI names, with the content in `gcp.vertex.agent.*`."""

from otel_eval.extract.common import parsed, tool_definitions
from otel_eval.extract.dialect import Content, Reading, ToolReading
from otel_eval.extract.genai import GenAI, answered, asked
from otel_eval.extract.messages import turns
from otel_eval.extract.values import json_value
from otel_eval.model import UNRECORDED, Json, Recorded, Span

_PREFIX = "gcp.vertex.agent."
_PLACEHOLDERS = ("<not serializable>", "<not specified>")
_CONTENT = ("tool_call_args", "tool_response")
"""Both are `{}` where ADK is told to keep content out of its spans."""


class Adk(GenAI):
    """A result that is no object is wrapped as {"result": …}; a failure answers {"error": …}."""

    id = "adk"
    runs_tools = True

    def reads(self, span: Span) -> bool:
        return span.scope.name == "gcp.vertex.agent" or _PREFIX + "event_id" in span.attributes

    def read(self, span: Span) -> Reading:
        reading = super().read(span)
        reading.session = reading.session or _session(span)
        return reading

    def content(self, span: Span) -> Content:
        content = super().content(span)
        request = parsed(span.attributes.get(_PREFIX + "llm_request"))
        if isinstance(request, dict):
            content.inputs = turns(request.get("contents"), self.answer)
            config = request.get("config")
            if isinstance(config, dict):
                content.tools = tool_definitions(config.get("tools")) or content.tools
        response = parsed(span.attributes.get(_PREFIX + "llm_response"))
        if isinstance(response, dict) and response.get("content"):
            content.outputs = turns(response["content"])
        content.input, content.output = asked(content.inputs), answered(content.outputs)
        return content

    def answer(self, raw: Json) -> tuple[Recorded, bool]:
        return _unwrapped(raw), True

    def tool(self, span: Span) -> ToolReading | None:
        reading = super().tool(span)
        if reading is not None and reading.call_id in _PLACEHOLDERS:
            reading.call_id = None
        return reading

    def arguments(self, span: Span) -> Recorded:
        return _content(span, _PREFIX + "tool_call_args", "gen_ai.tool.call.arguments")

    def set_output(self, span: Span, reading: ToolReading) -> None:
        output = _content(span, _PREFIX + "tool_response", "gen_ai.tool.call.result")
        reading.output = _unwrapped(output)
        if isinstance(output, dict) and set(output) == {"error"}:
            reading.error = str(output["error"])
            reading.output = UNRECORDED


def _content(span: Span, own: str, common: str) -> Recorded:
    """ADK's own attribute, else the conventions'. A value with a hole in it is no value."""
    attributes = span.attributes
    hidden = all(attributes.get(_PREFIX + key, "{}") == "{}" for key in _CONTENT)
    raw = attributes.get(common if hidden else own, UNRECORDED)
    if isinstance(raw, str) and any(word in raw for word in _PLACEHOLDERS):
        return UNRECORDED
    return json_value(raw)


def _unwrapped(output: Recorded) -> Recorded:
    """Only what is no object is wrapped: an object under `result` is the tool's own answer."""
    if isinstance(output, dict) and output.keys() == {"result"}:
        inner = output["result"]
        return output if isinstance(inner, dict) else inner
    return output


def _session(span: Span) -> str | None:
    raw = span.attributes.get(_PREFIX + "session_id")
    return raw if isinstance(raw, str) and raw else None
