"""Spans of the OpenTelemetry SDK. Reads them by shape and imports nothing of the SDK or OTLP."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from otel_eval.decode.terms import KINDS, STATUS_CODES, MadeUp
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

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_make_span = quick(Span)
_INT64: Final = range(-(2**63), 2**63)
_KINDS: Final[dict[str, Kind]] = {kind.upper(): kind for kind in KINDS.values()}
_CODES: Final[dict[str, StatusCode]] = {code.upper(): code for code in STATUS_CODES.values()}


def decode_sdk(spans: Iterable[ReadableSpan], *, made_up: MadeUp | None = None) -> list[Span]:
    """ReadableSpans in the model's terms. Those without a context get made-up ids."""
    reader = SdkReader(made_up or MadeUp())
    return [reader.read(span) for span in spans]


class SdkReader:
    """Reads the spans of one list; what they have in common is built once."""

    def __init__(self, made_up: MadeUp) -> None:
        self._made_up = made_up
        # Keyed by identity, with the original kept alive so that no id is used again.
        self._resources: dict[int, tuple[Any, dict[str, Json]]] = {}
        self._scopes: dict[int, tuple[Any, Scope]] = {}

    def read(self, span: ReadableSpan) -> Span:
        try:
            return self._span(span)
        except RecursionError:
            raise DecodeError("attribute values are nested too deeply to be read") from None

    def _span(self, span: ReadableSpan) -> Span:
        trace_id, span_id = self._ids(span.get_span_context())
        parent_id = _hex(span.parent.span_id, 16) if span.parent else None
        return _make_span(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent_id,
            parent_remote=_remote(span.parent) if parent_id else None,
            name=span.name,
            kind=_KINDS.get(span.kind.name, "unspecified"),
            start_ns=_time(span.start_time),
            end_ns=_time(span.end_time),
            status=_status(span.status),
            attributes=_attributes(span.attributes),
            events=[_event(event) for event in span.events] or (),
            links=[_link(link) for link in span.links] or (),
            resource=self._resource(span.resource),
            scope=self._scope(span.instrumentation_scope),
        )

    def _ids(self, context: Any) -> tuple[str, str]:
        trace_id = _hex(context.trace_id, 32) if context else None
        span_id = _hex(context.span_id, 16) if context else None
        if trace_id and span_id:
            return trace_id, span_id
        return self._made_up.ids(trace_id, span_id)

    def _resource(self, resource: Any) -> dict[str, Json]:
        if id(resource) not in self._resources:
            attributes = _attributes(resource.attributes) if resource else {}
            self._resources[id(resource)] = resource, attributes
        return self._resources[id(resource)][1]

    def _scope(self, scope: Any) -> Scope:
        if scope is None:
            return NO_SCOPE
        if id(scope) not in self._scopes:
            made = Scope(name=scope.name or "", version=scope.version or "")
            self._scopes[id(scope)] = scope, made
        return self._scopes[id(scope)][1]


def _hex(number: int, digits: int) -> str | None:
    return f"{number:0{digits}x}" if 0 < number < 16**digits else None


def _remote(parent: Any) -> bool | None:
    return None if parent.is_remote is None else bool(parent.is_remote)


def _time(given: float | None) -> int:
    """Nanoseconds; `time.time() * 1e9` is no whole number, but the SDK takes it."""
    return int(given or 0)


def _status(status: Any) -> Status:
    if status is None:
        return UNSET
    code = _CODES.get(status.status_code.name, "unset")
    if code == "unset" and not status.description:
        return UNSET
    return Status(code=code, message=status.description or "")


def _event(event: Any) -> Event:
    return Event(
        name=event.name, time_ns=_time(event.timestamp), attributes=_attributes(event.attributes)
    )


def _link(link: Any) -> Link:
    return Link(
        trace_id=_hex(link.context.trace_id, 32) or "",
        span_id=_hex(link.context.span_id, 16) or "",
        attributes=_attributes(link.attributes),
    )


def _attributes(attributes: Mapping[Any, Any] | None) -> dict[str, Json]:
    if not attributes:
        return {}
    return {
        key if type(key) is str else str(key): _value(value) for key, value in attributes.items()
    }


def _value(value: Any) -> Json:
    """Values as OTLP would have carried them; what it cannot carry becomes text."""
    match value:
        case str():
            return str.__str__(value) if value.isascii() else _unicode(value)
        case None | bool():
            return value
        case int():
            # A range searches number by number for anything but an exact int.
            return number if (number := int(value)) in _INT64 else _text(number)
        case float():
            return float(value)
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case Mapping():
            return _attributes(value)
        case Sequence() | set() | frozenset():
            return [_value(each) for each in value]
        case _:
            return _text(value)


def _unicode(text: str) -> str:
    """Half a surrogate pair, as a model's text cut in the middle has, cannot be written out."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(value: object) -> str:
    try:
        return _unicode(str(value))
    except Exception:  # the application's own class; no span is worth losing for it
        return f"<{type(value).__name__}>"
