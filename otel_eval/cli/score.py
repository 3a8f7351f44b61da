"""`otel-eval score`: recorded traces against rules, for a person, a program or a CI system."""

import sys
from collections.abc import Iterator, Sequence

import click

from otel_eval.cli.configs import configured, ready_rules
from otel_eval.cli.inputs import UNUSABLE, Recording, Unusable, write_lines
from otel_eval.cli.numbers import in_range
from otel_eval.cli.outputs import Reports
from otel_eval.cli.parallel import evaluate_all
from otel_eval.cli.progress import progress
from otel_eval.cli.records import evaluation_record
from otel_eval.cli.report import closing_line, nothing_scored, text_lines
from otel_eval.cli.steps import json_line, plural
from otel_eval.cli.tally import Tally, number
from otel_eval.cli.wrapping import fitted
from otel_eval.config import Config
from otel_eval.evaluators.base import listed
from otel_eval.model import Evaluation
from otel_eval.recorded import Reader
from otel_eval.rules import RuleSet

FAILED = 1
"""Exit code for scores that are too low."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-c", "--config", "path", metavar="FILE", help="The rules; without: the defaults.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per evaluation.")
@click.option(
    "--fail-under",
    callback=in_range(float, 0, 1),
    metavar="X",
    help="Fail too where the mean of an agent, rule and evaluator is below X, from 0 to 1.",
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

    FILE is OTLP as JSON, JSON lines or protobuf, plain, gzip or zstd; - is stdin. A line that
    cannot be read is told and counted, and the others are scored.

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
    rules = ready_rules(config)
    for evaluations in _scored(config, rules, recording, tally):
        reports.add(evaluations)
        if as_json:
            _echo_records(evaluations)
    reports.write(tally)
    if not as_json:
        write_lines(fitted(text_lines(tally)))
    elif tally.is_judged:
        click.echo(closing_line(tally), err=True)
    _warn(recording, tally, rules)
    sys.exit(_conclude(tally, fail_under))


def _scored(
    config: Config, rules: RuleSet, recording: Recording, tally: Tally
) -> Iterator[Sequence[Evaluation]]:
    """What each trace and then each session was given; by then it is in the tally."""
    reader = Reader(rules, config.keys())
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


def _warn(recording: Recording, tally: Tally, rules: RuleSet) -> None:
    """What nobody would miss who sees only scores."""
    if recording.bad:
        click.echo(f"{recording.bad} of the lines or records could not be read", err=True)
    names = [rule.name for rule in rules.rules if rule.name not in tally.rules]
    if names and tally.is_judged:
        told = f"{plural(len(names), 'rule')} matched nothing: {listed(names)}"
        click.echo(click.style("warning: ", fg="yellow") + told, err=True)


def _conclude(tally: Tally, fail_under: float | None) -> int:
    """The exit code, and on stderr what else led to it."""
    if not tally.is_judged:
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
