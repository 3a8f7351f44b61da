"""Files that are replaced while the process runs: certificates and tokens."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class WatchedFiles:
    """Says whether any of its files was replaced since it was last asked; a stat each, no more."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._seen = self._stamp()

    def changed(self) -> bool:
        before, self._seen = self._seen, self._stamp()
        return before != self._seen

    def _stamp(self) -> Stamp:
        return tuple(_stamp(path) for path in self._paths)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
