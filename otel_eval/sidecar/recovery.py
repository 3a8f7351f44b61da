"""What an earlier process left in the journal, taken up again in the order in which it came."""

import asyncio
import logging
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from otel_eval.engine import Engine
from otel_eval.errors import DecodeError
from otel_eval.grouping import Closed
from otel_eval.model import Span
from otel_eval.scoring import SessionGroup, TraceGroup
from otel_eval.sidecar.custody import Custody
from otel_eval.sidecar.forward import Forwarder
from otel_eval.sidecar.intake import Arrival
from otel_eval.sidecar.ledger import Closing, Entry, Target
from otel_eval.sidecar.parcels import Parcel, origins
from otel_eval.sidecar.pipeline import Pipeline
from otel_eval.sidecar.receiver import understood
from otel_eval.sidecar.transcode import to_protobuf

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 10.0
"""How long, over all, recovery waits for room in the engine before it goes on as under load."""
PAUSE_SECONDS: Final = 0.01


@dataclass(slots=True)
class Recovered:
    """How much was taken up again."""

    requests: int = 0
    spans: int = 0
    unreadable: int = 0


class Recovery:
    def __init__(
        self,
        custody: Custody,
        pipeline: Pipeline,
        engine: Engine,
        forwarders: Mapping[Target, Forwarder],
    ) -> None:
        self._custody = custody
        self._journal = custody.journal
        self._pipeline = pipeline
        self._engine = engine
        self._forwarders = forwarders
        self.recovered: Final = Recovered()

    async def remember(self) -> None:
        """Before the engine starts: what was scored must not be scored again.

        But a trace of a session that is still open must be in it again.
        """
        closings, self._journal.closed = self._journal.closed, ()
        for closing in closings:
            if closing.session is None:
                self._engine.remember(_trace(closing), closing.members)
            else:
                self._engine.remember_session(_session(closing), closing.members)
        if unfinished := _in_open_sessions(closings):
            spans = await self._spans_of({closing.key for closing in unfinished})
            for closing in unfinished:
                self._rejoin(closing, spans.get(closing.key, {}))

    async def _spans_of(self, trace_ids: Container[str]) -> Mapping[str, Mapping[str, Span]]:
        found: dict[str, dict[str, Span]] = {}
        for entry in self._journal.open:
            arrival = await self._read(entry) if entry.evaluate else None
            for span in arrival.spans if arrival else ():
                if span.trace_id in trace_ids:
                    found.setdefault(span.trace_id, {}).setdefault(span.span_id, span)
        return found

    def _rejoin(self, closing: Closing, spans: Mapping[str, Span]) -> None:
        items = [spans[span_id] for span_id in closing.members if span_id in spans]
        if sessions := self._engine.rejoin(_trace(closing, items)):
            self._custody.joined(closing.key, sessions)

    async def replay(self) -> None:
        """Once the engine runs, and before anybody can send."""
        began, entries = time.monotonic(), self._journal.open
        self._journal.open = ()
        for entry in entries:
            await self._take_up(entry, began + PATIENCE_SECONDS)
        if entries:
            log.info(
                "recovered %d requests with %d spans from the journal in %.1f s: "
                "%d to forward, %d to score, %d unreadable",
                self.recovered.requests,
                self.recovered.spans,
                time.monotonic() - began,
                sum(entry.forward for entry in entries),
                sum(entry.evaluate for entry in entries),
                self.recovered.unreadable,
            )

    async def _take_up(self, entry: Entry, until: float) -> None:
        arrival = await self._read(entry) if entry.evaluate else None
        if entry.evaluate and arrival is None:
            self.recovered.unreadable += 1
            log.error("a %s request in the journal cannot be read", entry.signal.name)
        while self._pipeline.is_full(entry.size) and time.monotonic() < until:
            await asyncio.sleep(PAUSE_SECONDS)
        self._custody.keep(entry)
        self._forward(entry, arrival)
        self._evaluate(entry, arrival)
        self.recovered.requests += 1
        self.recovered.spans += entry.spans

    def _forward(self, entry: Entry, arrival: Arrival | None) -> None:
        forwarder = self._forwarders.get(entry.target)
        stored = Parcel(
            signal=entry.signal,
            body=b"",
            form=entry.form,
            spans=entry.spans,
            origins=origins(entry.id, entry.spans),
            stored=True,
        )
        if forwarder is None:
            self._custody.gone(stored)
        elif not entry.forward:
            forwarder.forwarded_spans += entry.spans
        elif arrival is not None and self._pipeline.holds:
            self._pipeline.forward(arrival, entry.id)
        else:
            forwarder.put(stored)

    def _evaluate(self, entry: Entry, arrival: Arrival | None) -> None:
        """Spans that are only to be forwarded were scored: here they count as duplicates."""
        if arrival is not None:
            self._pipeline.evaluate(arrival, entry.id)
            return
        self._custody.pass_over(entry.id)
        self._engine.counters.receive(entry.spans)
        self._engine.counters.settle("duplicate", entry.spans)

    async def _read(self, entry: Entry) -> Arrival | None:
        """None where the bytes are not those that were written."""
        body = await self._journal.body(entry.id)
        if body is None:
            return None
        form = entry.form
        with suppress(DecodeError):
            if form == "json" and self._pipeline.wants_protobuf():
                body, form = to_protobuf(entry.signal, body), "protobuf"
            return understood(entry.signal, body, form)
        return None


def _in_open_sessions(closings: Iterable[Closing]) -> Sequence[Closing]:
    """The traces that were given to sessions which did not close after that."""
    waiting: dict[str, list[Closing]] = {}
    for closing in closings:
        if closing.session is not None:
            waiting.pop(closing.session, None)
        for session in closing.sessions:
            waiting.setdefault(session, []).append(closing)
    found = {(each.key, each.part): each for some in waiting.values() for each in some}
    return list(found.values())


def _trace(closing: Closing, items: Sequence[Span] = ()) -> TraceGroup:
    return Closed(
        key=closing.key,
        items=items,
        by=closing.closed_by,
        part=closing.part,
        whole=closing.whole,
        late=closing.late,
        after=None,
        bytes=0,
    )


def _session(closing: Closing) -> SessionGroup:
    return Closed(
        key=closing.session or "",
        items=(),
        by=closing.closed_by,
        part=closing.part,
        whole=True,
        late=False,
        after=None,
        bytes=0,
    )
