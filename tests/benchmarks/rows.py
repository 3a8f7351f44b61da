"""The lines of the table: what was measured, against what, and what was hoped for."""

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from otel_eval.extract import tree
from otel_eval.native import NATIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. Without a value it could not be measured, and `note` says why."""

    what: str
    against: str = ""
    value: float | None = None
    unit: str = "×"
    goal: float | None = None
    at_least: bool = False
    """Whether the goal is a lower bound; else it is an upper one."""
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        if self.value is None or self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    @property
    def figure(self) -> str:
        if self.value is None:
            return "–"
        digits = 2 if self.value < 10 else 1 if self.value < 100 else 0
        return f"{self.value:,.{digits}f} {self.unit}"

    @property
    def measured(self) -> str:
        return f"{self.figure} ({self.note})" if self.note else self.figure

    @property
    def wanted(self) -> str:
        if self.goal is None:
            return "" if self.value is None else "reported"
        return f"{'≥' if self.at_least else '≤'} {self.goal:g} {self.unit}{self.judgement}"

    @property
    def judgement(self) -> str:
        return {None: "", True: ", met", False: ", missed"}[self.is_met]


def table(rows: Iterable[Row]) -> str:
    """As Markdown, so that it can go into a README as it is."""
    head = ("what", "against", "measured", "goal")
    cells = [(row.what, row.against or "–", row.measured, row.wanted) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = [_line(each, widths) for each in (head, tuple("-" * width for width in widths), *cells)]
    return "\n".join(lines)


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def result(rows: Iterable[Row]) -> dict[str, Any]:
    """For comparison over time."""
    return {"machine": machine(), "rows": [{**asdict(row), "met": row.is_met} for row in rows]}


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiled": compiled(),
        "load": round(os.getloadavg()[0], 1),
    }


def compiled() -> str:
    """What of otel_eval is, as it is installed here."""
    parts = {"modules": not (tree.__file__ or "").endswith(".py"), "decoder": NATIVE is not None}
    return " and ".join(part for part, is_compiled in parts.items() if is_compiled) or "nothing"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
