"""The table of dialects. The first that reads a span has it, unless another finds a call in it."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from otel_eval.extract.adk import Adk
from otel_eval.extract.agent_framework import AgentFramework
from otel_eval.extract.dialect import Content, Dialect, Reading
from otel_eval.extract.genai import GenAI
from otel_eval.extract.langfuse import Langfuse
from otel_eval.extract.mcp import Mcp
from otel_eval.extract.mlflow import MLflow
from otel_eval.extract.openinference import OpenInference
from otel_eval.extract.plain import Plain
from otel_eval.extract.pydantic_ai import PydanticAI
from otel_eval.extract.semantic_kernel import SemanticKernel
from otel_eval.extract.strands import Strands
from otel_eval.extract.traceloop import Traceloop
from otel_eval.extract.vercel import Vercel, VercelGenAI
from otel_eval.model import Span

DIALECTS: Sequence[Dialect] = (
    Vercel(),
    Langfuse(),
    MLflow(),
    Traceloop(),
    Adk(),
    Mcp(),
    OpenInference(),
    PydanticAI(),
    Strands(),
    AgentFramework(),
    SemanticKernel(),
    VercelGenAI(),
    GenAI(),
    Plain(),
)

Kind: TypeAlias = tuple[str, tuple[str, ...]]
"""The scope and the keys of a span."""

NOTHING: Final = Reading()
MOST_KNOWN: Final = 1024
_KNOWN: Final[dict[Kind, Sequence[Dialect]]] = {}
_NO_CONTENT: Final = Content()


def read(span: Span) -> tuple[Dialect | None, Reading]:
    """The dialect that wrote a span and what the span is; None for spans that are no agent's.

    One library's attributes may lie on another's tool span, so a span in which the first dialect
    finds nothing is shown to the others.
    """
    kind = span.scope.name, tuple(span.attributes)
    readers = _asked(span) if span.events else _KNOWN.get(kind)
    if readers is None:
        readers = _learned(span, kind)
    if len(readers) == 1:
        only = readers[0]
        return only, only.read(span)
    first: tuple[Dialect, Reading] | None = None
    for dialect in readers:
        reading = dialect.read(span)
        if reading.tool is not None or (first is None and reading.is_something):
            return dialect, reading
        first = first or (dialect, reading)
    return first or (None, NOTHING)


def _learned(span: Span, kind: Kind) -> Sequence[Dialect]:
    """Asked once for spans of the same scope and keys: there are few kinds of them."""
    if len(_KNOWN) >= MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[kind] = found = _asked(span)
    return found


def _asked(span: Span) -> Sequence[Dialect]:
    return [dialect for dialect in DIALECTS if dialect.reads(span)]


class Contents:
    """What spans say beyond their tool calls, parsed when asked for and only once."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        """`dialects`: of each span that has one, by its id."""
        self._dialects = dialects
        self._known: dict[str, Content] = {}

    def of(self, span: Span) -> Content:
        known = self._known.get(span.span_id)
        if known is None:
            dialect = self._dialects.get(span.span_id)
            known = _NO_CONTENT if dialect is None else dialect.content(span)
            self._known[span.span_id] = known
        return known
