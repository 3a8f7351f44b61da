"""The way out: a queue bounded in bytes, and senders that try until the target takes it.

Everything here runs in the event loop; other threads come in by `put_soon`.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf
from random import uniform
from typing import Final, Protocol, assert_never

from otel_eval.settings import OtlpTarget
from otel_eval.sidecar.logs import place_of
from otel_eval.sidecar.parcels import Delivered, Loss, Parcel, Rejected, Reply, Retry, Unknown
from otel_eval.sidecar.signals import TRACES, Signal
from otel_eval.sidecar.target_grpc import GrpcTarget
from otel_eval.sidecar.target_http import HttpTarget
from otel_eval.sidecar.transcode import to_protobuf

log = logging.getLogger(__name__)

SENDERS: Final = 10
"""Requests under way at a time. Agents send small ones, and a target may be far: one that takes
50 ms to answer got 180 a second from 10 senders, and 74 from 4."""
HURRIED_SECONDS: Final = 0.5
MAX_AFTER_SECONDS: Final = 60.0
"""A target that asks for more is tried sooner all the same."""
QUIET_SECONDS: Final = 10.0
"""Rejections are counted; that there are some is said once in this time."""
EXPIRES_SECONDS: Final = 3600.0
"""How long a request is tried for. Until then a target that is down fills the queue, and a full
queue asks the senders to wait: that loses less than giving up early."""


class Target(Protocol):
    endpoint: str
    takes_json: bool

    async def send(self, parcel: Parcel) -> Reply: ...

    async def close(self) -> None: ...


def connect(endpoint: str, settings: OtlpTarget) -> Target:
    if settings.protocol == "grpc":
        return GrpcTarget(endpoint, settings)
    return HttpTarget(endpoint, settings)


class Depot(Protocol):
    """Where requests are kept until they have gone: with one, nothing expires and nothing is lost
    when the process ends, and what does not fit into memory waits there."""

    async def body(self, id: int) -> bytes | None: ...

    def gone(self, parcel: Parcel) -> None: ...


class Backoff:
    """Doubling pauses with jitter; what the target asks for is the least."""

    def __init__(self, first: float = 0.5, most: float = 30.0) -> None:
        self._pause = first
        self._most = most

    def next(self, after: float | None) -> float:
        pause = uniform(0.5, 1.0) * self._pause
        self._pause = min(2 * self._pause, self._most)
        if after is None:
            return pause
        # A target that asks for no pause at all must not be asked without one.
        return max(pause, min(after, MAX_AFTER_SECONDS) + uniform(0.0, 0.5) * min(pause, 1.0))


class Forwarder:
    """received spans = forwarded + dropped + queued, at every moment of the event loop."""

    def __init__(
        self,
        target: Target,
        *,
        max_bytes: int,
        backoff: Callable[[], Backoff] = Backoff,
        expires: float = EXPIRES_SECONDS,
        depot: Depot | None = None,
    ) -> None:
        self.target = target
        self._depot = depot
        self._max_bytes = max_bytes
        self._backoff = backoff
        self._expires = expires if depot is None else inf
        self._waiting: deque[tuple[float, Parcel]] = deque()
        self._some = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._hurry = asyncio.Event()
        """Set when there is little time left: long pauses end."""
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._under_way: dict[int, Parcel] = {}
        """By the number of the sender."""
        self._off: set[Signal] = set()
        self._failing = False
        self._quiet_until = 0.0
        self.bytes = 0
        self.queued_spans = 0
        self.forwarded_spans = 0
        self.dropped_spans: Counter[Loss] = Counter()
        self.requests: Counter[tuple[str, str]] = Counter()
        """By signal and by what became of them."""

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._send_forever(number)) for number in range(SENDERS)]

    def fits(self, size: int) -> bool:
        """A request that is larger than the whole queue may go alone."""
        return not self.bytes or self.bytes + size <= self._max_bytes

    def hold(self, *, size: int, spans: int) -> None:
        """Count what is kept elsewhere on its way here; negative when it comes or has gone."""
        self.bytes += size
        self.queued_spans += spans

    def is_off(self, signal: Signal) -> bool:
        """Whether the target has said that it does not know this signal."""
        return signal in self._off

    def put(self, parcel: Parcel) -> None:
        """The caller has asked whether it fits; what came in already must not be lost here."""
        if parcel.stored and not self.fits(parcel.size):
            parcel = parcel.left_on_disk()
        self.bytes += parcel.size
        self.queued_spans += parcel.spans
        self._waiting.append((time.monotonic(), parcel))
        self._idle.clear()
        self._some.set()

    def put_soon(self, parcel: Parcel) -> None:
        """For what we made ourselves, in whatever thread: the first to go when there is no room."""
        self._loop.call_soon_threadsafe(self.put_own, parcel)

    def put_own(self, parcel: Parcel) -> None:
        if self.is_off(parcel.signal):
            self.requests[parcel.signal.name, "switched_off"] += 1
            self._leave(parcel)
        elif self._depot is None and not self.fits(parcel.size):
            self.requests[parcel.signal.name, "queue_full"] += 1
        else:
            self.put(parcel)

    async def drain(self, seconds: float) -> bool:
        """Send what waits; what is left after that time is dropped, and counted so."""
        self._hurry.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        left = [*self._under_way.values(), *(parcel for _, parcel in self._waiting)]
        await self.target.close()
        if self._depot is not None:
            if left:
                log.info("%d requests stay in the journal", len(left))
            return True
        for parcel in left:
            self._lose(parcel, "shutdown")
        self._waiting.clear()
        return not left

    async def _send_forever(self, number: int) -> None:
        while True:
            while not self._waiting:
                self._some.clear()
                await self._some.wait()
            since, parcel = self._waiting.popleft()
            self._under_way[number] = parcel
            if loaded := await self._loaded(parcel):
                await self._deliver(loaded, since + self._expires)
            del self._under_way[number]
            if not self._waiting and not self._under_way:
                self._idle.set()

    async def _loaded(self, parcel: Parcel) -> Parcel | None:
        if self._depot is None or not parcel.is_on_disk:
            return parcel
        body = await self._depot.body(parcel.origins[0][0])
        if body is None:
            log.error("a %s request in the journal cannot be read", parcel.signal.name)
            self._lose(parcel, "damaged")
            return None
        loaded = replace(parcel, body=body)
        if parcel.form == "json" and not self.target.takes_json:
            # It came when there was another target.
            loaded = replace(parcel, body=to_protobuf(parcel.signal, body), form="protobuf")
        self.bytes += loaded.size
        return loaded

    async def _deliver(self, parcel: Parcel, until: float) -> None:
        backoff = self._backoff()
        while True:
            reply = await self._try(parcel)
            match reply:
                case Delivered(rejected=rejected):
                    return self._succeed(parcel, rejected)
                case Rejected(reason=reason):
                    return self._reject(parcel, reason)
                case Unknown(reason=reason):
                    return self._switch_off(parcel, reason)
                case Retry(reason=reason, after=after):
                    if time.monotonic() > until:
                        return self._lose(parcel, "expired")
                    await self._pause(parcel, reason, backoff.next(after))
                case _:
                    assert_never(reply)

    async def _try(self, parcel: Parcel) -> Reply:
        if self.is_off(parcel.signal):
            return Unknown("switched off")
        try:
            return await self.target.send(parcel)
        # A bug in a client library must not end a sender.
        except Exception as error:
            return Retry(place_of(error))

    async def _pause(self, parcel: Parcel, reason: str, seconds: float) -> None:
        self.requests[parcel.signal.name, "retried"] += 1
        if not self._failing:
            self._failing = True
            log.warning("%s takes nothing (%s): trying again", self.target.endpoint, reason)
        if self._hurry.is_set():
            await asyncio.sleep(min(seconds, HURRIED_SECONDS))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    def _succeed(self, parcel: Parcel, rejected: int) -> None:
        if self._failing:
            self._failing = False
            log.info("%s takes requests again", self.target.endpoint)
        refused = min(rejected, parcel.spans)
        self.forwarded_spans += parcel.spans - refused
        if refused:
            self.dropped_spans["rejected"] += refused
        self._done(parcel, "delivered")

    def _reject(self, parcel: Parcel, reason: str) -> None:
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            log.warning("%s rejected %s: %s", self.target.endpoint, parcel.signal.name, reason)
        self._lose(parcel, "rejected")

    def _switch_off(self, parcel: Parcel, reason: str) -> None:
        if parcel.signal is TRACES:
            return self._reject(parcel, reason)
        if not self.is_off(parcel.signal):
            self._off.add(parcel.signal)
            log.warning(
                "%s does not take %s (%s): they are dropped and counted from now on",
                self.target.endpoint,
                parcel.signal.name,
                reason,
            )
        return self._done(parcel, "switched_off")

    def _lose(self, parcel: Parcel, loss: Loss) -> None:
        if parcel.spans:
            self.dropped_spans[loss] += parcel.spans
        self._done(parcel, loss)

    def _done(self, parcel: Parcel, result: str) -> None:
        self.bytes -= parcel.size
        self.queued_spans -= parcel.spans
        self.requests[parcel.signal.name, result] += 1
        self._leave(parcel)

    def _leave(self, parcel: Parcel) -> None:
        if self._depot is not None:
            self._depot.gone(parcel)
