"""`otel-eval trajectories`: what was extracted, for a person or for a program."""

from collections.abc import Iterator
from typing import Any

import click

from otel_eval.cli.inputs import Recording, write_lines
from otel_eval.cli.steps import call_lines, duration, heading, json_line, plural
from otel_eval.extract import extract
from otel_eval.model import UNRECORDED, Json, ToolCall, Trajectory


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per trace.")
def command(files: tuple[str, ...], as_json: bool) -> None:
    """Show the tool calls that each trace of recorded OTLP holds.

    FILE is OTLP as JSON, JSON lines or protobuf, plain, gzip or zstd; - is stdin.

    \b
    Example:
      otel-eval trajectories traces.jsonl
    """
    recording = Recording(files)
    write_lines(_json(recording) if as_json else _text(recording))
    if recording.bad:
        click.echo(f"{recording.bad} of the lines or records could not be read", err=True)


def _trajectories(recording: Recording) -> Iterator[Trajectory]:
    for spans in recording.traces():
        extraction = extract(spans)
        if extraction.is_agent_trace:
            yield extraction.trace


def _json(recording: Recording) -> Iterator[str]:
    for trajectory in _trajectories(recording):
        yield json_line(as_record(trajectory))


def as_record(trajectory: Trajectory) -> dict[str, Json]:
    """The contract of `--json`: what was not recorded is left out."""
    return {
        "trace_id": trajectory.trace_id,
        "agent": trajectory.agent,
        "session": trajectory.session,
        "service": trajectory.service,
        "dialect": trajectory.dialect,
        "tool_calls": [_call_record(call) for call in trajectory.tool_calls],
    }


def _call_record(call: ToolCall) -> dict[str, Any]:
    record = {
        "name": call.name,
        "arguments": call.arguments,
        "output": call.output,
        "error": call.error,
        "call_id": call.call_id,
        "agent": call.agent,
        "span_id": call.span_id,
        "start_ns": call.start_ns,
        "end_ns": call.end_ns,
    }
    return {key: value for key, value in record.items() if value is not UNRECORDED}


def _text(recording: Recording) -> Iterator[str]:
    shown = traces = 0
    for spans in recording.traces():
        traces += 1
        extraction = extract(spans)
        if extraction.is_agent_trace:
            shown += 1
            yield from _block(extraction.trace)
    told = plural(traces, "trace"), plural(recording.spans, "span")
    yield f"{shown} of {told[0]} with an agent at work, {told[1]}"


def _block(trajectory: Trajectory) -> Iterator[str]:
    yield heading(trajectory)
    for call in trajectory.tool_calls:
        who = call.agent if call.agent != trajectory.agent else None
        yield from call_lines(call, who)
    if not trajectory.tool_calls:
        yield click.style("  no tool calls", dim=True)
    yield click.style(f"  {_models(trajectory)}", dim=True)
    yield ""


def _models(trajectory: Trajectory) -> str:
    calls = trajectory.model_calls
    tokens = sum((c.input_tokens or 0) + (c.output_tokens or 0) for c in calls)
    words = [plural(len(calls), "model call")]
    if tokens:
        words.append(f"{tokens} tokens")
    words.append(duration(trajectory.end_ns - trajectory.start_ns))
    return " · ".join(words)
