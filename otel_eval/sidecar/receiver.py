"""What both protocols do with a request: check its token, decode it, hand it in."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from google.protobuf.message import DecodeError as ProtobufError

from otel_eval.decode.otlp import decode_protobuf
from otel_eval.decode.otlp_json import decode_json
from otel_eval.errors import DecodeError
from otel_eval.sidecar import answers
from otel_eval.sidecar.answers import Refusal
from otel_eval.sidecar.compression import TooLargeError, unpacker
from otel_eval.sidecar.contents import EVENT, contents_of
from otel_eval.sidecar.intake import Arrival, Content, Intake
from otel_eval.sidecar.logs import place_of
from otel_eval.sidecar.signals import LOGS, TRACES, Form, Signal
from otel_eval.sidecar.tokens import Tokens
from otel_eval.sidecar.transcode import to_protobuf
from otel_eval.sidecar.under_way import UnderWay

log = logging.getLogger(__name__)

INLINE_BYTES: Final = 256 * 1024
"""Larger bodies are decoded in a thread, one at a time: a decoded body is many times as large."""
PIECE_BYTES: Final = 64 * 1024


def crowded() -> Refusal:
    return answers.busy("too many large requests at a time", "crowded")


class Receiver:
    """Never raises: a bug of ours is answered with a code that makes the sender try again."""

    def __init__(
        self, intake: Intake, tokens: Tokens, under_way: UnderWay, *, max_bytes: int
    ) -> None:
        self._intake = intake
        self._tokens = tokens
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="otel-eval-decode")
        self.under_way: Final = under_way
        self.max_bytes: Final = max_bytes

    def admission(self, authorization: str | None) -> Refusal | None:
        """Asked before the body is read."""
        return None if self._tokens.accept(authorization) else answers.unauthenticated()

    def precheck(self, signal: Signal, size: int) -> Refusal | None:
        """Whether a body of that size would be taken now."""
        if not self.under_way.fits(size):
            return crowded()
        return self._intake.refusal(signal, size)

    async def receive(
        self,
        signal: Signal,
        body: bytes,
        form: Form,
        authorization: str | None = None,
        coding: str = "",
    ) -> Refusal | None:
        """Everything at once, for a body that is already in memory."""
        try:
            refusal = self.admission(authorization) or self.precheck(signal, len(body))
            if refusal is not None:
                return refusal
            if coding:
                return await self._receive_packed(signal, body, form, coding)
            return await self._receive(signal, body, form)
        # A bug is no reason for the sender to throw its spans away.
        except Exception as error:
            log.error("a %s request failed: %s", signal.name, place_of(error))
            return answers.busy("an internal error; try again", "error")

    async def _receive_packed(
        self, signal: Signal, body: bytes, form: Form, coding: str
    ) -> Refusal | None:
        try:
            unpacked = await self._unpacked(body, coding)
        except TooLargeError:
            return answers.too_large(self.max_bytes)
        except DecodeError as error:
            return answers.undecodable(str(error))
        return crowded() if unpacked is None else await self._receive(signal, unpacked, form)

    async def _unpacked(self, body: bytes, coding: str) -> bytes | None:
        """In pieces, between which others get their turn; None where it is too much now."""
        unpack = unpacker(coding, self.max_bytes)
        if unpack is None:
            raise DecodeError(f"content encoding {coding!r} is not supported")
        with self.under_way.reading() as fits:
            for start in range(0, len(body), PIECE_BYTES):
                unpack.add(body[start : start + PIECE_BYTES])
                if not fits(unpack.size):
                    return None
                await asyncio.sleep(0)
            return unpack.finish()

    async def _receive(self, signal: Signal, body: bytes, form: Form) -> Refusal | None:
        with self.under_way.reading() as fits:
            fits(len(body))
            try:
                return await self._intake.take(await self._decode(signal, body, form))
            except DecodeError as error:
                return answers.undecodable(str(error))

    async def _decode(self, signal: Signal, body: bytes, form: Form) -> Arrival:
        if len(body) <= INLINE_BYTES:
            return self._decode_now(signal, body, form)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._decode_now, signal, body, form)

    def _decode_now(self, signal: Signal, body: bytes, form: Form) -> Arrival:
        if signal is not TRACES:
            return understood(signal, *self._wanted(signal, body, form))
        arrival = understood(signal, body, form)
        body, form = self._wanted(signal, body, form)
        return replace(arrival, body=body, form=form)

    def _wanted(self, signal: Signal, body: bytes, form: Form) -> tuple[bytes, Form]:
        if form == "json" and self._intake.wants_protobuf():
            return to_protobuf(signal, body), "protobuf"
        return body, form


def understood(signal: Signal, body: bytes, form: Form) -> Arrival:
    """A request with what is in it; raises DecodeError."""
    if signal is TRACES:
        spans = decode_json(body) if form == "json" else decode_protobuf(body)
        return Arrival(signal=signal, body=body, form=form, spans=spans)
    contents = _check(signal, body if form == "protobuf" else to_protobuf(signal, body))
    return Arrival(signal=signal, body=body, form=form, contents=contents)


def _check(signal: Signal, body: bytes) -> list[Content]:
    """Logs and metrics are only passed on; what is no OTLP is still refused here."""
    try:
        request = signal.request.FromString(body)
    except ProtobufError as error:
        raise DecodeError(f"no OTLP protobuf {signal.name} request ({error})") from error
    if signal is LOGS and EVENT.encode() in body:
        return contents_of(request)  # type: ignore[arg-type]  # a request for logs is one for logs
    return []
