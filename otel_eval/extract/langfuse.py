"""Langfuse's SDK: `langfuse.observation.type`, `.input` as {args, kwargs}, `.output`."""

import re
from collections.abc import Sequence

from otel_eval.extract.common import first, model_call, number, parsed
from otel_eval.extract.dialect import Content, Reading, ToolReading, Turn
from otel_eval.extract.errors import error_of
from otel_eval.extract.messages import turn, turns
from otel_eval.extract.values import SPACED, value_or_text
from otel_eval.model import UNRECORDED, ModelCall, Recorded, Span

_TYPE = "langfuse.observation.type"
_INTEGER = re.compile(r"-?[1-9]\d{15,4000}")
_LARGEST = 2**53 - 1


class Langfuse:
    """Spans of decorated functions; the tool's name is the span's."""

    id = "langfuse"

    def reads(self, span: Span) -> bool:
        return _TYPE in span.attributes

    def read(self, span: Span) -> Reading:
        reading = Reading()
        reading.session = first(span.attributes, "session.id", "langfuse.session.id")
        match span.attributes[_TYPE]:
            case "tool":
                reading.tool = _tool(span)
            case "agent":
                reading.agent_span, reading.agent = True, span.name
            case "generation" | "embedding":
                reading.model = _model(span)
        return reading

    def content(self, span: Span) -> Content:
        given, output = _content(span, "input"), _content(span, "output")
        match span.attributes[_TYPE]:
            case "agent":
                return Content(input=_question(given), output=output)
            case "generation":
                return Content(inputs=turns(given), outputs=turns(output) or _spoken(output))
        return Content()


def _model(span: Span) -> ModelCall:
    usage = parsed(span.attributes.get("langfuse.observation.usage_details"))
    usage = usage if isinstance(usage, dict) else {}
    return model_call(
        span,
        first(span.attributes, "langfuse.observation.model.name"),
        number(usage, "input", "prompt_tokens", "input_tokens"),
        number(usage, "output", "completion_tokens", "output_tokens"),
    )


def _tool(span: Span) -> ToolReading:
    error = error_of(span)
    return ToolReading(
        name=span.name,
        arguments=_arguments(_content(span, "input")),
        output=_content(span, "output") if error is None else UNRECORDED,
        error=error,
    )


def _content(span: Span, side: str) -> Recorded:
    """Texts are written as they are, and None is not written at all.

    Integers that JavaScript cannot hold are written as JSON strings: so a number of that size is
    text, its JSON string is a number, and inside an object nobody can tell.
    """
    raw = span.attributes.get(f"langfuse.observation.{side}", UNRECORDED)
    if not isinstance(raw, str) or raw == "null":
        return raw
    if _is_large(raw.strip('"')):
        return raw if _is_large(raw) else int(raw.strip('"'))
    is_python = span.resource.get("telemetry.sdk.language") == "python"
    found = value_or_text(raw, SPACED) if is_python else value_or_text(raw)
    return UNRECORDED if found != raw and _holds_large(found) else found


def _is_large(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and abs(int(text)) > _LARGEST


def _holds_large(value: Recorded) -> bool:
    match value:
        case str():
            return _is_large(value)
        case list():
            return any(map(_holds_large, value))
        case dict():
            return any(map(_holds_large, value.values()))
    return False


def _arguments(given: Recorded) -> Recorded:
    match given:
        case {"args": [], "kwargs": dict(named), **rest} if not rest:
            return named
        case {"args": list(), "kwargs": dict(), **rest} if not rest:
            return UNRECORDED  # positional: their names are not recorded
    return given


def _question(given: Recorded) -> Recorded:
    match given:
        case {"args": [only], "kwargs": {**named}} if not named:
            return only
    return given


def _spoken(output: Recorded) -> Sequence[Turn]:
    return [turn({"role": "assistant", "content": output})] if isinstance(output, str) else []
