"""Spans in, evaluations out: queue → groups → trajectories → evaluations → sinks.

`ended` and its kin only append; everything else happens in `step`, on one worker thread. Sinks and
slow evaluators have threads of their own, so that one that hangs holds up nobody else. With
`background=False` there is no thread at all, and whoever calls `step` does the work.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Final, TypeAlias
from weakref import WeakSet

from opentelemetry.sdk.trace import ReadableSpan

from otel_eval.counters import Counters, Values
from otel_eval.decode.sdk import SdkReader
from otel_eval.decode.terms import MadeUp
from otel_eval.extract import Keys
from otel_eval.grouping import Entry, Grouper, Grouping, by_trace
from otel_eval.model import Span
from otel_eval.outlet import Delivery, Outlet, Sink
from otel_eval.rules import RuleSet, View, default_rules
from otel_eval.scoring import ClosedSession, ClosedTrace, Scorer, SessionGroup, TraceGroup
from otel_eval.slow import SlowPool
from otel_eval.weight import weights
from otel_eval.workers import Worker, suppressed

__all__ = ["ClosedSession", "ClosedTrace", "Engine", "Grouping", "Sink"]

OWN_SCOPE: Final = "otel_eval"
TICK_SECONDS: Final = 0.2
EASE: Final = 0.8
"""The share of the buffer above which the least recently active traces close."""
SESSION_SHARE: Final = 0.25
"""The share of the buffer that sessions may take from traces."""
AT_A_TIME: Final = 1024
"""How many queued spans are grouped before those that closed are scored and freed."""

AnySpan: TypeAlias = Span | ReadableSpan
OnGrouped: TypeAlias = Callable[[Sequence[AnySpan], Container[str]], None]
"""Told, in the engine's thread, what it was fed once that is grouped, and which traces are open."""
_Ids: TypeAlias = tuple[int, int] | tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Batch:
    spans: Sequence[AnySpan]
    size: int


class Engine:
    """Scores what it is fed. Never blocks, never raises into who feeds it, survives fork."""

    def __init__(
        self,
        rules: RuleSet | None = None,
        sinks: Iterable[Sink] = (),
        *,
        grouping: Grouping | None = None,
        keys: Keys | None = None,
        clock: Callable[[], float] = time.monotonic,
        background: bool = True,
        slow_threads: int = 4,
        on_closed: Callable[[ClosedTrace], None] | None = None,
        on_session: Callable[[ClosedSession], None] | None = None,
        on_grouped: OnGrouped | None = None,
    ) -> None:
        self.rules = default_rules() if rules is None else rules
        self._sinks = list(sinks)
        self._grouping = grouping or Grouping()
        self._most_queued = self._grouping.max_queued_spans
        self._max_buffer = self._grouping.max_buffer_bytes
        self._keys = keys or Keys()
        self._clock = clock
        self._background = background
        self._slow_threads = slow_threads
        self._on_closed = on_closed
        self._on_session = on_session
        self._on_grouped = on_grouped
        self._closing = False
        self._closed = False
        self._emptied = False
        self._start_clean()
        _ENGINES.add(self)

    def _start_clean(self) -> None:
        """All that a fork must not carry over: what is buffered belongs to the parent."""
        self.counters = Counters()
        self._outlets = [Outlet(sink, self.counters) for sink in self._sinks]
        self._slow = SlowPool(self._hand_out, threads=self._slow_threads)
        self._traces: Grouper[str, Span] = Grouper(self._grouping.traces())
        self._sessions: Grouper[str, Sequence[View]] = Grouper(self._grouping.sessions())
        self._scorer = Scorer(
            keys=self._keys,
            counters=self.counters,
            sessions=self._sessions,
            slow=self._slow,
            hand_out=self._hand_out,
            on_closed=self._on_closed,
            on_session=self._on_session,
        )
        self._started: deque[tuple[int, int]] = deque()
        self._ended: deque[AnySpan] = deque()
        self._batches: deque[_Batch] = deque()
        self._batch_spans = 0
        self._batch_bytes = 0
        self._lost: deque[_Ids] = deque(maxlen=self._most_queued)
        self._worker = Worker(lambda: self.step(self._clock()), self.counters.fail, TICK_SECONDS)
        self._to_start = self._background
        self._stepping = Lock()
        self._gate = RLock()

    def add_sink(self, sink: Sink) -> None:
        """For sinks that read the engine's own counts, and so are made after it."""
        with self._gate:
            outlet = Outlet(sink, self.counters)
            if self._worker.is_alive:
                outlet.start()
            self._sinks.append(sink)
            self._outlets.append(outlet)

    # What the front doors call: an append, and nothing else.

    def started(self, trace_id: int, span_id: int) -> None:
        """A span of this process began: its trace stays open at least until the span ends."""
        if len(self._started) < self._most_queued and not self._closed:
            self._started.append((trace_id, span_id))

    def ended(self, span: AnySpan) -> None:
        """One span; as cheap as can be, for it runs in the agent's own thread."""
        waiting = len(self._ended)
        if waiting >= self._most_queued or self._closed:
            self._refuse([span])
            return
        self._ended.append(span)
        if self._to_start:
            self.start()
        if 2 * waiting > self._most_queued:
            self._worker.wake()
        if self._emptied:
            self._sweep()

    def feed(self, spans: Sequence[AnySpan], size: int = 0) -> bool:
        """Many spans; `size` in bytes where the caller knows it, to keep the queue in bounds.

        False if there was no room: they are passed over, and counted so.
        """
        with self.counters.lock:
            fits = not self._closed and self._has_room(size)
            if fits:
                self.counters.receive(len(spans))
                self._batch_spans += len(spans)
                self._batch_bytes += size
                self._batches.append(_Batch(spans, size))
        if not fits:
            self._refuse(spans)
        elif self._to_start:
            self.start()
        elif 2 * self._batch_spans > self._most_queued or 4 * self._batch_bytes > self._max_buffer:
            self._worker.wake()
        return fits

    # What an earlier process did; only before the engine starts.

    def remember(self, closed: TraceGroup, span_ids: Sequence[str]) -> None:
        """A trace that was scored."""
        self._traces.remember(closed, span_ids)

    def remember_session(self, closed: SessionGroup, traces: Sequence[str]) -> None:
        self._sessions.remember(closed, traces)

    def rejoin(self, closed: TraceGroup) -> Collection[str]:
        """A trace that was scored, but not all of the sessions that it is of: answers with them."""
        return self._scorer.rejoin(closed, self.rules, self._clock())

    def _has_room(self, size: int) -> bool:
        """What is larger than the whole buffer is taken too, when nothing else waits."""
        fits = self._batch_bytes + size <= self._max_buffer
        return not self._batches or (fits and self._batch_spans < self._most_queued)

    def _refuse(self, spans: Sequence[AnySpan]) -> None:
        self.counters.refuse("shutdown" if self._closed else "shed", len(spans))
        self._lost.extend(map(_ids, spans))

    def _sweep(self) -> None:
        """What slipped into the queue while the engine was being closed."""
        with self.counters.lock:
            while self._ended:
                self._ended.popleft()
                self.counters.refuse("shutdown", 1)

    @property
    def is_full(self) -> bool:
        """Whether what is fed now would be passed over: callers that can refuse should."""
        waiting = max(self._batch_spans, len(self._ended))
        return waiting >= self._most_queued or self.buffered_bytes >= self._max_buffer

    @property
    def buffered_bytes(self) -> int:
        return self._batch_bytes + self._traces.bytes + self._sessions.bytes

    def snapshot(self) -> Mapping[str, Values]:
        """Every count of one moment, by the OTel name of its instrument and by its labels."""
        with self.counters.lock:
            values = self.counters.values(queued=len(self._ended))
        return {
            **values,
            "otel_eval.open_traces": {(): len(self._traces)},
            "otel_eval.open_sessions": {(): len(self._sessions)},
            "otel_eval.buffered": {(): self.buffered_bytes},
        }

    # From here on: the worker's life.

    def start(self) -> None:
        """Happens by itself on the first span; at interpreter exit it may not happen at all."""
        with self._gate:
            if not self._to_start or self._closed:
                return
            self._slow.start()
            for outlet in self._outlets:
                outlet.start()
            self._to_start = not self._worker.start()

    def step(self, now: float) -> None:
        """Everything that is to be done at this time."""
        with self._stepping, suppressed():
            self._take(now)
            self._score(self._traces.due(now), now)
            self._ease_sessions()
            self._scorer.score_sessions(self._sessions.due(now))
            self._scorer.deliver()

    def flush(self, timeout: float = 30.0) -> bool:
        """Score every trace whose root ended, now, and see it delivered. False if not in time."""
        return self._see_done(self._flush_now, timeout)

    def drain(self, timeout: float = 30.0) -> bool:
        """Score what is open as `close` does, but go on: more may come. False if not in time."""
        return self._see_done(self._drain_now, timeout)

    def close(self, timeout: float = 30.0, *, flush: bool = True) -> bool:
        """Score what is open, deliver it, close the sinks. False if that took longer.

        With `flush`, traces whose root ended close by `root`; all others close by `shutdown`.
        """
        with self._gate:
            if self._closing:
                return True
            self._closing = True
        ends = time.monotonic() + timeout
        done = self._worker.ask(lambda: self._close_now(flush), 0.8 * timeout)
        done &= self._slow.wait(0.8 * _left(ends))
        self._slow.close()
        # All are told before any is waited for: one that hangs must not keep others from closing.
        for outlet in self._outlets:
            outlet.close()
        return all([done, *(outlet.finished(_left(ends)) for outlet in self._outlets)])

    def _see_done(self, act: Callable[[], None], timeout: float) -> bool:
        ends = time.monotonic() + timeout
        done = self._worker.ask(act, timeout)
        done &= self._slow.wait(_left(ends))
        return all([done, *(outlet.wait(_left(ends)) for outlet in self._outlets)])

    def _flush_now(self) -> None:
        now = self._clock()
        with self._stepping, suppressed():
            self._take(now)
            self._score(self._traces.flush(), now)
            self._ease_sessions()
            self._scorer.deliver()

    def _drain_now(self) -> None:
        now = self._clock()
        with self._stepping, suppressed():
            self._take(now)
            self._score_all(now, flush=True)

    def _close_now(self, flush: bool) -> None:
        now = self._clock()
        with self._stepping, suppressed():
            self._worker.stop()
            with self.counters.lock:
                self._closed = True
            self._take(now)
            # Said before it is done: who adds to the queue later than this sweeps it too.
            self._emptied = True
            self._sweep()
            self._score_all(now, flush)

    def _score_all(self, now: float, flush: bool) -> None:
        if flush:
            self._score(self._traces.flush(), now)
        self._score(self._traces.drain(), now)
        self._scorer.score_sessions(self._sessions.drain())
        self._scorer.deliver()

    # From the queues into groups.

    def _take(self, now: float) -> None:
        # Counted before the starts are read, so that the start of every end is known.
        waiting = len(self._ended)
        while self._started:
            trace_id, span_id = self._started.popleft()
            self._traces.started(f"{trace_id:032x}", f"{span_id:016x}", now)
        while self._lost:
            self._traces.lose(*_as_text(self._lost.popleft()))
        reader = SdkReader(MadeUp())
        for first in range(0, waiting, AT_A_TIME):
            self._group(self._take_ended(min(AT_A_TIME, waiting - first)), reader, now)
        while self._batches:
            batch = self._take_batch()
            self._group(batch.spans, SdkReader(MadeUp()), now, batch.size)
            if self._on_grouped is not None:
                self._on_grouped(batch.spans, self._traces)

    def _take_ended(self, count: int) -> Sequence[AnySpan]:
        with self.counters.lock:
            spans = [self._ended.popleft() for _ in range(count)]
            self.counters.receive(count)
        return spans

    def _take_batch(self) -> _Batch:
        with self.counters.lock:
            batch = self._batches.popleft()
            self._batch_spans -= len(batch.spans)
            self._batch_bytes -= batch.size
        return batch

    def _group(
        self, spans: Iterable[AnySpan], reader: SdkReader, now: float, size: int = 0
    ) -> None:
        found = [span if isinstance(span, Span) else self._decoded(span, reader) for span in spans]
        decoded = [span for span in found if span is not None]
        traces, own = by_trace(decoded, weights(decoded, size), without=OWN_SCOPE)
        for trace_id, entries in traces.items():
            self._add(trace_id, entries, now)
        if own:
            self.counters.settle("own", own)
        self._score(self._traces.ready(), now)
        self._ease_sessions()

    def _ease_sessions(self) -> None:
        self._sessions.ease(SESSION_SHARE * self._max_buffer)
        self._scorer.score_sessions(self._sessions.ready())

    def _decoded(self, span: ReadableSpan, reader: SdkReader) -> Span | None:
        try:
            return reader.read(span)
        # Attribute values may be objects of the application, with a __str__ that raises.
        except Exception:
            self._traces.lose(*_as_text(_ids(span)))
            self.counters.pass_over("undecodable")
            return None

    def _add(self, trace_id: str, entries: Sequence[Entry[Span]], now: float) -> None:
        if self.buffered_bytes >= self._max_buffer:
            self._ease_traces()
            if self.buffered_bytes >= self._max_buffer and trace_id not in self._traces:
                self._traces.lose(trace_id)
                self.counters.pass_over("shed", len(entries))
                return
        taken = self._traces.extend(trace_id, entries, now)
        self._ease_traces()
        if taken < len(entries):
            self.counters.settle("duplicate", len(entries) - taken)

    def _ease_traces(self) -> None:
        others = self._sessions.bytes + self._batch_bytes
        self._traces.ease(EASE * self._max_buffer - others)

    def _score(self, groups: Iterable[TraceGroup], now: float) -> None:
        self._scorer.score_traces(groups, self.rules, now)

    def _hand_out(self, delivery: Delivery) -> None:
        for outlet in self._outlets:
            outlet.put(delivery)

    def _become_child(self) -> None:
        self._start_clean()
        self._closing = self._emptied = self._closed


def _ids(span: AnySpan) -> _Ids:
    if isinstance(span, Span):
        return span.trace_id, span.span_id
    context = span.get_span_context()
    return (context.trace_id, context.span_id) if context else ("", "")


def _as_text(ids: _Ids) -> tuple[str, str]:
    """As spans have them once they are decoded; not done in the agent's own thread."""
    trace_id, span_id = ids
    if isinstance(trace_id, int):
        return f"{trace_id:032x}", f"{span_id:016x}"
    return trace_id, str(span_id)


def _left(ends: float) -> float:
    return max(0.0, ends - time.monotonic())


_ENGINES: WeakSet[Engine] = WeakSet()


def _after_fork() -> None:
    for engine in list(_ENGINES):
        engine._become_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
