"""A trajectory in words: one heading, then what went into each tool and what came out."""

import json
import shutil
from collections.abc import Iterator

import click
import orjson

from otel_eval.model import UNRECORDED, Json, Recorded, ToolCall, Trajectory

NOT_RECORDED = "not recorded"


def heading(trajectory: Trajectory) -> str:
    """Which trace, whose, and how it was written."""
    parts = [click.style(one_line(trajectory.agent or "no agent named"), bold=True)]
    if trajectory.session:
        parts.append(f"session {one_line(trajectory.session)}")
    parts.append(trajectory.dialect or "no dialect")
    return f"trace {trajectory.trace_id}  {' · '.join(parts)}"


def call_lines(call: ToolCall, who: str | None = None) -> Iterator[str]:
    """`→ tool(arguments)` and `← result`, the error in red; `who` where it is another agent."""
    by = f"{who}: " if who else ""
    took = click.style(duration(call.end_ns - call.start_ns), dim=True)
    asked = clipped(f"{by}{call.name}({arguments(call.arguments)})")
    yield f"  → {asked}  {took}"
    if call.error is not None:
        yield "  ✗ " + click.style(clipped(one_line(call.error)), fg="red")
    elif call.output is UNRECORDED:
        yield "  ← " + click.style(f"result {NOT_RECORDED}", dim=True)
    else:
        yield f"  ← {clipped(text(call.output))}"


def arguments(given: Recorded) -> str:
    if given is UNRECORDED:
        return f"arguments {NOT_RECORDED}"
    if isinstance(given, dict):
        return ", ".join(f"{key}={text(each)}" for key, each in given.items())
    return text(given)


def text(value: Json) -> str:
    return one_line(json.dumps(value, ensure_ascii=False, default=str))


def one_line(words: str) -> str:
    """Without line ends, and without signs that would do something to a terminal."""
    joined = " ".join(words.split())
    return joined if joined.isprintable() else "".join(filter(str.isprintable, joined))


def clipped(words: str) -> str:
    """What fits a line of the terminal; the whole value is in `--json`."""
    width = max(60, shutil.get_terminal_size((120, 24)).columns - 16)
    return words if len(words) <= width else words[: width - 1] + "…"


def duration(ns: int) -> str:
    if ns >= 60_000_000_000:
        return f"{ns / 60e9:.1f} min"
    if ns >= 1_000_000_000:
        return f"{ns / 1e9:.2f} s"
    return f"{ns / 1e6:.0f} ms" if ns >= 10_000_000 else f"{max(ns, 0) / 1e6:.1f} ms"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def json_line(record: Json) -> str:
    """JSON for a line; the slow way for integers beyond 64 bits."""
    try:
        return orjson.dumps(record).decode()
    except TypeError:
        return json.dumps(record, default=str)
