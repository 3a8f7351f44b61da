"""OTLP trace requests in JSON: hex ids, 64-bit integers as text, enums as numbers.

Names in snake_case and enums by name are accepted too: protobuf's own JSON writers use them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import orjson

from otel_eval.decode.json_fields import double, integer, objects, one_object, text, what
from otel_eval.decode.json_fields import time as time_ns
from otel_eval.decode.terms import (
    KINDS,
    REMOTE,
    REMOTE_MASK,
    STATUS_CODES,
    MadeUp,
    span_id_of_text,
    trace_id_of_text,
)
from otel_eval.drafts import quick
from otel_eval.errors import DecodeError
from otel_eval.model import (
    NO_SCOPE,
    UNSET,
    Event,
    Json,
    Kind,
    Link,
    Scope,
    Span,
    Status,
    StatusCode,
)

Object = Mapping[str, Any]
RESOURCE_SPANS: Final = frozenset({"resourceSpans", "resource_spans"})
MAX_DEPTH: Final = 100
SCOPE_SPANS: Final = frozenset({"scopeSpans", "scope_spans"})
_Word = TypeVar("_Word", Kind, StatusCode)
_make_span = quick(Span)


def decode_json(body: bytes | str, *, made_up: MadeUp | None = None) -> list[Span]:
    """The spans of an ExportTraceServiceRequest, of TracesData or of one resourceSpans object."""
    return decode_document(load(body), made_up=made_up)


def load(body: bytes | str) -> Json:
    """JSON of any shape; everything that is none is a DecodeError."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "surrogate" in str(error):
            return _load_mended(body)
        raise DecodeError(f"no JSON ({error}); expected an OTLP/JSON trace request") from error


def _load_mended(body: bytes | str) -> Json:
    """Half a surrogate pair, as a length limit leaves it, must not cost the whole request."""
    try:
        return _mended(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"no JSON ({error}); expected an OTLP/JSON trace request") from error


def _mended(found: Json) -> Json:
    match found:
        case str():
            return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_mended(each) for each in found]
        case dict():
            return {_mended(key): _mended(each) for key, each in found.items()}
    return found


def decode_document(document: Json, *, made_up: MadeUp | None = None) -> list[Span]:
    """The spans of a parsed request."""
    if not isinstance(document, dict):
        raise DecodeError(
            f"{what(document)} where an OTLP/JSON trace request was expected: "
            'an object with "resourceSpans"'
        )
    return _spans(_request(document), made_up or MadeUp())


def _request(document: Object) -> Object:
    """One resourceSpans object may stand for the request that would hold it alone."""
    bare = document.keys() & SCOPE_SPANS and not document.keys() & RESOURCE_SPANS
    return {"resourceSpans": [document]} if bare else document


def _spans(request: Object, made_up: MadeUp) -> list[Span]:
    spans: list[Span] = []
    for group in objects(request, "resourceSpans", "resource_spans"):
        resource = _attributes(one_object(group, "resource"))
        for scoped in objects(group, "scopeSpans", "scope_spans"):
            scope = _scope(one_object(scoped, "scope"))
            spans.extend(
                [_span(span, resource, scope, made_up) for span in objects(scoped, "spans")]
            )
    return spans


def _scope(scope: Object) -> Scope:
    name, version = text(scope, "name"), text(scope, "version")
    return Scope(name=name, version=version) if name or version else NO_SCOPE


def _span(span: Object, resource: dict[str, Json], scope: Scope, made_up: MadeUp) -> Span:
    trace_id, span_id = _ids(span, made_up)
    parent_id = span_id_of_text(text(span, "parentSpanId", "parent_span_id"))
    return _make_span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        parent_remote=_remote(span) if parent_id else None,
        name=text(span, "name"),
        kind=_enum(span, "kind", KINDS),
        start_ns=time_ns(span, "startTimeUnixNano", "start_time_unix_nano"),
        end_ns=time_ns(span, "endTimeUnixNano", "end_time_unix_nano"),
        status=_status(one_object(span, "status")),
        attributes=_attributes(span),
        events=[_event(event) for event in objects(span, "events")] or (),
        links=[_link(link) for link in objects(span, "links")] or (),
        resource=resource,
        scope=scope,
    )


def _ids(span: Object, made_up: MadeUp) -> tuple[str, str]:
    trace_id = trace_id_of_text(text(span, "traceId", "trace_id"))
    span_id = span_id_of_text(text(span, "spanId", "span_id"))
    if trace_id and span_id:
        return trace_id, span_id
    return made_up.ids(trace_id, span_id)


def _remote(span: Object) -> bool | None:
    flags = span.get("flags")
    return None if flags is None else REMOTE[integer(flags, "flags") & REMOTE_MASK]


def _enum(owner: Object, key: str, words: dict[int, _Word]) -> _Word:
    """By number or by name, with or without its prefix; one of a later version means unset."""
    found = owner.get(key)
    if isinstance(found, str) and not found.isdecimal():
        name = found.lower()
        return next((word for word in words.values() if name.endswith(word)), words[0])
    return words[0] if found is None else words.get(integer(found, key), words[0])


def _status(status: Object) -> Status:
    code = _enum(status, "code", STATUS_CODES)
    message = text(status, "message")
    return Status(code=code, message=message) if message or code != "unset" else UNSET


def _event(event: Object) -> Event:
    return Event(
        name=text(event, "name"),
        time_ns=time_ns(event, "timeUnixNano", "time_unix_nano"),
        attributes=_attributes(event),
    )


def _link(link: Object) -> Link:
    return Link(
        trace_id=trace_id_of_text(text(link, "traceId", "trace_id")) or "",
        span_id=span_id_of_text(text(link, "spanId", "span_id")) or "",
        attributes=_attributes(link),
    )


def _attributes(owner: Object) -> dict[str, Json]:
    return _pairs(objects(owner, "attributes"))


def _pairs(pairs: list[dict[str, Any]], depth: int = 0) -> dict[str, Json]:
    return {text(pair, "key"): _value(one_object(pair, "value"), depth) for pair in pairs}


def _value(value: Object, depth: int) -> Json:
    """An AnyValue: an object whose one known key names the type. Without one it is null."""
    for key, found in value.items():
        if found is None:
            continue
        if read := _PLAIN.get(key):
            return read(found, key)
        if read_nested := _NESTED.get(key):
            return read_nested(_members(found, key, depth), depth + 1)
    return None


def _members(found: Json, key: str, depth: int) -> list[dict[str, Any]]:
    if depth == MAX_DEPTH:
        raise DecodeError(f"{key}: nested too deeply; expected at most {MAX_DEPTH} levels")
    return objects(one_object({key: found}, key), "values")


def _array(members: list[dict[str, Any]], depth: int) -> list[Json]:
    return [_value(each, depth) for each in members]


def _text(found: Json, key: str) -> str:
    if not isinstance(found, str):
        raise DecodeError(f"{key}: {what(found)} where text was expected")
    return found


def _bool(found: Json, key: str) -> bool:
    if not isinstance(found, bool):
        raise DecodeError(f"{key}: {what(found)} where true or false was expected")
    return found


_PLAIN: Final[dict[str, Callable[[Json, str], Json]]] = {
    "stringValue": _text,
    "string_value": _text,
    "intValue": integer,
    "int_value": integer,
    "boolValue": _bool,
    "bool_value": _bool,
    "doubleValue": double,
    "double_value": double,
    "bytesValue": _text,
    "bytes_value": _text,
}
_NESTED: Final[dict[str, Callable[[list[dict[str, Any]], int], Json]]] = {
    "arrayValue": _array,
    "array_value": _array,
    "kvlistValue": _pairs,
    "kvlist_value": _pairs,
}
