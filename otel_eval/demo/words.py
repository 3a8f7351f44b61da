"""What the demo says before and after."""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from otel_eval.demo import files
from otel_eval.demo.agents import SAMPLES
from otel_eval.sidecar.ports import Ports

ID_LETTERS: Final = 8
"""How much of an id is enough: another of the traces begins so once in ten million demos."""


def where_lines(ports: Ports, *, seconds: int, taken: Sequence[int]) -> Iterator[str]:
    """Where spans go in and scores come out."""
    what = f"{len(SAMPLES)} sample agents and a sidecar, all on this machine"
    yield click.style(what, bold=True) + f", for {seconds} s; Ctrl-C ends it"
    for sample in SAMPLES:
        door = f"OTLP/{'gRPC' if sample.protocol == 'grpc' else 'HTTP'}"
        yield f"  {sample.name:<15} {sample.about}, {sample.writing.title} over {door}"
    yield f"  {'sidecar':<15} OTLP/gRPC on port {ports.grpc}, OTLP/HTTP on port {ports.http}"
    if taken:
        numbers = ", ".join(map(str, taken))
        yield f"  {'':<15} free ports instead of {numbers}, which are taken"
    yield ""
    yield f"Look yourself:  curl http://127.0.0.1:{ports.admin}/metrics"
    yield ""


def next_lines(trace_id: str | None, *, program: str, kept_rules: bool) -> Iterator[str]:
    """Commands to try on what was left behind, as they can be typed here."""
    yield ""
    if kept_rules:
        yield f"{files.RULES} was here before, with other rules: it stays as it is."
    if trace_id is None:
        return
    given = f"{files.TRACES} -c {files.RULES}"
    yield "Traces and rules are left here. What failed, and what each step cost:"
    yield ""
    yield click.style(f"  {program} score {given}", bold=True)
    yield click.style(f"  {program} explain {given} --trace {trace_id[:ID_LETTERS]}", bold=True)
