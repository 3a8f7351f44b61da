"""The live view: a line per agent, drawn again in place on a terminal."""

import os
import shutil
import sys
from collections.abc import Iterable
from typing import Final

import click

from otel_eval.demo.scores import Standing

BAR: Final = 5
GOOD: Final = 0.9
POOR: Final = 0.5


class Board:
    """What is said stays; what is drawn makes way for the next drawing, where that is possible."""

    def __init__(self) -> None:
        self._in_place = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = 0

    def say(self, text: str) -> None:
        click.echo(text)
        self._drawn = 0

    def draw(self, standings: Iterable[Standing], seconds: float) -> None:
        if self._in_place and self._drawn:
            click.echo(f"\x1b[{self._drawn}F\x1b[J", nl=False, color=True)
        lines = [self._line(standing, seconds) for standing in standings]
        for line in lines:
            click.echo(line)
        self._drawn = len(lines)

    def _line(self, standing: Standing, seconds: float) -> str:
        # A line that wraps would not be drawn over.
        columns = shutil.get_terminal_size().columns - 1 if self._in_place else None
        text = standing_line(standing, seconds, columns)
        return click.style(text, fg=_colour(standing.recent))


def standing_line(standing: Standing, seconds: float, columns: int | None = None) -> str:
    """`34 s  support-agent   █░░░░  0.15 recent  0.49 overall  runs  58  tool-loop 0.33`.

    At the end, where there is room, the evaluator that has the lowest scores.
    """
    line = f"{seconds:4.0f} s  {standing.agent:<14}  {_bar(standing.recent)}  {_means(standing)}"
    longer = line + _lowest(standing)
    return longer if columns is None or len(longer) <= columns else line[:columns]


def _means(standing: Standing) -> str:
    if standing.since_start is None:
        return "no score yet"
    recent = "   -" if standing.recent is None else f"{standing.recent:.2f}"
    return f"{recent} recent  {standing.since_start:.2f} overall  runs {standing.runs:3}"


def _lowest(standing: Standing) -> str:
    """Where to look, for an agent that does not do well."""
    if standing.recent is None or standing.recent >= GOOD or standing.lowest is None:
        return ""
    name, mean = standing.lowest
    return f"  {name} {mean:.2f}"


def _bar(mean: float | None) -> str:
    filled = round(BAR * (mean or 0.0))
    return "█" * filled + "░" * (BAR - filled)


def _colour(mean: float | None) -> str | None:
    if mean is None:
        return None
    if mean < POOR:
        return "red"
    return "green" if mean >= GOOD else "yellow"
