"""What the demo says before and after."""

from collections.abc import Iterator, Sequence

import click

from otel_eval.demo import files
from otel_eval.demo.agents import SAMPLES
from otel_eval.sidecar.ports import Ports


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
        yield f"  {'':<15} free ports instead of {numbers}, where something else listens"
    yield ""
    yield f"Look yourself:  curl http://127.0.0.1:{ports.admin}/metrics"
    yield ""


def next_lines(trace_id: str | None, *, kept_rules: bool) -> Iterator[str]:
    """Commands to try on what was left behind."""
    yield ""
    if kept_rules:
        yield f"{files.RULES} was here before, with other rules: it stays as it is."
    if trace_id is None:
        return
    given = f"{files.TRACES} -c {files.RULES}"
    yield f"The traces are in {files.TRACES}, the rules in {files.RULES}. Try next:"
    yield ""
    yield click.style(f"  otel-eval score {given}", bold=True)
    yield click.style(f"  otel-eval explain {given} --trace {trace_id}", bold=True)
