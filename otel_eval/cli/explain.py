"""`otel-eval explain`: one trace, step by step, with what each step cost."""

from collections.abc import Iterator, Sequence
from typing import NoReturn

import click

from otel_eval.cli.configs import configured, ready_rules
from otel_eval.cli.explanation import Explanation, explain, unmatched_lines
from otel_eval.cli.inputs import Recording, Unusable, write_lines
from otel_eval.cli.unmatched import why_not
from otel_eval.cli.wrapping import fitted
from otel_eval.evaluators.base import listed
from otel_eval.recorded import Reader, RecordedTrace


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--trace", "prefix", required=True, metavar="ID", help="The id, or how it begins.")
@click.option("-c", "--config", "path", metavar="FILE", help="The rules; without: the defaults.")
def command(files: tuple[str, ...], prefix: str, path: str | None) -> None:
    """Show what one trace did, step by step, and what each step cost.

    Steps come with arguments and results; scores with what was expected and what was done; and
    rules that do not match with the reason.

    \b
    Example:
      otel-eval explain traces.jsonl --trace b9e88641 -c otel-eval.yaml
    """
    if path == "-" and "-" in files:
        raise Unusable("stdin can be the traces or the configuration, not both")
    config = configured(path)
    reader = Reader(ready_rules(config), config.keys())
    trace = _find(Recording(files), reader, prefix.strip().lower())
    write_lines(fitted(_lines(reader, trace)))


def _find(recording: Recording, reader: Reader, prefix: str) -> RecordedTrace:
    """The one trace; the others are read as far as rules about sessions need them."""
    everything = _has_session_rules(reader)
    others: list[str] = []
    begin_so: list[str] = []
    found: RecordedTrace | None = None
    for spans in recording.traces():
        trace_id = spans[0].trace_id
        is_wanted = bool(prefix) and trace_id.startswith(prefix)
        (begin_so if is_wanted else others).append(trace_id)
        trace = reader.trace(spans) if is_wanted or everything else None
        if is_wanted and (found is None or trace_id == prefix):
            found = trace
    if prefix in begin_so or len(begin_so) == 1:
        return found or _refuse(f"--trace {prefix}: holds nothing but spans of otel-eval itself")
    return _refuse(_why_not_found(prefix, begin_so, others))


def _refuse(message: str) -> NoReturn:
    raise Unusable(message)


def _has_session_rules(reader: Reader) -> bool:
    return any(rule.per == "session" for rule in reader.rules.rules)


def _why_not_found(prefix: str, begin_so: Sequence[str], others: Sequence[str]) -> str:
    if begin_so:
        return f"--trace {prefix}: {len(begin_so)} traces begin so: {listed(begin_so)}"
    if not others:
        return "the input holds no spans"
    return f"--trace {prefix}: no trace begins so; there are {listed(others)}"


def _lines(reader: Reader, trace: RecordedTrace) -> Iterator[str]:
    trajectory = trace.extraction.trace
    jobs = list(trace.jobs)
    for session in reader.sessions():
        if trajectory.trace_id in session.trace_ids:
            jobs += session.jobs
    yield from Explanation(trajectory, explain(jobs)).lines()
    yield from unmatched_lines(why_not(reader.rules, trace))
