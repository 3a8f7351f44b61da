"""`otel-eval score`: recorded traces against rules, for a person, a program or a CI system."""

import sys
from collections.abc import Iterator, Sequence
from math import isnan

import click

from otel_eval.cli.configs import configured, ready_rules
from otel_eval.cli.inputs import UNUSABLE, Recording, Unusable, write_lines
from otel_eval.cli.outputs import Reports
from otel_eval.cli.parallel import evaluate_all
from otel_eval.cli.progress import progress
from otel_eval.cli.records import evaluation_record
from otel_eval.cli.report import closing_line, nothing_scored, text_lines
from otel_eval.cli.steps import json_line
from otel_eval.cli.tally import Tally, number
from otel_eval.config import Config
from otel_eval.model import Evaluation
from otel_eval.recorded import Reader

FAILED = 1
"""Exit code for scores that are too low."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-c", "--config", "path", metavar="FILE", help="The rules; without: the defaults.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per evaluation.")
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 1),
    callback=lambda _context, _option, given: _a_number(given),
    metavar="X",
    help="Fail too where the mean of an agent, rule and evaluator is below X.",
)
@click.option("--junit", metavar="OUT", help="Also write a JUnit report.")
@click.option("--markdown", metavar="OUT", help="Also write a summary in Markdown.")
def command(
    files: tuple[str, ...],
    path: str | None,
    as_json: bool,
    fail_under: float | None,
    junit: str | None,
    markdown: str | None,
) -> None:
    """Score the traces of recorded OTLP.

    FILE is OTLP as JSON, JSON lines or protobuf, plain, gzip or zstd; - is stdin.

    Exit code 0: all rules passed. 1: a rule failed or an evaluator raised an error, or a mean is
    below --fail-under. 2: input or configuration that cannot be used, or nothing scored.

    \b
    Example:
      otel-eval score traces.jsonl -c otel-eval.yaml
    """
    if path == "-" and "-" in files:
        raise Unusable("stdin can be the traces or the configuration, not both")
    config = configured(path)
    reports = Reports(junit=junit, markdown=markdown)
    recording, tally = Recording(files), Tally()
    for evaluations in _scored(config, recording, tally):
        reports.add(evaluations)
        if as_json:
            _echo_records(evaluations)
    reports.write(tally)
    if not as_json:
        write_lines(text_lines(tally))
    elif tally.scores:
        click.echo(closing_line(tally), err=True)
    sys.exit(_conclude(recording, tally, fail_under))


def _a_number(given: float | None) -> float | None:
    """`nan` is in every range, and no score is below it."""
    if given is not None and isnan(given):
        raise click.BadParameter("nan is no score")
    return given


def _scored(config: Config, recording: Recording, tally: Tally) -> Iterator[Sequence[Evaluation]]:
    """What each trace and then each session was given; by then it is in the tally."""
    reader = Reader(ready_rules(config), config.keys())
    threads = config.judge.max_concurrency
    traces = filter(None, map(reader.trace, progress(recording)))
    for trace, evaluations in evaluate_all(traces, reader.rules, threads):
        tally.add_trace(trace, evaluations)
        yield evaluations
    for session, evaluations in evaluate_all(reader.sessions(), reader.rules, threads):
        tally.add_session(session, evaluations)
        yield evaluations


def _echo_records(evaluations: Sequence[Evaluation]) -> None:
    write_lines(json_line(evaluation_record(evaluation)) for evaluation in evaluations)


def _conclude(recording: Recording, tally: Tally, fail_under: float | None) -> int:
    """The exit code, and on stderr what else led to it."""
    if recording.bad:
        click.echo(f"{recording.bad} of the lines or records could not be read", err=True)
    if not tally.scores and not tally.errors:
        Unusable(nothing_scored(tally)).show()
        return UNUSABLE
    if fail_under is not None and tally.scores and _is_below(tally, fail_under):
        return FAILED
    return FAILED if tally.failed_rules else 0


def _is_below(tally: Tally, fail_under: float) -> bool:
    key, mean = tally.lowest
    if mean >= fail_under:
        return False
    where = f"{key.rule} / {key.evaluator} of {key.agent}"
    click.echo(f"{where}: mean {number(mean)} is below --fail-under {number(fail_under)}", err=True)
    return True
