"""An OTLP endpoint that is reached over gRPC."""

import logging
from typing import Final, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # see answers.py
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # see answers.py

from otel_eval.errors import ConfigError
from otel_eval.settings import OtlpTarget
from otel_eval.sidecar.parcels import Delivered, Parcel, Rejected, Reply, Retry, Unknown
from otel_eval.sidecar.partial import rejected_items
from otel_eval.sidecar.tls import client_credentials, watched_files

log = logging.getLogger(__name__)

RETRYABLE: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
OPTIONS: Final = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 60_000),
    # The forwarder has a back-off of its own; gRPC's would go on top of it.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]
Call: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"
COMPRESSION: Final = {"gzip": grpc.Compression.Gzip, "none": grpc.Compression.NoCompression}


class GrpcTarget:
    takes_json = False

    def __init__(self, endpoint: str, settings: OtlpTarget) -> None:
        self.endpoint = endpoint
        self._timeout = settings.timeout
        self._headers = tuple((key.lower(), value) for key, value in settings.headers.items())
        self._settings = settings
        self._files = watched_files(settings.tls)
        self._channel = _channel(endpoint, settings)

    async def send(self, parcel: Parcel) -> Reply:
        if self._files.changed():
            await self._reconnect()
        call: Call = self._channel.unary_unary(parcel.signal.method)
        try:
            answer = await call(parcel.body, timeout=self._timeout, metadata=self._headers)
        except grpc.aio.AioRpcError as error:
            return _reply(error)
        return Delivered(rejected_items(parcel.signal, answer, "protobuf"))

    async def _reconnect(self) -> None:
        """With new certificates; calls under way end first, unless they take too long."""
        try:
            old, self._channel = self._channel, _channel(self.endpoint, self._settings)
        except ConfigError as error:
            log.warning("the certificates stay as they were: %s", error)
            return
        await old.close(self._timeout)

    async def close(self) -> None:
        await self._channel.close()


def _channel(endpoint: str, settings: OtlpTarget) -> grpc.aio.Channel:
    scheme, _, rest = endpoint.rpartition("://")
    address = rest.rstrip("/")
    compression = COMPRESSION[settings.compression]
    if scheme == "https":
        credentials = client_credentials(settings.tls)
        return grpc.aio.secure_channel(address, credentials, OPTIONS, compression)
    return grpc.aio.insecure_channel(address, OPTIONS, compression)


def _reply(error: grpc.aio.AioRpcError) -> Reply:
    code, after = error.code(), _retry_after(error)
    reason = f"{code.name}: {(error.details() or '')[:200]}"
    if code in RETRYABLE or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and after is not None):
        return Retry(reason, after)
    return Unknown(reason) if code is grpc.StatusCode.UNIMPLEMENTED else Rejected(reason)


def _retry_after(error: grpc.aio.AioRpcError) -> float | None:
    # As pairs: the keys that older releases of grpcio give to `dict` are no keys.
    trailers = dict(tuple(error.trailing_metadata() or ()))
    details = trailers.get("grpc-status-details-bin")
    if not isinstance(details, bytes):
        return None
    try:
        return _delay(Status.FromString(details))
    except DecodeError:
        return None


def _delay(status: Status) -> float | None:
    info = RetryInfo()
    for detail in status.details:
        if detail.Unpack(info):
            return float(info.retry_delay.ToTimedelta().total_seconds())
    return None
