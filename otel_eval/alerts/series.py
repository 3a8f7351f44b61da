"""Input series of promtool tests: counters and gauges that follow a story, minute by minute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from otel_eval.alerts.plan import quoted

Labels: TypeAlias = Mapping[str, str]

FINEST: Final = 1024
"""Parts of one that a step is made of: few enough for ten decimals, and exact in binary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Minutes that all is well, minutes of trouble, minutes that all is well again."""

    good: int
    bad: int
    after: int

    def counter(self, *, well: float, ill: float) -> str:
        """Counts so much per minute."""
        phases = ((self.good, well), (self.bad, ill), (self.after, well))
        return _counted(phases)

    def gauge(self, *, well: float, ill: float) -> str:
        phases = ((self.good, well), (self.bad - 1, ill), (self.after - 1, well))
        return " ".join(f"{_plain(value)}+0x{minutes}" for minutes, value in phases)


def _counted(phases: Sequence[tuple[int, float]]) -> str:
    """promtool's `a+bxn` gives n+1 values; every phase but the first begins one step further.

    Steps are such that promtool's sums are exact: a counter that goes back by a millionth counts
    as one that was reset.
    """
    parts: list[str] = []
    total = 0.0
    for minutes, exact in phases:
        step = round(exact * FINEST) / FINEST
        first = total + step if parts else 0.0
        more = minutes - 1 if parts else minutes
        parts.append(f"{_plain(first)}+{_plain(step)}x{more}")
        total += step * minutes
    return " ".join(parts)


def _plain(number: float) -> str:
    return f"{number:.10f}".rstrip("0").rstrip(".")


def series(metric: str, labels: Labels, values: str) -> dict[str, str]:
    inner = ", ".join(f"{name}={quoted(value)}" for name, value in labels.items())
    return {"series": f"{metric}{{{inner}}}", "values": values}
