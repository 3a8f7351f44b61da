"""semantic-kernel: a result is what Python's `str()` makes of it."""

from otel_eval.extract.dialect import ToolReading
from otel_eval.extract.genai import GenAI
from otel_eval.extract.values import stringified
from otel_eval.model import Json, Span


class SemanticKernel(GenAI):
    """`None`, `True` and `{'a': 1}` are values; what `str()` would not write is text."""

    runs_tools = True

    def reads(self, span: Span) -> bool:
        return span.scope.name.startswith("semantic_kernel")

    def read_result(self, raw: Json, reading: ToolReading) -> None:
        reading.output = stringified(raw) if isinstance(raw, str) else raw
