"""strands: results are lists of Bedrock's blocks, `[{"text": …}]`."""

from otel_eval.extract.common import parsed
from otel_eval.extract.dialect import ToolReading
from otel_eval.extract.genai import GenAI
from otel_eval.extract.messages import text_blocks
from otel_eval.extract.values import SPACED
from otel_eval.model import Json, Recorded, Span


class Strands(GenAI):
    """Texts stand in the blocks as they are, all else as JSON."""

    runs_tools = True

    def reads(self, span: Span) -> bool:
        return span.scope.name.startswith("strands")

    def answer(self, raw: Json) -> tuple[Recorded, bool]:
        return text_blocks(raw, SPACED), False

    def read_result(self, raw: Json, reading: ToolReading) -> None:
        reading.output = text_blocks(parsed(raw), SPACED)
