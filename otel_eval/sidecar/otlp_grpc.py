"""OTLP over gRPC. Handlers take raw bytes: generated ones answer UNKNOWN to what is no protobuf."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import grpc.aio

from otel_eval.sidecar.answers import Refusal, Refused
from otel_eval.sidecar.compression import coding_of
from otel_eval.sidecar.receiver import Receiver
from otel_eval.sidecar.signals import SIGNALS, Signal

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"

MINUTE_MS: Final = 60_000
CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


def grpc_server(receiver: Receiver, refused: Refused) -> grpc.aio.Server:
    server = grpc.aio.server(options=_options(receiver.max_bytes))
    server.add_generic_rpc_handlers([_handlers(receiver, signal, refused) for signal in SIGNALS])
    return server


def _options(max_bytes: int) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", max_bytes),
        # gRPC answers INTERNAL to what it cannot unpack, and the sender drops its spans.
        ("grpc.per_message_decompression", 0),
        # A port that another process has is an error, not shared with it.
        ("grpc.so_reuseport", 0),
        # Now and then a client must ask the balancer again.
        ("grpc.max_connection_age_ms", 10 * MINUTE_MS),
        ("grpc.max_connection_age_grace_ms", MINUTE_MS // 2),
        ("grpc.max_connection_idle_ms", 15 * MINUTE_MS),
        ("grpc.keepalive_time_ms", 2 * MINUTE_MS),
        ("grpc.keepalive_timeout_ms", MINUTE_MS // 3),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", MINUTE_MS // 6),
        ("grpc.max_concurrent_streams", 100),
    ]


def _handlers(receiver: Receiver, signal: Signal, refused: Refused) -> grpc.GenericRpcHandler:
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        _export(receiver, signal, refused)
    )
    return grpc.method_handlers_generic_handler(signal.service, {"Export": method})


def _export(
    receiver: Receiver, signal: Signal, refused: Refused
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def export(body: bytes, context: Context) -> bytes:
        token = _authorization(context)
        refusal = await receiver.receive(signal, body, "protobuf", token, coding_of(body))
        # The exception by which gRPC aborts keeps this frame alive until cycles are collected.
        del body
        if refusal is not None:
            refused.count("grpc", refusal)
            await _abort(context, refusal)
        return b""

    return export


def _authorization(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization" and isinstance(value, str):
            return value
    return None


async def _abort(context: Context, refusal: Refusal) -> NoReturn:
    await context.abort(CODES[refusal.code], refusal.message, refusal.trailers())
    raise AssertionError("abort does not return")
