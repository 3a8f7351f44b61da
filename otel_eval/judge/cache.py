"""Judgements that were paid for once, kept by the hash of what was judged."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from otel_eval.errors import ConfigError

log = logging.getLogger("otel_eval")

TABLE: Final = """
CREATE TABLE IF NOT EXISTS judgements
(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, answer TEXT NOT NULL)"""
USED: Final = """
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
DROP_OLDEST: Final = """
DELETE FROM judgements WHERE id IN
(SELECT id FROM judgements ORDER BY id LIMIT (SELECT 1 + count(*) / 10 FROM judgements))"""


class Cache:
    """A file, opened anew for each use: that is quick beside a model, and survives fork.

    A cache that fails costs money, not judgements: it is logged, and the model is asked.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        try:
            with self._open() as db:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(TABLE)
        except sqlite3.Error as error:
            raise ConfigError(f"judge.cache.path: {path} cannot be used ({error})") from error

    def get(self, key: str) -> str | None:
        try:
            with self._open() as db:
                row = db.execute("SELECT answer FROM judgements WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            log.warning("the cache of judgements cannot be read: %s", error)
            return None
        return row[0] if row else None

    def put(self, key: str, answer: str) -> None:
        try:
            with self._open() as db:
                db.execute(
                    "INSERT OR REPLACE INTO judgements (key, answer) VALUES (?, ?)", (key, answer)
                )
                self._shrink(db)
        except sqlite3.Error as error:
            log.warning("a judgement cannot be cached: %s", error)

    def _shrink(self, db: sqlite3.Connection) -> None:
        """Oldest first, a tenth at a time."""
        while db.execute(USED).fetchone()[0] > self._max_bytes:
            if not db.execute(DROP_OLDEST).rowcount:
                return

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=5)) as db, db:
            yield db
