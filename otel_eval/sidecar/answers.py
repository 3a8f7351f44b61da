"""What a sender is told when its request is not taken, in the words of both protocols.

Senders drop what is answered with UNKNOWN, INTERNAL or 500, so no refusal here is one of these.
"""

from collections import Counter
from dataclasses import dataclass
from random import randint
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.rpc import code_pb2  # type: ignore[import-untyped]  # has stubs, but does not say so
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # the same
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # the same

from otel_eval.sidecar.signals import Form

MEDIA: Final[dict[Form, str]] = {"protobuf": "application/x-protobuf", "json": "application/json"}

RETRY_SECONDS: Final = (1, 3)
"""Spread, so that refused senders do not come back at once. The SDKs give up after 10 s."""

PROTOCOLS: Final = ("grpc", "http")
REASONS: Final = (
    "buffer_full",
    "crowded",
    "error",
    "journal_failed",
    "journal_full",
    "queue_full",
    "shutdown",
    "slow",
)
"""Why a request may have to come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that was not taken; with `retry_after` (seconds) it may come again."""

    code: int
    http: int
    message: str
    retry_after: int | None = None
    reason: str = ""
    """In one word, for the count of requests that may come again."""
    closes: bool = False
    """Whether the connection cannot be used again, as when a body was left unread."""

    def status(self) -> Status:
        details = [] if self.retry_after is None else [_packed(self.retry_info())]
        return Status(code=self.code, message=self.message, details=details)

    def retry_info(self) -> RetryInfo:
        return RetryInfo(retry_delay=Duration(seconds=self.retry_after or 0))

    def body(self, form: Form) -> bytes:
        status = self.status()
        if form == "protobuf":
            return bytes(status.SerializeToString())
        return MessageToJson(status, indent=None).encode()

    def headers(self) -> dict[str, str]:
        return {**self._own_headers(), **({"Connection": "close"} if self.closes else {})}

    def _own_headers(self) -> dict[str, str]:
        if self.http == 401:
            return {"WWW-Authenticate": "Bearer"}
        if self.http == 405:
            return {"Allow": "POST"}
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}

    def trailers(self) -> tuple[tuple[str, bytes], ...]:
        """Some clients read the one, some the other."""
        details = ("grpc-status-details-bin", self.status().SerializeToString())
        if self.retry_after is None:
            return (details,)
        return details, ("google.rpc.retryinfo-bin", self.retry_info().SerializeToString())


def _packed(message: RetryInfo) -> Any:
    packed = Any()
    packed.Pack(message)
    return packed


class Refused(Counter[tuple[str, ...]]):
    """Requests that may come again, by protocol and reason."""

    def count(self, protocol: str, refusal: Refusal) -> None:
        if refusal.retry_after is not None:
            self[protocol, refusal.reason] += 1


def busy(message: str, reason: str = "busy", *, closes: bool = False) -> Refusal:
    """Not now: the sender's own retry is the queue."""
    return Refusal(
        code=code_pb2.UNAVAILABLE,
        http=503,
        message=message,
        retry_after=randint(*RETRY_SECONDS),
        reason=reason,
        closes=closes,
    )


def too_large(limit: int) -> Refusal:
    message = f"the request is larger than {limit} bytes after decompression; send smaller batches"
    return Refusal(code=code_pb2.RESOURCE_EXHAUSTED, http=413, message=message)


def undecodable(message: str) -> Refusal:
    return Refusal(code=code_pb2.INVALID_ARGUMENT, http=400, message=message)


def unauthenticated() -> Refusal:
    message = "no valid bearer token; send one as 'authorization: Bearer <token>'"
    return Refusal(code=code_pb2.UNAUTHENTICATED, http=401, message=message)


def unimplemented(message: str) -> Refusal:
    return Refusal(code=code_pb2.UNIMPLEMENTED, http=404, message=message)


def wrong_method(method: str) -> Refusal:
    return Refusal(
        code=code_pb2.UNIMPLEMENTED, http=405, message=f"{method} is not supported; use POST"
    )


def wrong_type(content_type: str) -> Refusal:
    wanted = " or ".join(MEDIA.values())
    message = f"content type {content_type!r} is not supported; send {wanted}"
    return Refusal(code=code_pb2.INVALID_ARGUMENT, http=415, message=message)


def wrong_coding(coding: str) -> Refusal:
    message = f"content encoding {coding!r} is not supported; send gzip, deflate, zstd or none"
    return Refusal(code=code_pb2.INVALID_ARGUMENT, http=415, message=message)
