"""Lines longer than the terminal, broken between words and under their own indent."""

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Final

import click

from otel_eval.cli.table import width

HANGING: Final = 2
_WORD: Final = re.compile(r" *[^ ]+")
"""With the spaces before it, so that columns stay columns."""


def fitted(lines: Iterable[str]) -> Iterator[str]:
    """For a terminal; elsewhere a line stays one line, for those who search in it."""
    if not sys.stdout.isatty():
        yield from lines
        return
    columns = shutil.get_terminal_size().columns
    for line in lines:
        yield from wrapped(line, columns)


def wrapped(line: str, columns: int) -> Iterator[str]:
    """As it is where it fits. Colours go on over the break, as terminals have it."""
    if _columns(line) <= columns:
        yield line
        return
    indent = " " * (len(line) - len(line.lstrip(" ")) + HANGING)
    shown = ""
    for word in _WORD.findall(line):
        if shown.strip() and _columns(shown + word) > columns:
            yield shown
            shown = indent + word.lstrip(" ")
        else:
            shown += word
    yield shown


def _columns(line: str) -> int:
    return width(click.unstyle(line))
