"""Forward targets: a scripted one, and what a refusal of a real one looks like."""

import asyncio
from collections.abc import Callable
from random import Random

from google.rpc import code_pb2

from otel_eval.sidecar.answers import Refusal
from otel_eval.sidecar.parcels import Delivered, Parcel, Reply
from otel_eval.sidecar.signals import TRACES

DOWN = Refusal(code=code_pb2.UNAVAILABLE, http=503, message="down")
"""Retryable, and without a delay that a test would have to sit through."""
WRONG = Refusal(code=code_pb2.INVALID_ARGUMENT, http=400, message="wrong")
UNKNOWN = Refusal(code=code_pb2.UNIMPLEMENTED, http=404, message="no such thing")


class Scripted:
    """Gives the replies of its script, then takes everything."""

    endpoint = "scripted"
    takes_json = True

    def __init__(self, *script: Reply) -> None:
        self.script = list(script)
        self.got: list[Parcel] = []
        self.open = asyncio.Event()
        self.open.set()
        self.closed = False

    async def send(self, parcel: Parcel) -> Reply:
        await self.open.wait()
        reply = self.script.pop(0) if self.script else Delivered()
        if isinstance(reply, Delivered):
            self.got.append(parcel)
        return reply

    async def close(self) -> None:
        self.closed = True


def parcel(body: bytes = b"x", *, spans: int = 1) -> Parcel:
    return Parcel(signal=TRACES, body=body, spans=spans)


def flapping(seed: int = 7) -> Callable[[object], Refusal | None]:
    """A target that is down half of the time."""
    random = Random(seed)

    def refuse(_signal: object) -> Refusal | None:
        return DOWN if random.random() < 0.5 else None

    return refuse
