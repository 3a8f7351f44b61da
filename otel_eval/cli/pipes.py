"""What can be read only once, stdin and pipes, kept so that it can be read again."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast
from weakref import finalize

from otel_eval.decode.streams import opened

STDIN = "-"


class Pipes:
    """By name. What is small is kept in memory, what is not on disk."""

    def __init__(self, in_memory_bytes: int) -> None:
        self._in_memory_bytes = in_memory_bytes
        self._kept: dict[str, BinaryIO] = {}

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """From its beginning, each time."""
        if path not in self._kept:
            self._kept[path] = self._keep(path)
        kept = self._kept[path]
        kept.seek(0)
        yield kept

    def _keep(self, path: str) -> BinaryIO:
        kept = SpooledTemporaryFile(self._in_memory_bytes)  # noqa: SIM115  # closed with this
        finalize(self, kept.close)
        with opened(path) as raw:
            copyfileobj(raw, kept)
        return cast(BinaryIO, kept)


def is_pipe(path: str) -> bool:
    if path == STDIN:
        return True
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False  # told when the file is read
