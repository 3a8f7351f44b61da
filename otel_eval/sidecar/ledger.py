"""The journal's file: what was acknowledged and is not done with, in SQLite.

Bodies have a table of their own, so that marking a request does not write its body again. What is
marked as closed stays for a while after its requests have gone: a span that comes twice, or late,
must find its trace scored, also after a restart.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args
from zlib import crc32

import orjson

from otel_eval.model import ClosedBy
from otel_eval.sidecar.signals import SIGNALS, Form, Signal

VERSION: Final = 1
REMEMBERED: Final = 20_000
"""How many closed traces are kept beyond those that open requests may hold spans of."""
VACUUM_PAGES: Final = 512
SPARE_PAGES: Final = 4096
"""Free pages that stay in the file, to be written again; those beyond are given back."""

SESSION: Final = "session "

Target: TypeAlias = Literal["forward", "logs"]
Duty: TypeAlias = Literal["forward", "evaluate"]
"""What is still to be done with a request."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY, signal TEXT, form TEXT, spans INTEGER, size INTEGER, crc INTEGER,
    target TEXT, forward INTEGER, evaluate INTEGER);
CREATE INDEX IF NOT EXISTS unscored ON requests (id) WHERE evaluate;
CREATE TABLE IF NOT EXISTS bodies (id INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE IF NOT EXISTS closed (
    id INTEGER PRIMARY KEY, key TEXT, part INTEGER, closed_by TEXT, whole INTEGER,
    late INTEGER, members TEXT, sessions TEXT, last INTEGER);
"""
FORGET: Final = """
DELETE FROM closed WHERE id <= (SELECT max(id) FROM closed) - ? AND last <
    coalesce((SELECT min(id) FROM requests WHERE evaluate), last + 1)
"""

_TROUBLE: Final = frozenset(
    {
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
_BY_NAME: Final = {signal.name: signal for signal in SIGNALS}
_CLOSED_BY: Final = {by: by for by in get_args(ClosedBy)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request in the file; one of our own making is only to be forwarded."""

    id: int
    signal: Signal
    form: Form = "protobuf"
    spans: int = 0
    size: int
    target: Target = "forward"
    forward: bool
    evaluate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A trace or a session, or a part of one, that was scored."""

    key: str
    """The id of the trace, or that of the session as `session_key` has it."""
    part: int
    closed_by: ClosedBy
    whole: bool = True
    late: bool = False
    members: Sequence[str]
    """The ids of its spans; of a session the traces, as `trace id/part`."""
    sessions: Sequence[str] = ()
    """The sessions that a trace was given to."""

    @property
    def session(self) -> str | None:
        return self.key.removeprefix(SESSION) if self.key.startswith(SESSION) else None


def session_key(session: str) -> str:
    """No trace has an id like that."""
    return SESSION + session


class Ledger:
    """Used by one thread at a time. What SQLite raises is for the caller."""

    def __init__(self, file: Path, *, every_commit: bool) -> None:
        """`every_commit`: a commit is on the disk, not only with the operating system."""
        self._file = file
        self._db = sqlite3.connect(file, timeout=1, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(every_commit)
        except BaseException:
            self._db.close()
            raise
        self._wal = os.open(f"{file}-wal", os.O_RDONLY | os.O_CREAT)

    def _prepare(self, every_commit: bool) -> None:
        db = self._db
        # No second process, and no shared memory: there is one connection.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if every_commit else 'NORMAL'}")
        db.execute("PRAGMA journal_size_limit = 67108864")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"version {version} where {VERSION} was expected")
        with self.transaction():
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")

    def entries(self) -> list[Entry]:
        """In the order in which they came."""
        names = "id, signal, form, spans, size, target, forward, evaluate"
        rows = self._db.execute(f"SELECT {names} FROM requests ORDER BY id")
        return [_entry(row) for row in rows]

    def closings(self) -> list[Closing]:
        names = "key, part, closed_by, whole, late, members, sessions"
        rows = self._db.execute(f"SELECT {names} FROM closed ORDER BY id")
        return [_closing(row) for row in rows]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def add(self, entry: Entry, body: bytes) -> None:
        row = (
            entry.id,
            entry.signal.name,
            entry.form,
            entry.spans,
            entry.size,
            crc32(body),
            entry.target,
            entry.forward,
            entry.evaluate,
        )
        self._db.execute("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._db.execute("INSERT INTO bodies VALUES (?, ?)", (entry.id, body))

    def body(self, id: int) -> bytes | None:
        """None where there is none, or where it is not what was written."""
        found = self._db.execute(
            "SELECT body, crc FROM bodies JOIN requests USING (id) WHERE id = ?", (id,)
        ).fetchone()
        if found is None or crc32(found[0]) != found[1]:
            return None
        return bytes(found[0])

    def fulfil(self, id: int, duty: Duty) -> None:
        self._db.execute(f"UPDATE requests SET {duty} = 0 WHERE id = ?", (id,))

    def remove(self, id: int) -> None:
        self._db.execute("DELETE FROM requests WHERE id = ?", (id,))
        self._db.execute("DELETE FROM bodies WHERE id = ?", (id,))

    def close(self, closings: Iterable[Closing]) -> None:
        last = self._db.execute("SELECT coalesce(max(id), 0) FROM requests").fetchone()[0]
        rows = [
            (
                each.key,
                each.part,
                each.closed_by,
                each.whole,
                each.late,
                " ".join(each.members),
                orjson.dumps(list(each.sessions)).decode(),
                last,
            )
            for each in closings
        ]
        self._db.executemany("INSERT INTO closed VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def tidy(self) -> None:
        """Forget what closed long ago, and give back space; outside of a transaction."""
        self._db.execute(FORGET, (REMEMBERED,))
        if self._db.execute("PRAGMA freelist_count").fetchone()[0] > SPARE_PAGES:
            # As a script, because `execute` stops after the first page.
            self._db.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")

    def sync(self) -> None:
        """What is committed reaches the disk."""
        os.fsync(self._wal)

    def shut(self) -> None:
        os.close(self._wal)
        self._db.close()


def _entry(row: Sequence[object]) -> Entry:
    match row:
        case [
            int(id),
            str(signal),
            "protobuf" | "json" as form,
            int(spans),
            int(size),
            "forward" | "logs" as target,
            int(forward),
            int(evaluate),
        ] if signal in _BY_NAME:
            return Entry(
                id=id,
                signal=_BY_NAME[signal],
                form=form,
                spans=spans,
                size=size,
                target=target,
                forward=bool(forward),
                evaluate=bool(evaluate),
            )
    raise sqlite3.DatabaseError("a row that is no request")


def _closing(row: Sequence[object]) -> Closing:
    match row:
        case [
            str(key),
            int(part),
            str(by),
            int(whole),
            int(late),
            str(members),
            str(sessions),
        ] if by in _CLOSED_BY:
            return Closing(
                key=key,
                part=part,
                closed_by=_CLOSED_BY[by],
                whole=bool(whole),
                late=bool(late),
                members=members.split(),
                sessions=orjson.loads(sessions),
            )
    raise sqlite3.DatabaseError("a row that is no closed trace")


def is_trouble(error: Exception) -> bool:
    """Whether the disk, its rights or another process are to blame; if not, the file is damaged."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in _TROUBLE


def set_aside(file: Path) -> Path:
    """Rename what cannot be read, so that somebody can look at it; answers with the new name."""
    number = 1
    while (aside := file.with_name(f"{file.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside
