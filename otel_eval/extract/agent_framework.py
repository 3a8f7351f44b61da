"""Microsoft's agent-framework: texts as they are, all else as JSON, None as an object's name."""

from otel_eval.extract.dialect import ToolReading
from otel_eval.extract.genai import GenAI
from otel_eval.extract.values import SPACED, value_or_text
from otel_eval.model import UNRECORDED, Json, Recorded, Span


class AgentFramework(GenAI):
    """None is never written as `null`, so `null` is text."""

    runs_tools = True

    def reads(self, span: Span) -> bool:
        return span.scope.name.startswith("agent_framework")

    def answer(self, raw: Json) -> tuple[Recorded, bool]:
        """Nothing is written for None, and for an empty text."""
        return (UNRECORDED if raw in (None, "") else _value(raw)), False

    def arguments(self, span: Span) -> Recorded:
        arguments = super().arguments(span)
        return {} if arguments == "None" else arguments

    def read_result(self, raw: Json, reading: ToolReading) -> None:
        reading.output = _value(raw)


def _value(raw: Json) -> Recorded:
    return raw if raw == "null" else value_or_text(raw, SPACED)
