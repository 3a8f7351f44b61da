"""Columns of text that line up, also with letters that are two columns wide."""

from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import combining, east_asian_width

GAP: Final = "  "


def width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text
    )


def lines(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> Iterator[str]:
    """The rows, the first of them headings; the columns in `right` are numbers."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [padded(cell, widths[at], right=at in right) for at, cell in enumerate(row)]
        yield GAP.join(cells).rstrip()


def padded(text: str, columns: int, *, right: bool = False) -> str:
    room = " " * max(0, columns - width(text))
    return room + text if right else text + room
