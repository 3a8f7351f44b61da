"""Behind the receivers: everything taken in is evaluated and, where there is a target, sent on."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from otel_eval.engine import Engine
from otel_eval.sidecar import answers
from otel_eval.sidecar.answers import Refusal
from otel_eval.sidecar.attach import Holder
from otel_eval.sidecar.contents import Contents
from otel_eval.sidecar.custody import Custody
from otel_eval.sidecar.forward import Forwarder
from otel_eval.sidecar.intake import Arrival
from otel_eval.sidecar.ledger import Entry
from otel_eval.sidecar.parcels import Parcel, origins
from otel_eval.sidecar.signals import LOGS, TRACES, Signal
from otel_eval.sidecar.zeros import counted_from_zero
from otel_eval.sinks.instruments import Snapshot

BYTES_PER_BYTE: Final = 2
BYTES_PER_SPAN: Final = 500
"""What decoded spans take in memory, near enough for the engine's queue. Measured over a quarter of
the captures: 1.3 to 3.7 times the size on the wire. The estimate was too low for one of them, by a
fifth."""


class Pipeline:
    """Lives in the event loop, so that what it counts is of one moment."""

    def __init__(
        self,
        engine: Engine,
        forwarder: Forwarder | None,
        holder: Holder | None = None,
        custody: Custody | None = None,
        *,
        max_buffer: int,
    ) -> None:
        self._engine = engine
        self._max_buffer = max_buffer
        self._forwarder = forwarder
        self._holder = holder
        self._custody = custody
        self.contents = Contents(time.monotonic)
        self.draining = False

    def refusal(self, signal: Signal, size: int) -> Refusal | None:
        if self.draining:
            return answers.busy("shutting down", "shutdown")
        if self._custody is not None and not self._custody.journal.fits(size):
            return answers.busy("the journal is full", "journal_full")
        if self._forwarder is not None:
            return self._forward_refusal(self._forwarder, signal, size)
        if signal is not TRACES:
            return answers.unimplemented(f"{signal.name} are only taken when forwarding is on")
        if self.is_full(size):
            return answers.busy("the evaluation buffer is full", "buffer_full")
        return None

    def _forward_refusal(self, forwarder: Forwarder, signal: Signal, size: int) -> Refusal | None:
        """A full evaluation buffer is no reason: the spans are forwarded, and not evaluated.

        Neither is a full queue where the journal takes what does not fit: all but spans that wait
        for their scores.
        """
        if forwarder.is_off(signal) and signal is not LOGS:
            return _not_taken(signal)
        if (self._custody is not None and self._holder is None) or forwarder.fits(size):
            return None
        return answers.busy("the forward queue is full", "queue_full")

    async def take(self, arrival: Arrival) -> Refusal | None:
        refusal = self.refusal(arrival.signal, len(arrival.body))
        if refusal is not None:
            return refusal
        if self._forwarder is not None and self._forwarder.is_off(arrival.signal):
            # What log records tell about model calls is for us, whatever the target takes.
            self.evaluate(arrival)
            return _not_taken(arrival.signal)
        if self._custody is not None and (arrival.spans or arrival.signal is not TRACES):
            return await self._take_safely(arrival, self._custody)
        self.forward(arrival)
        self.evaluate(arrival)
        return None

    async def _take_safely(self, arrival: Arrival, custody: Custody) -> Refusal | None:
        """A sender that hangs up meanwhile does not keep what is on disk from going on."""
        answered: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()
        entry = self._entry(arrival, custody.journal.new_id())

        def then(is_written: bool) -> None:
            if is_written:
                custody.keep(entry)
                self.forward(arrival, entry.id)
                self.evaluate(arrival, entry.id)
            if not answered.done():
                failure = answers.busy("the journal cannot be written", "journal_failed")
                answered.set_result(None if is_written else failure)

        custody.journal.add(entry, arrival.body, then)
        return await answered

    def _entry(self, arrival: Arrival, id: int) -> Entry:
        return Entry(
            id=id,
            signal=arrival.signal,
            form=arrival.form,
            spans=len(arrival.spans),
            size=len(arrival.body),
            forward=self._forwarder is not None,
            evaluate=bool(arrival.spans or arrival.contents),
        )

    def forward(self, arrival: Arrival, origin: int | None = None) -> None:
        """`origin` is its place in the journal."""
        if self._forwarder is None or (arrival.signal is TRACES and not arrival.spans):
            return
        if arrival.signal is TRACES and self._holder is not None:
            self._holder.take(arrival.body, arrival.spans, time.monotonic(), origin)
            return
        self._forwarder.put(
            Parcel(
                signal=arrival.signal,
                body=arrival.body,
                form=arrival.form,
                spans=len(arrival.spans),
                origins=origins(origin, len(arrival.spans)),
                stored=origin is not None,
            )
        )

    def evaluate(self, arrival: Arrival, origin: int | None = None) -> None:
        self.contents.add(arrival.contents)
        if self._custody is not None and origin is not None and arrival.contents:
            traces = {content.trace_id for content in arrival.contents}
            self._custody.await_traces(origin, traces, time.monotonic())
        if not arrival.spans:
            return
        # Logs only come where there is a target, so only then spans wait for them.
        waits = self._forwarder is not None
        spans = self.contents.attached(arrival.spans) if waits else arrival.spans
        size = BYTES_PER_BYTE * len(arrival.body) + BYTES_PER_SPAN * len(spans)
        if self._custody is not None and origin is not None:
            self._custody.feed(origin, spans)
        is_fed = self._engine.feed(spans, size)
        # What slips in while the engine closes is left to the next process.
        if self._custody is not None and origin is not None and not is_fed and not self.draining:
            self._custody.refused(spans)

    @property
    def holds(self) -> bool:
        """Whether spans wait for their scores."""
        return self._holder is not None

    def wants_protobuf(self) -> bool:
        if self._forwarder is None:
            return False
        return self._holder is not None or not self._forwarder.target.takes_json

    def snapshot(self) -> Snapshot:
        return counted_from_zero({**self._engine.snapshot(), **self._forwarded()})

    def is_full(self, size: int) -> bool:
        """A request that is larger than the whole buffer is taken when there is nothing else."""
        taken = self._engine.buffered_bytes
        too_much = taken + BYTES_PER_BYTE * size > self._max_buffer
        return self._engine.is_full or (taken > 0 and too_much)

    def _forwarded(self) -> Mapping[str, Mapping[tuple[str, ...], float]]:
        if self._forwarder is None:
            return {}
        dropped = self._forwarder.dropped_spans
        return {
            "otel_eval.spans.forwarded": {(): self._forwarder.forwarded_spans},
            "otel_eval.spans.dropped": {(reason,): count for reason, count in dropped.items()},
            "otel_eval.spans.queued": {(): self._forwarder.queued_spans},
        }


def _not_taken(signal: Signal) -> Refusal:
    return answers.unimplemented(f"the forward target does not take {signal.name}")
