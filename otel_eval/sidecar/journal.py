"""The journal: on disk before it is acknowledged, and there until it is done with.

One thread writes. Whatever has gathered while it wrote goes into its next transaction, so that many
requests share one commit. With `sync: interval` a commit is with the operating system, which is
enough for a process that is killed; the disk follows every 200 ms, for a machine that is.
"""

import asyncio
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Condition, Thread
from typing import Final, Literal, TypeAlias

from otel_eval import settings
from otel_eval.quantities import to_bytes
from otel_eval.sidecar.ledger import Closing, Entry, Ledger, is_trouble, set_aside
from otel_eval.sidecar.logs import place_of

log = logging.getLogger(__name__)

FILE: Final = "journal.sqlite"
SYNC_SECONDS: Final = 0.2
TIDY_SECONDS: Final = 2.0
QUIET_SECONDS: Final = 10.0
ROW_BYTES: Final = 300
"""What a request takes in the file beside its body."""

Act: TypeAlias = Callable[[Ledger], None]
Then: TypeAlias = Callable[[bool], None]
"""Called in the event loop: whether it was written."""


@dataclass(frozen=True, slots=True)
class _Change:
    act: Act
    then: Then | None
    kind: Literal["add", "record", "read"]
    """An addition that fails is refused. A record is tried until it is written."""


class Journal:
    """Made in the event loop; changes come from any thread."""

    def __init__(self, config: settings.Journal) -> None:
        self._file: Final = config.path / FILE
        self._every_commit: Final = config.sync == "always"
        self._max_bytes: Final = to_bytes(config.max_mib)
        self._loop = asyncio.get_running_loop()
        self._changes: deque[_Change] = deque()
        self._changed = Condition()
        self._busy = False
        self._closing = False
        self._synced_at = 0.0
        self._tidied_at = 0.0
        self._dirty = False
        self._quiet_until = 0.0
        self.bytes = 0
        self.requests = 0
        self.damaged = 0
        self.failures = 0
        config.path.mkdir(parents=True, exist_ok=True)
        self.open: Sequence[Entry]
        """What an earlier process left undone, in order."""
        self.closed: Sequence[Closing]
        self._ledger = self._first()
        self._ids = count(max((each.id for each in self.open), default=0) + 1)
        for entry in self.open:
            self._count(entry, 1)
        self._thread = Thread(target=self._run, name="otel-eval-journal", daemon=True)
        self._thread.start()

    def _first(self) -> Ledger:
        try:
            return self._opened()
        # Changed bytes show as text that is none, as JSON that is none, as a column that is not
        # there, and seldom as what SQLite calls corrupt.
        except (sqlite3.Error, ValueError) as error:
            if is_trouble(error):
                raise OSError(f"the journal {self._file} cannot be used: {error}") from error
            self._set_aside(error)
            return self._opened()

    def _opened(self) -> Ledger:
        ledger = Ledger(self._file, every_commit=self._every_commit)
        try:
            self.open, self.closed = ledger.entries(), ledger.closings()
        except (sqlite3.Error, ValueError):
            ledger.shut()
            raise
        return ledger

    def _set_aside(self, error: Exception) -> None:
        self.damaged += 1
        aside = set_aside(self._file)
        log.error(
            "the journal is damaged (%s): it is kept as %s, and a new one begins; "
            "what only the old one held is not forwarded and not scored",
            error,
            aside,
        )

    def new_id(self) -> int:
        return next(self._ids)

    def fits(self, size: int) -> bool:
        """A request that is larger than the whole journal may go alone."""
        return not self.bytes or self.bytes + size + ROW_BYTES <= self._max_bytes

    def add(self, entry: Entry, body: bytes, then: Then) -> None:
        """In the event loop; `then` is told whether the request is on disk."""
        self._count(entry, 1)

        def written(is_written: bool) -> None:
            if not is_written:
                self._count(entry, -1)
            then(is_written)

        self._put(_Change(lambda ledger: ledger.add(entry, body), written, "add"))

    def record(self, act: Act, then: Then | None = None) -> None:
        """A change that must be written, however often it takes."""
        self._put(_Change(act, then, "record"))

    def forget(self, entry: Entry) -> None:
        """All is done; in the event loop."""
        self._count(entry, -1)
        self.record(lambda ledger: ledger.remove(entry.id))

    def count(self, entry: Entry) -> None:
        """For what is added by `record`; in the event loop."""
        self._count(entry, 1)

    async def body(self, id: int) -> bytes | None:
        """None if it is not there any more, or not as it was."""
        found: list[bytes | None] = []
        read = self._loop.create_future()

        def then(_is_read: bool) -> None:
            if not read.done():
                read.set_result(found[0] if found else None)

        self._put(_Change(lambda ledger: found.append(ledger.body(id)), then, "read"))
        result: bytes | None = await read
        return result

    def call(self, act: Callable[[], None]) -> None:
        """In the event loop, from any thread; at the very end the loop may be gone."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(act)

    async def settled(self) -> None:
        """Until all that was asked for so far is written, and told."""
        done = self._loop.create_future()

        def then(_is_written: bool) -> None:
            if not done.done():
                done.set_result(None)

        self.record(lambda _ledger: None, then)
        await done

    def close(self, seconds: float = 5.0) -> None:
        """What waits is written first."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(seconds)

    def _count(self, entry: Entry, sign: int) -> None:
        self.bytes += sign * (entry.size + ROW_BYTES)
        self.requests += sign

    def _put(self, change: _Change) -> None:
        with self._changed:
            self._changes.append(change)
            self._changed.notify_all()

    # From here on: the writer's thread.

    def _run(self) -> None:
        while (changes := self._gathered()) is not None:
            try:
                self._write(changes)
            # A bug must not end the thread that everybody waits for.
            except Exception as error:
                log.error("the journal failed: %s", place_of(error))
                self._tell(changes, is_written=False)
        with suppress(sqlite3.Error):
            self._ledger.shut()

    def _gathered(self) -> list[_Change] | None:
        """None at the end. An empty list when it is only time to sync."""
        with self._changed:
            patience = SYNC_SECONDS if self._dirty else None
            self._changed.wait_for(lambda: self._changes or self._closing, patience)
            if self._closing and not self._changes:
                return None
            found = list(self._changes)
            self._changes.clear()
            return found

    def _write(self, changes: Sequence[_Change]) -> None:
        reads = [each for each in changes if each.kind == "read"]
        writes = [each for each in changes if each.kind != "read"]
        try:
            self._attempt(reads, writes)
        except sqlite3.OperationalError as error:
            self._fail(changes, error)
        except sqlite3.DatabaseError as error:
            self._replace(error)
            self._attempt((), writes)
            self._tell(reads, is_written=True)
        self._sync()

    def _attempt(self, reads: Sequence[_Change], writes: Sequence[_Change]) -> None:
        for each in reads:
            each.act(self._ledger)
        self._tell(reads, is_written=True)
        if not writes:
            return
        with self._ledger.transaction():
            for each in writes:
                each.act(self._ledger)
        self._dirty = True
        self._tell(writes, is_written=True)

    def _sync(self) -> None:
        now = time.monotonic()
        if not self._dirty or now - self._synced_at < SYNC_SECONDS:
            return
        self._synced_at, self._dirty = now, False
        try:
            if not self._every_commit:
                self._ledger.sync()
            if now - self._tidied_at > TIDY_SECONDS:
                self._tidied_at = now
                self._ledger.tidy()
        except (OSError, sqlite3.Error) as error:
            self._complain(error)

    def _fail(self, changes: Sequence[_Change], error: sqlite3.Error) -> None:
        """The disk is full or gone, perhaps not for long.

        What was read is read again then: nobody minds, and who was told already listens no more.
        """
        self._complain(error)
        additions = [each for each in changes if each.kind == "add"]
        records = [each for each in changes if each.kind != "add"]
        self._tell(additions, is_written=False)
        # Records alone may find room where they found none beside a large body.
        if additions:
            self._put_back(records)
        elif self._closing:
            log.error("%d records were not written: they will be done again", len(records))
            self._tell([each for each in records if each.kind == "read"], is_written=False)
        else:
            time.sleep(SYNC_SECONDS)
            self._put_back(records)

    def _put_back(self, changes: Sequence[_Change]) -> None:
        with self._changed:
            self._changes.extendleft(reversed(changes))

    def _complain(self, error: Exception) -> None:
        self.failures += 1
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            log.error("the journal cannot be written (%s): senders are asked to wait", error)

    def _replace(self, error: sqlite3.DatabaseError) -> None:
        with suppress(sqlite3.Error):
            self._ledger.shut()
        self._set_aside(error)
        self._ledger = Ledger(self._file, every_commit=self._every_commit)

    def _tell(self, changes: Sequence[_Change], *, is_written: bool) -> None:
        waiting = [each.then for each in changes if each.then is not None]

        def tell() -> None:
            for then in waiting:
                self._loop.call_soon(then, is_written)

        if waiting:
            self.call(tell)
