"""When the spans of a trace, or the traces of a session, are complete enough to be scored.

A `Grouper` has no clock, no thread and no I/O: time is an argument, in seconds, and everything that
closed since the last call comes out of `due`, `flush`, `drain` or `ready`.
"""

import sys
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeAlias

from otel_eval.closed import Closed, K, Past, T, make_past
from otel_eval.group import MIB, Group, Limits, Place, place_of
from otel_eval.model import ClosedBy, Span

__all__ = [
    "MIB",
    "Closed",
    "Entry",
    "Grouper",
    "Grouping",
    "Limits",
    "Place",
    "by_trace",
    "place_of",
]

IDS_REMEMBERED: Final = 2_000_000

Entry: TypeAlias = tuple[str, T, int, str | None, Place]
"""An item's id, the item, its size in bytes, the id of its parent and its place."""


def by_trace(
    spans: Iterable[Span], sizes: Iterable[int], *, without: str
) -> tuple[dict[str, list[Entry[Span]]], int]:
    """The entries of each trace, and how many spans were left out: those of this scope."""
    traces: dict[str, list[Entry[Span]]] = {}
    left_out = 0
    for span, size in zip(spans, sizes, strict=True):
        if span.scope.name == without:
            left_out += 1
            continue
        entry = span.span_id, span, size, span.parent_id, place_of(span)
        traces.setdefault(span.trace_id, []).append(entry)
    return traces, left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """When traces and sessions close. Times in seconds, sizes in bytes."""

    settle: float = 10.0
    local_settle: float = 30.0
    idle: float = 300.0
    max_age: float = 3600.0
    session_idle: float = 600.0
    session_max_age: float = 86400.0
    max_open_traces: int = 50_000
    max_open_sessions: int = 50_000
    max_spans_per_trace: int = 10_000
    max_trace_bytes: int = 32 * MIB
    max_buffer_bytes: int = 512 * MIB
    max_queued_spans: int = 65_536

    def traces(self) -> Limits:
        return Limits(
            settle=self.settle,
            local_settle=self.local_settle,
            idle=self.idle,
            max_age=self.max_age,
            max_open=self.max_open_traces,
            max_items=self.max_spans_per_trace,
            max_bytes=self.max_trace_bytes,
        )

    def sessions(self) -> Limits:
        """A session never closes by size: only the buffer as a whole bounds it."""
        return Limits(
            idle=self.session_idle,
            max_age=self.session_max_age,
            max_open=self.max_open_sessions,
            max_items=sys.maxsize,
            max_bytes=sys.maxsize,
        )


class _Memory(Generic[K]):
    """Closed groups, the most recently closed of them; forgets the oldest first."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._past: OrderedDict[K, Past] = OrderedDict()
        self._ids = 0

    def get(self, key: K) -> Past | None:
        return self._past.get(key)

    def add(self, closed: Closed[K, T], ids: Iterable[str]) -> None:
        before = self._past.pop(closed.key, None)
        hashes = list(map(hash, ids))
        if before is not None:
            self._ids -= len(before.ids)
            hashes.extend(before.ids)
        self._past[closed.key] = self._merge(closed, before, hashes)
        self._ids += len(hashes)
        while len(self._past) > self._most or self._ids > IDS_REMEMBERED:
            self._ids -= len(self._past.popitem(last=False)[1].ids)

    @staticmethod
    def _merge(closed: Closed[K, T], before: Past | None, hashes: list[int]) -> Past:
        ids = array("q", sorted(hashes))
        if before is not None and closed.late:
            return replace(before, ids=ids)
        return make_past(parts=closed.part, by=closed.by, whole=closed.whole, ids=ids)


class Grouper(Generic[K, T]):
    """Collects items by key until their group closes; every item leaves exactly once.

    `due` costs what closes and what was rescheduled, not what is open: each group has one check
    time in a heap, and activity that only moves the check later leaves the heap alone.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._groups: OrderedDict[K, Group[T]] = OrderedDict()
        self._heap: list[tuple[float, int, K]] = []
        self._tickets = count()
        self._ready: list[Closed[K, T]] = []
        self._memory: _Memory[K] = _Memory(most=limits.max_remembered)
        self._lost: OrderedDict[K, None] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, key: object) -> bool:
        return key in self._groups

    @property
    def bytes(self) -> int:
        """What the open groups hold."""
        return self._bytes

    def add(
        self,
        key: K,
        item: T,
        now: float,
        *,
        item_id: str,
        size: int = 0,
        parent: str | None = None,
        place: Place = "loose",
    ) -> bool:
        """Take an item in; False if the group, or a part of it that closed, already has it."""
        return self.extend(key, [(item_id, item, size, parent, place)], now) == 1

    def extend(self, key: K, entries: Iterable[Entry[T]], now: float) -> int:
        """Take items of one group in, and say how many of them it did not have already."""
        group = self._open(key, now)
        taken = added = 0
        for item_id, item, size, parent, place in entries:
            if item_id in group.items or (group.past is not None and group.has(item_id)):
                continue
            if self._is_full(group, size):
                group = self._continue(key, group, now)
            group.add(item_id, item, size, parent, place, now)
            added += size
            taken += 1
        self._bytes += added
        if taken:
            self._touch(key, group, now)
        else:
            self._drop_if_new(key, group)
        return taken

    def started(self, key: K, item_id: str, now: float) -> None:
        """A span that began: until it is added, its group does not close by idle."""
        group = self._open(key, now)
        if group.has(item_id):
            self._drop_if_new(key, group)
            return
        group.start(item_id)
        self._touch(key, group, now)

    def lose(self, key: K, item_id: str | None = None) -> None:
        """Something of this group was dropped on the way: it is over, and the group not whole."""
        group = self._groups.get(key)
        if group is not None:
            group.lose(item_id)
            if group.items or group.running:
                self._hasten(key, group)
                return
            del self._groups[key]
        self._lost[key] = None
        if len(self._lost) > self._limits.max_remembered:
            self._lost.popitem(last=False)

    def remember(self, closed: Closed[K, T], ids: Sequence[str]) -> None:
        """A group that closed elsewhere: what comes of it now is a repetition, late or a part."""
        self._memory.add(closed, ids)

    def due(self, now: float) -> list[Closed[K, T]]:
        """What closed since the last call, and what closes at this time."""
        while self._heap and self._heap[0][0] <= now:
            _, ticket, key = heappop(self._heap)
            group = self._groups.get(key)
            if group is None or group.ticket != ticket:
                continue
            at, by = group.deadline(self._limits)
            if at <= now:
                self._close(key, by)
            else:
                self._schedule(key, group, at)
        return self.ready()

    def flush(self) -> list[Closed[K, T]]:
        """Close every group whose root ended, without waiting; leave the others open."""
        for key in [key for key, group in self._groups.items() if group.flushable]:
            self._close(key, "root")
        return self.ready()

    def drain(self) -> list[Closed[K, T]]:
        """Close everything."""
        while self._groups:
            self._close(next(iter(self._groups)), "shutdown")
        return self.ready()

    def ease(self, most_bytes: float) -> None:
        """Close the least recently active groups until the rest holds no more than this."""
        while self._groups and self._bytes > most_bytes:
            self._close(next(iter(self._groups)), "capacity")

    def ready(self) -> list[Closed[K, T]]:
        """What closed since the last call, because it was full or others needed its place."""
        ready, self._ready = self._ready, []
        return ready

    def _open(self, key: K, now: float) -> Group[T]:
        group = self._groups.get(key)
        if group is None:
            past = self._memory.get(key)
            group = Group(past=past, opened_at=now, lost=key in self._lost)
            self._groups[key] = group
        return group

    def _continue(self, key: K, full: Group[T], now: float) -> Group[T]:
        """A part that follows one that was full; what was running still runs."""
        self._close(key, "size")
        group = self._open(key, now)
        group.watched, group.running = full.watched, full.running
        return group

    def _drop_if_new(self, key: K, group: Group[T]) -> None:
        if not group.items and not group.running:
            del self._groups[key]

    def _is_full(self, group: Group[T], size: int) -> bool:
        if not group.items:
            return False
        limits = self._limits
        return len(group.items) >= limits.max_items or group.bytes + size > limits.max_bytes

    def _touch(self, key: K, group: Group[T], now: float) -> None:
        group.active_at = now
        self._groups.move_to_end(key)
        if len(self._groups) > self._limits.max_open:
            self._close(next(iter(self._groups)), "capacity")
        self._hasten(key, group)

    def _hasten(self, key: K, group: Group[T]) -> None:
        at, _ = group.deadline(self._limits)
        if at < group.check_at:
            self._schedule(key, group, at)

    def _schedule(self, key: K, group: Group[T], at: float) -> None:
        group.check_at = at
        group.ticket = next(self._tickets)
        heappush(self._heap, (at, group.ticket, key))
        if len(self._heap) > 2 * len(self._groups) + 1024:
            self._compact()

    def _compact(self) -> None:
        """Entries of groups that closed early would otherwise stay until their time came."""
        self._heap = [
            entry
            for entry in self._heap
            if (group := self._groups.get(entry[2])) is not None and group.ticket == entry[1]
        ]
        heapify(self._heap)

    def _close(self, key: K, by: ClosedBy) -> None:
        group = self._groups.pop(key)
        self._bytes -= group.bytes
        if not group.items:
            return
        closed = group.close(key, by)
        self._lost.pop(key, None)
        self._memory.add(closed, group.items)
        self._ready.append(closed)
