"""`otel-eval judge-check`: how far a judge agrees with people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from otel_eval.cli import labels
from otel_eval.cli.configs import configured
from otel_eval.cli.inputs import Unusable
from otel_eval.cli.labels import Case
from otel_eval.cli.steps import one_line, plural
from otel_eval.config import Config
from otel_eval.errors import ConfigError
from otel_eval.evaluators.judging import JudgeEvaluator
from otel_eval.judge.agreement import Agreement, agreement
from otel_eval.judge.client import name_of
from otel_eval.model import Failure, Outcome, Score, Skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A judge of the rule file, and from which score on it passes."""

    name: str
    judge: JudgeEvaluator
    pass_at: float


@dataclass(frozen=True, slots=True)
class Judged:
    case: Case
    outcome: Outcome


@click.command()
@click.argument("label_file", metavar="LABELS", type=click.Path(path_type=Path))
@click.option("-c", "--config", "path", required=True, metavar="FILE", help="The rule file.")
@click.option("--judge", "wanted", metavar="NAME", help="Which judge, if the file has several.")
def command(label_file: Path, path: str, wanted: str | None) -> None:
    """Run a judge on labelled cases: its accuracy, Cohen's kappa, and what it got wrong.

    LABELS holds one JSON object per line, with a label (Yes, No, pass, fail or a score) and either
    a case (input, messages, available_tools, tool_calls, call, output) or a recorded one (file,
    trace_id, span_id). Judges wait for their budget instead of skipping.

    \b
    Example:
      otel-eval judge-check labels.jsonl -c otel-eval.yaml
    """
    config = configured(path)
    checked = _choose(config, wanted)
    cases = list(labels.read(label_file))  # all of them, before any answer is paid for
    judged = _judged(checked.judge, cases, config.judge.max_concurrency)
    for line in _report(checked, judged):
        click.echo(line)
    if not any(isinstance(each.outcome, Score) for each in judged):
        raise Unusable("no case was judged")


def _choose(config: Config, wanted: str | None) -> Checked:
    try:
        rules = config.rule_set(patient=True).rules
    except ConfigError as error:
        raise Unusable(str(error)) from error
    found = [
        Checked(name=f"{rule.name}/{each.name}", judge=each, pass_at=_pass_at(each, rule.pass_at))
        for rule in rules
        for each in rule.evaluators
        if isinstance(each, JudgeEvaluator)
    ]
    named = [each for each in found if wanted in (None, each.name, each.judge.name)]
    if len(named) != 1:
        listed = ", ".join(each.name for each in found) or "none"
        raise Unusable(f"choose one judge with --judge; the file has: {listed}")
    return named[0]


def _pass_at(judge: JudgeEvaluator, of_rule: float) -> float:
    return of_rule if judge.pass_at is None else judge.pass_at


def _judged(judge: JudgeEvaluator, cases: Sequence[Case], threads: int) -> Sequence[Judged]:
    """In the order of the cases, several at a time."""
    lacking = next((each for each in cases if judge.per_call() and each.call is None), None)
    if lacking is not None:
        raise Unusable(f"{lacking.place}: there is no tool call to be judged")
    with ThreadPoolExecutor(threads) as pool:
        outcomes = pool.map(lambda case: _ask(judge, case), cases)
        return [Judged(case, outcome) for case, outcome in zip(cases, outcomes, strict=True)]


def _ask(judge: JudgeEvaluator, case: Case) -> Outcome:
    if case.call is None or not judge.per_call():
        return judge.judge_all(case.trajectory)
    return judge.judge_call(case.trajectory, case.call)


def _report(checked: Checked, judged: Sequence[Judged]) -> Iterator[str]:
    pairs = [
        (each, each.case.passes(checked.pass_at), each.outcome.value >= checked.pass_at)
        for each in judged
        if isinstance(each.outcome, Score)
    ]
    yield f"{click.style(checked.name, bold=True)} asks {name_of(checked.judge.model)}"
    yield f"{plural(len(judged), 'case')}, {len(pairs)} judged{_unjudged(judged)}"
    if pairs:
        yield from _figures(agreement((label, passed) for _, label, passed in pairs))
    for each, label, passed in pairs:
        if label != passed:
            yield from _wrong(each)


def _unjudged(judged: Sequence[Judged]) -> str:
    reasons = Counter(
        each.outcome.code if isinstance(each.outcome, Skip) else each.outcome.type
        for each in judged
        if isinstance(each.outcome, Skip | Failure)
    )
    return "".join(f", {count} {reason}" for reason, count in sorted(reasons.items()))


def _figures(found: Agreement) -> Iterator[str]:
    kappa = found.kappa
    yield f"accuracy  {found.accuracy:.2f}  ({found.right} of {found.cases})"
    if kappa is None:
        yield "kappa     undefined: all labels and all judgements are the same"
    else:
        yield f"kappa     {kappa:.2f}"
    yield f"{found.only_judge} passed that should fail, {found.only_label} failed that should pass"


def _wrong(judged: Judged) -> Iterator[str]:
    outcome = judged.outcome
    if isinstance(outcome, Score):
        said = outcome.label or f"{outcome.value:g}"
        yield f"\n{judged.case.place}: label {judged.case.label}, judge {said}"
        yield f"  {one_line(outcome.reason)}"
