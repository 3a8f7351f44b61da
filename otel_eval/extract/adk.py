"""Google's Agent Development Kit: GenAI names, with the content in `gcp.vertex.agent.*`."""

from otel_eval.extract.common import parsed, tool_definitions
from otel_eval.extract.dialect import Content, Reading, ToolReading
from otel_eval.extract.genai import GenAI, answered, asked
from otel_eval.extract.messages import turns
from otel_eval.extract.values import json_value
from otel_eval.model import UNRECORDED, Json, Recorded, Span

_PREFIX = "gcp.vertex.agent."
_PLACEHOLDERS = ("<not serializable>", "<not specified>")


class Adk(GenAI):
    """A result that is no object is wrapped as {"result": …}; a failure answers {"error": …}."""

    id = "adk"

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

    def arguments(self, span: Span) -> Recorded:
        raw = span.attributes.get(_PREFIX + "tool_call_args")
        if raw is None or (raw == "{}" and "gen_ai.tool.call.arguments" in span.attributes):
            return super().arguments(span)
        arguments = json_value(raw)
        return UNRECORDED if arguments in _PLACEHOLDERS else arguments

    def set_output(self, span: Span, reading: ToolReading) -> None:
        for key in (_PREFIX + "tool_response", "gen_ai.tool.call.result"):
            if key in span.attributes:
                output = json_value(span.attributes[key])
                if output in _PLACEHOLDERS:
                    output = UNRECORDED
                reading.output = _unwrapped(output)
                if isinstance(output, dict) and set(output) == {"error"}:
                    reading.error = str(output["error"])
                    reading.output = UNRECORDED
                return


def _unwrapped(output: Recorded) -> Recorded:
    if isinstance(output, dict) and set(output) == {"result"}:
        return output["result"]
    return output


def _session(span: Span) -> str | None:
    raw = span.attributes.get(_PREFIX + "session_id")
    return raw if isinstance(raw, str) and raw else None
