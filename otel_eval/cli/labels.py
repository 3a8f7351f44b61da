"""Labelled cases for `otel-eval judge-check`: one per line, written by hand or recorded."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from otel_eval.cli.inputs import Recording, Unusable
from otel_eval.extract import extract
from otel_eval.model import UNRECORDED, Json, Message, Tool, ToolCall, Trajectory

STEP_NS: Final = 1_000_000_000
"""Calls written by hand come one after the other, a second each."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WrittenCall(_Part):
    """A call as `otel-eval trajectories --json` writes it."""

    name: str
    arguments: Json = UNRECORDED
    output: Json = UNRECORDED
    error: str | None = None
    call_id: str | None = None
    agent: str | None = None
    span_id: str | None = None
    start_ns: int = 0
    end_ns: int = 0


class WrittenMessage(_Part):
    role: str
    content: Json
    time_ns: int = 0


class WrittenTool(_Part):
    name: str
    description: str | None = None
    parameters: Json = None
    agent: str | None = None


class Line(_Part):
    """Either what was recorded (`file`), or a case in words."""

    label: bool | float | str
    id: str | None = None
    file: str | None = None
    """OTLP, relative to the file with the labels; `trace_id` where it holds several traces."""
    trace_id: str | None = None
    span_id: str | None = None
    """Of the labelled call in the recorded trace."""
    input: Json = UNRECORDED
    output: Json = UNRECORDED
    messages: tuple[WrittenMessage, ...] = ()
    available_tools: tuple[WrittenTool, ...] = ()
    tool_calls: tuple[WrittenCall, ...] = ()
    call: int = -1
    """Which of the calls is labelled, from 0; the last one unless given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    place: str
    label: bool | float | str
    trajectory: Trajectory
    call: ToolCall | None

    def passes(self, pass_at: float) -> bool:
        """Whether the label says that this is right."""
        match self.label:
            case bool():
                return self.label
            case str():
                return _WORDS[self.label.lower()]
        return self.label >= pass_at


_WORDS: Final = {"yes": True, "pass": True, "no": False, "fail": False}


def read(path: Path) -> Iterator[Case]:
    """Raises Unusable for the first line that is no case."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path}: {error}") from error
    for number, text in enumerate(lines, 1):
        if text.strip():
            yield _case(text, f"{path.name}:{number}", path.parent)


def _case(text: str, place: str, folder: Path) -> Case:
    line = _line(text, place)
    if isinstance(line.label, str) and line.label.lower() not in _WORDS:
        raise Unusable(f"{place}: label is {line.label!r}; use Yes, No, pass, fail or a number")
    shown = f"{place} {line.id}" if line.id else place
    trajectory = _recorded(line, place, folder) if line.file else _written(line)
    return Case(
        place=shown, label=line.label, trajectory=trajectory, call=_call(line, trajectory, place)
    )


def _line(text: str, place: str) -> Line:
    try:
        return Line.model_validate(json.loads(text))
    except ValueError as error:
        raise Unusable(f"{place}: {_first_problem(error)}") from error


def _first_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"not JSON: {error}"
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _call(line: Line, trajectory: Trajectory, place: str) -> ToolCall | None:
    calls = trajectory.tool_calls
    if line.span_id is not None:
        found = next((each for each in calls if each.span_id == line.span_id), None)
        if found is None:
            raise Unusable(f"{place}: no tool call has the span id {line.span_id}")
        return found
    if not calls:
        return None
    if not -len(calls) <= line.call < len(calls):
        raise Unusable(f"{place}: there is no call {line.call}; the first is 0")
    return calls[line.call]


def _written(line: Line) -> Trajectory:
    return Trajectory(
        trace_id=line.trace_id or "",
        input=line.input,
        output=line.output,
        messages=tuple(Message(**dict(each)) for each in line.messages),
        available_tools=tuple(Tool(**dict(each)) for each in line.available_tools),
        tool_calls=tuple(_timed(each, at) for at, each in enumerate(line.tool_calls)),
    )


def _timed(written: WrittenCall, at: int) -> ToolCall:
    fields: dict[str, Any] = dict(written)
    if not written.start_ns:
        fields |= {"start_ns": (2 * at + 1) * STEP_NS, "end_ns": (2 * at + 2) * STEP_NS}
    return ToolCall(**fields)


def _recorded(line: Line, place: str, folder: Path) -> Trajectory:
    traces = _traces(str(folder / str(line.file)))
    if line.trace_id is None and len(traces) == 1:
        return next(iter(traces.values()))
    if line.trace_id not in traces:
        raise Unusable(f"{place}: trace_id must name one of the {len(traces)} traces of the file")
    return traces[line.trace_id]


@cache
def _traces(path: str) -> dict[str, Trajectory]:
    return {spans[0].trace_id: extract(spans).trace for spans in Recording([path]).traces()}
