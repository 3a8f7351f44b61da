"""Small readers that several dialects share."""

import math
from collections.abc import Iterable, Mapping, Sequence

from otel_eval.drafts import quick
from otel_eval.model import Attributes, Json, ModelCall, Span, Tool
from otel_eval.texts import NotJson, loads

_model_call = quick(ModelCall)


def text(raw: Json) -> str | None:
    """A non-empty text, or nothing."""
    return raw if isinstance(raw, str) and raw else None


def number(attributes: Attributes, *keys: str) -> int | None:
    """The first of these attributes that is a count."""
    for key in keys:
        raw = attributes.get(key)
        if type(raw) is int:
            return raw
        if isinstance(raw, float) and math.isfinite(raw):
            return int(raw)
    return None


def first(attributes: Attributes, *keys: str) -> str | None:
    """The first of these attributes that is a non-empty text."""
    for key in keys:
        if key in attributes:
            raw = attributes[key]
            if raw and isinstance(raw, str):
                return raw
    return None


def parsed(raw: Json) -> Json:
    """JSON text as its value; anything else as it is; None where the text is no JSON."""
    if not isinstance(raw, str):
        return raw
    try:
        return loads(raw)
    except NotJson:
        return None


def model_call(
    span: Span, model: str | None, input_tokens: int | None, output_tokens: int | None
) -> ModelCall:
    """The span as a model call."""
    return _model_call(
        model=model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        span_id=span.span_id,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
    )


def tool_definitions(raw: Json) -> Sequence[Tool]:
    """Tool definitions in the usual shapes: a list, its JSON text, or a list of JSON texts."""
    listed = parsed(raw)
    if isinstance(listed, Mapping):
        listed = listed.get("tools", [listed])
    if not isinstance(listed, list):
        return ()
    return [tool for each in listed for tool in _tools(parsed(each) if _is_json(each) else each)]


def _tools(raw: Json) -> Iterable[Tool]:
    if isinstance(raw, str) and raw:
        yield Tool(name=raw)
    if not isinstance(raw, Mapping):
        return
    for key in ("function_declarations", "functionDeclarations"):
        for each in raw.get(key) or ():
            yield from _tools(each)
    inner = raw.get("function") or raw.get("toolSpec") or raw
    if not isinstance(inner, Mapping):
        return
    name = text(inner.get("name"))
    if name:
        yield Tool(
            name=name, description=text(inner.get("description")), parameters=_parameters(inner)
        )


def _parameters(tool: Mapping[str, Json]) -> Json:
    for key in ("parameters", "inputSchema", "input_schema", "parameters_json_schema"):
        if tool.get(key) is not None:
            found = parsed(tool[key])
            return found.get("json", found) if isinstance(found, Mapping) else found
    return None


def _is_json(raw: Json) -> bool:
    return isinstance(raw, str) and raw.lstrip().startswith("{")
