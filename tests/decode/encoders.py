"""Spans back into OTLP and into the SDK's, for tests that go around in a circle."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

from otel_eval import model
from otel_eval.model import Json, Span

KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"]
CODES = ["unset", "ok", "error"]
SDK_KINDS = {kind.name.lower(): kind for kind in SpanKind}
SDK_CODES = {code.name.lower(): code for code in StatusCode}
FLAGS = {None: 0, False: 0x100, True: 0x300}


def with_length(body: bytes) -> bytes:
    """The body behind its length as a varint."""
    coded, rest = b"", len(body)
    while rest > 0x7F:
        coded, rest = coded + bytes([rest & 0x7F | 0x80]), rest >> 7
    return coded + bytes([rest]) + body


def to_protobuf(spans: Sequence[Span]) -> bytes:
    request = ExportTraceServiceRequest()
    for span in spans:
        group = request.resource_spans.add()
        group.resource.attributes.extend(_pairs(span.resource))
        scoped = group.scope_spans.add()
        scoped.scope.name, scoped.scope.version = span.scope.name, span.scope.version
        scoped.spans.append(_span(span))
    return request.SerializeToString()


def _span(span: Span) -> trace_pb2.Span:
    return trace_pb2.Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id or ""),
        flags=FLAGS[span.parent_remote],
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Value(f"SPAN_KIND_{span.kind.upper()}"),
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        status=_status(span.status),
        attributes=_pairs(span.attributes),
        events=[
            trace_pb2.Span.Event(
                name=each.name, time_unix_nano=each.time_ns, attributes=_pairs(each.attributes)
            )
            for each in span.events
        ],
        links=[
            trace_pb2.Span.Link(
                trace_id=bytes.fromhex(each.trace_id),
                span_id=bytes.fromhex(each.span_id),
                attributes=_pairs(each.attributes),
            )
            for each in span.links
        ],
    )


def _status(status: model.Status) -> trace_pb2.Status:
    code = trace_pb2.Status.StatusCode.Value(f"STATUS_CODE_{status.code.upper()}")
    return trace_pb2.Status(code=code, message=status.message)


def _pairs(attributes: Mapping[str, Json]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Json) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=[_value(each) for each in value]))
        case dict():
            return AnyValue(kvlist_value=KeyValueList(values=_pairs(value)))
        case _:
            return AnyValue()


def to_json(spans: Sequence[Span]) -> bytes:
    return orjson.dumps({"resourceSpans": [_json_group(span) for span in spans]})


def _json_group(span: Span) -> dict[str, Any]:
    scope = {"name": span.scope.name, "version": span.scope.version}
    return {
        "resource": {"attributes": _json_pairs(span.resource)},
        "scopeSpans": [{"scope": scope, "spans": [_json_span(span)]}],
    }


def _json_span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id or "",
        "flags": FLAGS[span.parent_remote],
        "name": span.name,
        "kind": KINDS.index(span.kind),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "status": {"code": CODES.index(span.status.code), "message": span.status.message},
        "attributes": _json_pairs(span.attributes),
        "events": [
            {
                "name": each.name,
                "timeUnixNano": str(each.time_ns),
                "attributes": _json_pairs(each.attributes),
            }
            for each in span.events
        ],
        "links": [
            {
                "traceId": each.trace_id,
                "spanId": each.span_id,
                "attributes": _json_pairs(each.attributes),
            }
            for each in span.links
        ],
    }


def _json_pairs(attributes: Mapping[str, Json]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _json_value(value)} for key, value in attributes.items()]


def _json_value(value: Json) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [_json_value(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": _json_pairs(value)}}
        case _:
            return {}


def to_sdk(spans: Sequence[Span]) -> list[ReadableSpan]:
    """ReadableSpans that share one resource: the first span's."""
    resource = Resource(dict(spans[0].resource)) if spans else None
    return [_readable(span, resource) for span in spans]


def _readable(span: Span, resource: Resource | None) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace_id, span.span_id),
        parent=_context(span.trace_id, span.parent_id, span.parent_remote)
        if span.parent_id
        else None,
        resource=resource,
        attributes=span.attributes,
        events=[Event(each.name, each.attributes, each.time_ns) for each in span.events],
        links=[Link(_context(each.trace_id, each.span_id), each.attributes) for each in span.links],
        kind=SDK_KINDS[span.kind],
        status=Status(SDK_CODES[span.status.code], span.status.message or None),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=InstrumentationScope(span.scope.name, span.scope.version),
    )


def _context(trace_id: str, span_id: str, is_remote: bool | None = False) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=bool(is_remote))
