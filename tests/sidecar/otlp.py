"""OTLP requests for tests, and clients for those that no SDK would send."""

import http.client
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import orjson
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from otel_eval.sidecar.signals import TRACES, Signal

PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def attributes(values: Mapping[str, str | int]) -> list[KeyValue]:
    return [
        KeyValue(
            key=key,
            value=AnyValue(int_value=value)
            if isinstance(value, int)
            else AnyValue(string_value=value),
        )
        for key, value in values.items()
    ]


def request(*spans: Mapping[str, Any], service: str = "shop") -> ExportTraceServiceRequest:
    """Each span by its fields; ids in hex, attributes as a mapping."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.extend(attributes({"service.name": service}))
    scoped = group.scope_spans.add()
    scoped.scope.name = "tests"
    for fields in spans:
        span = scoped.spans.add(start_time_unix_nano=1, end_time_unix_nano=2)
        for name, value in fields.items():
            _set(span, name, value)
    return made


def _set(span: Any, name: str, value: Any) -> None:
    if name == "attributes":
        span.attributes.extend(attributes(value))
    else:
        setattr(span, name, bytes.fromhex(value) if name.endswith("_id") else value)


def traces(count: int = 1, *, first: int = 1, trace_id: str = TRACE_ID, **fields: Any) -> bytes:
    """So many spans of one trace, without a root."""
    spans = [
        {"trace_id": trace_id, "span_id": f"{first + at:016x}", "parent_span_id": "f" * 16}
        for at in range(count)
    ]
    return request(*({"name": "work", **each, **fields} for each in spans)).SerializeToString()


def tool_trace(
    trace_id: str = TRACE_ID, *, tools: Sequence[str] = ("search",)
) -> list[dict[str, Any]]:
    """An agent's root span and one span per tool call."""
    root = {
        "trace_id": trace_id,
        "span_id": "00000000000000aa",
        "name": "invoke_agent shopper",
        "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shopper"},
    }
    calls = [
        {
            "trace_id": trace_id,
            "span_id": f"{at + 1:016x}",
            "parent_span_id": "00000000000000aa",
            "flags": 0x100,
            "name": f"execute_tool {tool}",
            "attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
        }
        for at, tool in enumerate(tools)
    ]
    return [*calls, root]


def logs(body: str = "hello") -> ExportLogsServiceRequest:
    made = ExportLogsServiceRequest()
    record = made.resource_logs.add().scope_logs.add().log_records.add()
    record.body.string_value = body
    return made


def json_request(**span: Any) -> dict[str, Any]:
    fields = {"traceId": TRACE_ID, "spanId": "00f067aa0ba902b7", "name": "work", **span}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def error(self) -> Status:
        """The body as google.rpc.Status, in the encoding it says it has."""
        status = Status()
        if self.headers["content-type"] == "application/x-protobuf":
            status.ParseFromString(self.body)
        else:
            document = orjson.loads(self.body)
            status.code, status.message = document["code"], document["message"]
        return status


def post(
    port: int,
    body: bytes,
    headers: Mapping[str, str] = PROTOBUF,
    *,
    path: str = TRACES.path,
    method: str = "POST",
    tls: ssl.SSLContext | None = None,
) -> Answer:
    connection = (
        http.client.HTTPSConnection("localhost", port, timeout=20, context=tls)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    )
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        found = {key.lower(): value for key, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()


@dataclass(frozen=True)
class GrpcAnswer:
    code: grpc.StatusCode
    message: str
    trailers: Mapping[str, bytes]
    body: bytes | None


def export(
    port: int,
    body: bytes,
    *,
    signal: Signal = TRACES,
    token: str | None = None,
    compression: grpc.Compression | None = None,
    credentials: grpc.ChannelCredentials | None = None,
    method: str | None = None,
) -> GrpcAnswer:
    """One raw call over a connection of its own."""
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    address = f"localhost:{port}"
    channel = (
        grpc.secure_channel(address, credentials, options, compression)
        if credentials
        else grpc.insecure_channel(address, options, compression)
    )
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with channel:
        try:
            answer = channel.unary_unary(method or signal.method)(
                body, timeout=20, metadata=metadata
            )
        except grpc.RpcError as error:
            trailers = dict(error.trailing_metadata() or ())
            return GrpcAnswer(error.code(), error.details() or "", trailers, None)
        return GrpcAnswer(grpc.StatusCode.OK, "", {}, answer)
