"""Who still needs which request of the journal: the forwarders, and the traces it has spans of.

A request leaves the journal when all of it was forwarded and every trace in it was scored. A trace
counts as scored when that is on disk, not before: until then its requests stay.
"""

from collections import deque
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from otel_eval.model import Span
from otel_eval.sidecar.journal import Journal
from otel_eval.sidecar.ledger import Duty, Entry, session_key
from otel_eval.sidecar.parcels import Parcel


@dataclass(slots=True)
class _Kept:
    entry: Entry
    units: int
    """How many of its spans are still to be forwarded; a request without spans is one unit."""
    waits: int = 0
    """For how many traces, and sessions of them, it is kept."""
    forward: bool = True
    evaluate: bool = True


@dataclass(frozen=True, slots=True)
class _Closing:
    ids: list[int]
    sessions: Collection[str]


class Custody:
    """The engine's thread says what it grouped and closed; all else happens in the event loop."""

    def __init__(self, journal: Journal, *, patience: float) -> None:
        """`patience`: how long a log record is kept for the trace that it tells about."""
        self.journal: Final = journal
        self._patience = patience
        self._lock: Final = Lock()
        self._kept: dict[int, _Kept] = {}
        self._fed: dict[int, tuple[int, Collection[str]]] = {}
        """By the identity of the list of spans that the engine was fed: it holds the list until it
        has grouped it, so no other has the same. With the traces in it."""
        self._waiting: dict[str, list[int]] = {}
        """The requests with spans of each open trace."""
        self._closing: dict[str, deque[_Closing]] = {}
        """The same of traces that were scored, while that is not yet on disk."""
        self._joined: dict[str, Collection[str]] = {}
        """The open sessions of traces that an earlier process scored."""
        self._logs: deque[tuple[float, int, Collection[str]]] = deque()

    def keep(self, entry: Entry) -> None:
        units = max(entry.spans, 1)
        kept = _Kept(entry, units, forward=entry.forward, evaluate=entry.evaluate)
        with self._lock:
            self._kept[entry.id] = kept

    async def body(self, id: int) -> bytes | None:
        return await self.journal.body(id)

    def gone(self, parcel: Parcel) -> None:
        """It was delivered, or never will be."""
        for id, units in parcel.origins:
            kept = self._kept.get(id)
            if kept is None:
                continue
            kept.units -= units
            if kept.units <= 0:
                self._fulfil(id, "forward")

    def feed(self, id: int, spans: Sequence[Span]) -> None:
        """Before the engine is fed: its thread may be quick."""
        with self._lock:
            self._fed[_identity(spans)] = id, {span.trace_id for span in spans}

    def pass_over(self, id: int) -> None:
        """What is in it cannot be scored."""
        self._fulfil(id, "evaluate")

    def refused(self, spans: Sequence[Span]) -> None:
        """The engine had no room: these are not scored, and that is counted."""
        with self._lock:
            id, _ = self._fed.pop(_identity(spans))
        self._fulfil(id, "evaluate")

    def grouped(self, spans: Sequence[object], open_traces: Container[str]) -> None:
        """In the engine's thread: these spans are in groups now, or have been, or are passed by."""
        with self._lock:
            id, traces = self._fed.pop(_identity(spans))
            kept = self._kept.get(id)
            if kept is None:
                return
            for trace in traces:
                self._wait(id, trace, open_traces)
            is_done = not kept.waits
        if is_done:
            self.journal.call(lambda: self._fulfil(id, "evaluate"))

    def _wait(self, id: int, trace_id: str, open_traces: Container[str]) -> None:
        sessions = self._joined.get(trace_id, ())
        if trace_id in open_traces:
            self._wait_for(trace_id, [id])
        elif trace_id in self._closing:
            closing = self._closing[trace_id][-1]
            closing.ids.append(id)
            self._kept[id].waits += 1
            sessions = [each for each in closing.sessions if each in self._waiting]
        for session in sessions:
            self._wait_for(session, [id])

    def _wait_for(self, key: str, ids: Iterable[int]) -> None:
        waiting = self._waiting.setdefault(key, [])
        for id in ids:
            if kept := self._kept.get(id):
                kept.waits += 1
                waiting.append(id)

    def await_traces(self, id: int, trace_ids: Collection[str], now: float) -> None:
        """For log records: they may come before the first span of their trace."""
        with self._lock:
            for trace_id in trace_ids:
                self._wait_for(trace_id, [id])
        self._logs.append((now + self._patience, id, trace_ids))

    def joined(self, trace_id: str, sessions: Collection[str]) -> None:
        """Of a trace that an earlier process scored: these sessions still need its requests."""
        self._joined[trace_id] = [session_key(each) for each in sessions]

    def closing(self, key: str, sessions: Collection[str] = ()) -> None:
        """In the engine's thread: a trace, or a session, is scored, but that is not yet on disk.

        What the trace is made of is then needed by the sessions that it was given to.
        """
        keys = [session_key(each) for each in sessions]
        with self._lock:
            ids = self._waiting.pop(key, [])
            for each in keys:
                self._wait_for(each, ids)
            self._closing.setdefault(key, deque()).append(_Closing(ids, keys))
            self._joined = {
                trace: sessions for trace, sessions in self._joined.items() if key not in sessions
            }

    def closed(self, key: str) -> None:
        """That it is scored is on disk."""
        with self._lock:
            pending = self._closing[key]
            ids = pending.popleft().ids
            if not pending:
                del self._closing[key]
            done = [id for id in ids if self._leaves(id)]
        for id in done:
            self._fulfil(id, "evaluate")

    def _leaves(self, id: int) -> bool:
        kept = self._kept.get(id)
        if kept is None:
            return False
        kept.waits -= 1
        return kept.waits == 0

    def expire(self, now: float) -> None:
        """Log records whose trace never came."""
        while self._logs and self._logs[0][0] <= now:
            _, id, trace_ids = self._logs.popleft()
            with self._lock:
                for trace_id in trace_ids:
                    self._leave(trace_id, id)
            self._fulfil(id, "evaluate")

    def _leave(self, trace_id: str, id: int) -> None:
        ids = self._waiting.get(trace_id, [])
        if id in ids:
            ids.remove(id)
            if not ids:
                del self._waiting[trace_id]

    def _fulfil(self, id: int, duty: Duty) -> None:
        with self._lock:
            kept = self._kept.get(id)
            if kept is None or not getattr(kept, duty):
                return
            setattr(kept, duty, False)
            is_done = not (kept.forward or kept.evaluate)
            if is_done:
                del self._kept[id]
        if is_done:
            self.journal.forget(kept.entry)
        else:
            self.journal.record(lambda ledger: ledger.fulfil(id, duty))


def _identity(spans: Sequence[object]) -> int:
    return id(spans)
