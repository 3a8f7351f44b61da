"""pydantic-ai: texts as they are, all else as JSON; its messages keep the type."""

from otel_eval.extract.dialect import ToolReading
from otel_eval.extract.genai import GenAI
from otel_eval.extract.values import COMPACT, value_or_text
from otel_eval.model import Json, Recorded, Span


class PydanticAI(GenAI):
    """A text that looks like JSON may be either: a later message with the same id decides."""

    runs_tools = True

    def reads(self, span: Span) -> bool:
        return span.scope.name == "pydantic-ai"

    def answer(self, raw: Json) -> tuple[Recorded, bool]:
        return raw, True

    def read_result(self, raw: Json, reading: ToolReading) -> None:
        reading.output = value_or_text(raw, COMPACT)
        reading.output_sure = reading.output == raw
