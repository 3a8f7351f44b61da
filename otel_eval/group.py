"""One group of items that belong together: the spans of a trace, or the traces of a session.

It knows when it would close and whether it is whole; a `Grouper` holds many of them.
"""

import math
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias

from otel_eval.closed import Closed, K, Past, T, make_closed
from otel_eval.model import ClosedBy, Span

MIB: Final = 1024 * 1024

Place: TypeAlias = Literal["root", "entry", "exit", "inner", "loose"]
"""Where an item stands in its group's tree.

root: no parent · entry: came in from another process · exit: a CLIENT or PRODUCER with a remote
parent · inner: the parent lives in the same process · loose: the group is no tree (sessions).
"""


def place_of(span: Span) -> Place:
    """A sender that does not say whether the parent is remote is judged by the span's kind."""
    if span.parent_id is None:
        return "root"
    remote = span.parent_remote
    if remote is None:
        remote = span.kind in ("server", "consumer")
    if not remote:
        return "inner"
    return "exit" if span.kind in ("client", "producer") else "entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a group closes. Times in seconds, sizes in bytes."""

    settle: float = 10.0
    local_settle: float = 30.0
    idle: float = 300.0
    max_age: float = 3600.0
    max_open: int = 50_000
    max_items: int = 10_000
    max_bytes: int = 32 * MIB
    max_remembered: int = 100_000
    """How many closed groups are remembered, to know a late or repeated item when it comes."""


class Tops:
    """The items of a group whose parent is not in it: counted by their place."""

    __slots__ = ("entered_at", "entries", "exits", "inners", "loose", "orphans", "root")

    def __init__(self) -> None:
        self.root = False
        self.loose = False
        self.entries = 0
        self.exits = 0
        self.inners = 0
        self.entered_at = math.inf
        self.orphans: dict[str | None, list[Place]] = {}

    def add(self, parent: str | None, place: Place) -> None:
        """An item whose parent has not come."""
        if place == "root":
            self.root = True
        elif place == "loose":
            self.loose = True
        else:
            self.orphans.setdefault(parent, []).append(place)
            self._count(place, 1)

    def adopt(self, item_id: str) -> None:
        """The parent of some that waited for it."""
        for place in self.orphans.pop(item_id, ()):
            self._count(place, -1)

    def _count(self, place: Place, change: int) -> None:
        if place == "inner":
            self.inners += change
        elif place == "entry":
            self.entries += change
        else:
            self.exits += change

    @property
    def entered(self) -> bool:
        """Every top is an ended local root, and there is one."""
        return self.entries > 0 and not self.exits and not self.inners

    @property
    def rooted(self) -> bool:
        return self.root or self.entered

    @property
    def own_root(self) -> bool:
        return self.root or self.loose or self.entries > 0


class Group(Generic[T]):
    __slots__ = (
        "active_at",
        "bytes",
        "check_at",
        "items",
        "lost",
        "opened_at",
        "past",
        "running",
        "ticket",
        "tops",
        "watched",
    )

    def __init__(self, *, past: Past | None, opened_at: float, lost: bool) -> None:
        self.past = past
        self.opened_at = opened_at
        self.active_at = opened_at
        self.lost = lost
        self.watched = False
        """Whether starts are seen, so that nothing running means that nothing is to come."""
        self.items: dict[str, T] = {}
        self.bytes = 0
        self.tops = Tops()
        self.running: set[str] | None = None
        self.check_at = math.inf
        self.ticket = -1

    def has(self, item_id: str) -> bool:
        """Here, or in a part that closed."""
        return item_id in self.items or (self.past is not None and self.past.holds(item_id))

    def start(self, item_id: str) -> None:
        self.watched = True
        if self.running is None:
            self.running = set()
        self.running.add(item_id)

    def lose(self, item_id: str | None) -> None:
        self.lost = True
        if self.running and item_id is not None:
            self.running.discard(item_id)

    def add(
        self, item_id: str, item: T, size: int, parent: str | None, place: Place, now: float
    ) -> None:
        items = self.items
        items[item_id] = item
        self.bytes += size
        if self.running:
            self.running.discard(item_id)
        is_top = parent not in items
        if is_top or item_id in self.tops.orphans:
            self._place(item_id, parent, place, is_top, now)

    def _place(
        self, item_id: str, parent: str | None, place: Place, is_top: bool, now: float
    ) -> None:
        """Local roots have to settle anew when a further one comes."""
        tops = self.tops
        entered, entries = tops.entered, tops.entries
        if is_top:
            tops.add(parent, place)
        tops.adopt(item_id)
        if tops.entered and (not entered or tops.entries > entries):
            tops.entered_at = now

    def deadline(self, limits: Limits) -> tuple[float, ClosedBy]:
        age = self.opened_at + limits.max_age
        at, by = self._quiet(limits)
        return (at, by) if at <= age else (age, "age")

    def _quiet(self, limits: Limits) -> tuple[float, ClosedBy]:
        if self.running:
            # A span that never ends must not hold a trace whose root ended for the whole max_age.
            return (self.active_at + limits.idle if self.tops.root else math.inf), "root"
        if not self.tops.rooted:
            return self.active_at + limits.idle, "idle"
        if self.watched:
            return self.active_at, "root"
        settled = self.active_at + limits.settle
        if self.tops.root:
            return settled, "root"
        return max(settled, self.tops.entered_at + limits.local_settle), "root"

    @property
    def flushable(self) -> bool:
        return self.tops.root or (self.tops.entered and not self.running)

    def close(self, key: K, by: ClosedBy) -> Closed[K, T]:
        past = self.past
        return make_closed(
            key=key,
            items=tuple(self.items.values()),
            by=by,
            part=past.parts + 1 if past else 1,
            whole=self._whole(by),
            late=past is not None and not self.tops.own_root,
            after=past.by if past else None,
            bytes=self.bytes,
        )

    def _whole(self, by: ClosedBy) -> bool:
        """A part after one that was cut off lacks what that one has."""
        if self.lost or by != "root" or self.running or self.tops.inners:
            return False
        return self.past is None or self.past.whole
