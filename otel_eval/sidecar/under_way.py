"""How much of the memory is in requests that are not taken in yet."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final


class UnderWay:
    """Counts bodies while they are read and decoded, of both protocols together, in bytes.

    A body that is alone always fits: where it does not fit now, it may later.
    """

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._bytes = 0

    def fits(self, size: int) -> bool:
        """Whether there is room for one more of that size."""
        return not self._bytes or self._bytes + size <= self._most

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], bool]]:
        """Gives a function to be told how large the body has grown; False: it is too much now."""
        mine = 0

        def fits(size: int) -> bool:
            nonlocal mine
            self._bytes += size - mine
            mine = size
            return self._bytes <= self._most or self._bytes == mine

        try:
            yield fits
        finally:
            self._bytes -= mine
