"""OTLP trace requests in protobuf. A hot path: every span of a sidecar passes through here."""

from base64 import b64encode
from collections.abc import Callable, Iterable
from sys import intern
from typing import Any, Final

from google.protobuf.message import DecodeError as ProtobufError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from otel_eval.decode.compiled import decode_natively
from otel_eval.decode.otlp_json import decode_json
from otel_eval.decode.terms import KINDS, REMOTE, REMOTE_MASK, STATUS_CODES, MadeUp
from otel_eval.decode.wire import TracesData
from otel_eval.errors import DecodeError
from otel_eval.model import NO_SCOPE, UNSET, Event, Json, Link, Scope, Span, Status

_ZERO_TRACE_ID: Final = bytes(16)
_ZERO_SPAN_ID: Final = bytes(8)
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})

LONGEST_KEPT: Final = 48
MOST_KEPT: Final = 4096
"""How many attributes are remembered, and up to which size in bytes."""
_FRAME: Final = 6
"""The tags and lengths of a short key, of its value and of a short text in that."""


def decode_otlp(body: bytes, *, made_up: MadeUp | None = None) -> list[Span]:
    """The spans of a request in either encoding, told apart by its content."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return decode_protobuf(body, made_up=made_up)
    try:
        return decode_json(body, made_up=made_up)
    except DecodeError:
        # A protobuf request starts with a line feed, and its first length may read as a brace.
        if not body.startswith(b"\n"):
            raise
        return decode_protobuf(body, made_up=made_up)


def decode_protobuf(body: bytes, *, made_up: MadeUp | None = None) -> list[Span]:
    """The spans of an ExportTraceServiceRequest or, the same on the wire, a TracesData."""
    if decode_natively is not None and (spans := decode_natively(body)) is not None:
        return spans
    return decode_in_python(body, made_up=made_up)


def decode_in_python(body: bytes, *, made_up: MadeUp | None = None) -> list[Span]:
    """What the compiled decoder is measured against, and does not know how to do."""
    try:
        return _spans(TracesData.FromString(body), made_up or MadeUp())
    except (ProtobufError, UnicodeDecodeError) as error:
        raise DecodeError(
            f"{len(body)} bytes that are no OTLP protobuf trace request "
            f"({str(error).rpartition(': ')[2]}); expected an ExportTraceServiceRequest"
        ) from error


def _spans(request: trace_pb2.TracesData, made_up: MadeUp) -> list[Span]:
    trace_ids, parent_ids = _Ids(_trace_id), _Ids(_span_id)
    spans: list[Span] = []
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            scope = _scope(scoped.scope)
            # No call for each span, and lists asked for as a whole: that saves a tenth of the time.
            for span in scoped.spans[:]:
                trace_id, span_id = trace_ids[span.trace_id], _span_id(span.span_id)
                if trace_id is None or span_id is None:
                    trace_id, span_id = made_up.ids(trace_id, span_id)
                parent = span.parent_span_id
                draft: Any = _Draft()
                draft.trace_id = trace_id
                draft.span_id = span_id
                draft.parent_id = parent_id = parent_ids[parent] if parent else None
                draft.parent_remote = REMOTE[span.flags & REMOTE_MASK] if parent_id else None
                draft.name = intern(span.name)
                draft.kind = KINDS.get(span.kind, "unspecified")
                draft.start_ns = span.start_time_unix_nano
                draft.end_ns = span.end_time_unix_nano
                draft.status = _status(span.status) if span.HasField("status") else UNSET
                draft.attributes = dict(map(_pair_of, span.attributes[:]))  # type: ignore[arg-type]  # bytes here
                draft.events = _events(events) if (events := span.events) else ()
                draft.links = _links(links) if (links := span.links) else ()
                draft.resource = resource
                draft.scope = scope
                draft.__class__ = Span
                spans.append(draft)
    return spans


class _Ids(dict[bytes, str | None]):
    """The hex of ids that many spans of a request have in common; None for an invalid one."""

    def __init__(self, read: Callable[[bytes], str | None]) -> None:
        self._read = read

    def __missing__(self, raw: bytes) -> str | None:
        self[raw] = found = self._read(raw)
        return found


class _Pairs(dict[bytes, tuple[str, Json]]):
    """Attributes by their bytes, read once; what is long or no plain value is not kept.

    Of a text that is not kept, the bytes before it are: the key and three lengths and tags. Where
    they come again the rest is the text, which is found in half the time that protobuf takes.
    """

    def __init__(self) -> None:
        self._keys: dict[bytes, str] = {}
        """By all that comes before a text."""

    def __missing__(self, raw: bytes) -> tuple[str, Json]:
        if len(raw) <= LONGEST_KEPT:
            return self._keep(raw)
        start = raw[1] + _FRAME
        key = self._keys.get(raw[:start])
        if key is not None and raw[start - 1] == len(raw) - start:
            return key, raw[start:].decode()
        return self._learn(raw, start)

    def _keep(self, raw: bytes) -> tuple[str, Json]:
        found = _pair(raw)
        if type(found[1]) in _PLAIN:
            if len(self) >= MOST_KEPT:
                self.clear()
            self[raw] = found
        return found

    def _learn(self, raw: bytes, start: int) -> tuple[str, Json]:
        key, value = found = _pair(raw)
        text = raw[start:]
        if text and isinstance(value, str) and text == value.encode():
            if len(self._keys) >= MOST_KEPT:
                self._keys.clear()
            self._keys[raw[:start]] = key
        return found


def _pair(raw: bytes) -> tuple[str, Json]:
    pair = KeyValue.FromString(raw)
    return intern(pair.key), pair.value.string_value or _value(pair.value)


_pair_of: Final = _Pairs().__getitem__


class _Draft:
    """A Span in the making, with the same slots.

    A frozen dataclass sets its fields ten times slower than a plain class does, which would be a
    third of the time a span takes. So spans are filled in as drafts and then made Spans.
    """

    __slots__ = Span.__slots__


def _scope(scope: InstrumentationScope) -> Scope:
    if not scope.name and not scope.version:
        return NO_SCOPE
    return Scope(name=scope.name, version=scope.version)


def _trace_id(raw: bytes) -> str | None:
    return raw.hex() if len(raw) == 16 and raw != _ZERO_TRACE_ID else None


def _span_id(raw: bytes) -> str | None:
    return raw.hex() if len(raw) == 8 and raw != _ZERO_SPAN_ID else None


def _status(status: trace_pb2.Status) -> Status:
    code = STATUS_CODES.get(status.code, "unset")
    if code == "unset" and not status.message:
        return UNSET
    return Status(code=code, message=status.message)


def _events(events: Iterable[trace_pb2.Span.Event]) -> list[Event]:
    return [
        Event(
            name=event.name, time_ns=event.time_unix_nano, attributes=_attributes(event.attributes)
        )
        for event in events
    ]


def _links(links: Iterable[trace_pb2.Span.Link]) -> list[Link]:
    return [
        Link(
            trace_id=_trace_id(link.trace_id) or "",
            span_id=_span_id(link.span_id) or "",
            attributes=_attributes(link.attributes),
        )
        for link in links
    ]


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Json]:
    # A field of the union that is not set reads as its zero value, and an access is half the price
    # of asking which one is set. So the common values, text and counts, are found without asking.
    # The same few keys come with every span: interned, open spans share them.
    return {
        intern(pair.key): (value := pair.value).string_value or value.int_value or _value(value)
        for pair in pairs
    }


def _value(value: AnyValue) -> Json:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case "bool_value":
            return value.bool_value
        case "double_value":
            return value.double_value
        case "array_value":
            return [_value(each) for each in value.array_value.values]
        case "kvlist_value":
            return _attributes(value.kvlist_value.values)
        case "bytes_value":
            return b64encode(value.bytes_value).decode()
        case _:
            return None
