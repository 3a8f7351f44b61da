"""A trace, its evaluations and what each step cost, in words."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import click

from otel_eval.cli import table
from otel_eval.cli.comparison import comparison
from otel_eval.cli.deductions import Deduction, deductions
from otel_eval.cli.steps import call_lines, heading, one_line, plural
from otel_eval.cli.tally import number, told
from otel_eval.evaluators.base import Evaluator
from otel_eval.job import Job
from otel_eval.model import Evaluation, ToolCall, Trajectory

SIGNS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "skip": ("–", None), "error": ("!", "red")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An evaluation with what it took off for what."""

    evaluation: Evaluation
    evaluator: Evaluator
    deductions: Sequence[Deduction]


def explain(jobs: Iterable[Job]) -> list[Explained]:
    return [
        Explained(
            evaluation=evaluation,
            evaluator=evaluator,
            deductions=deductions(evaluation, evaluator),
        )
        for job in jobs
        for evaluator in job.rule.evaluators
        for evaluation in job.evaluate(evaluator)
    ]


class Explanation:
    """Steps are numbered over the whole trace, whichever of them a rule looks at."""

    def __init__(self, trajectory: Trajectory, explained: Sequence[Explained]) -> None:
        self._trajectory = trajectory
        self._explained = explained
        self._numbers = {
            _identity(call): at for at, call in enumerate(trajectory.tool_calls, start=1)
        }

    def lines(self, steps_first: bool = True) -> Iterator[str]:
        parts = [self.steps, self.evaluations]
        first, second = parts if steps_first else reversed(parts)
        yield heading(self._trajectory)
        yield from first()
        yield ""
        yield from second()

    def steps(self) -> Iterator[str]:
        if not self._trajectory.whole:
            by = self._trajectory.closed_by
            yield click.style(f"  not whole (closed by {by}): calls may be missing", fg="yellow")
        if not self._trajectory.tool_calls:
            yield click.style("  no tool calls", dim=True)
        for at, call in enumerate(self._trajectory.tool_calls, start=1):
            who = call.agent if call.agent != self._trajectory.agent else None
            first, *rest = call_lines(call, who)
            yield f"{at:>4} {first.strip()}"
            yield from (f"     {line.strip()}" for line in rest)
            yield from self._costs(call)

    def _costs(self, call: ToolCall) -> Iterator[str]:
        for each in self._explained:
            for deduction in each.deductions:
                if deduction.call is not None and _identity(deduction.call) == _identity(call):
                    cost = click.style(f"−{number(deduction.cost)}", fg="red")
                    subject = self._subject(each.evaluation)
                    yield f"     {cost} {subject}: {one_line(deduction.words)}"

    def evaluations(self) -> Iterator[str]:
        for each in self._explained:
            yield self._verdict(each.evaluation)
            yield from (f"      {self._deducted(one)}" for one in each.deductions)
            yield from side_by_side(each)

    def _verdict(self, evaluation: Evaluation) -> str:
        sign, colour = SIGNS[evaluation.verdict]
        outcome = one_line(told(evaluation))
        return f"  {click.style(sign, fg=colour)} {self._title(evaluation)}  {outcome}"

    def _title(self, evaluation: Evaluation) -> str:
        subject = self._subject(evaluation)
        return f"{subject}, {self._place(evaluation.call)}" if evaluation.call else subject

    def _subject(self, evaluation: Evaluation) -> str:
        """Which evaluator, and what it looked at where that is not the whole trace."""
        name = f"{evaluation.rule} / {evaluation.evaluator}"
        agent = evaluation.trajectory.agent
        if agent != self._trajectory.agent:
            name += f" of {agent}"
        if evaluation.trajectory.per == "session":
            name += f" over session {evaluation.trajectory.session}"
        return one_line(name)

    def _deducted(self, deduction: Deduction) -> str:
        return (
            f"−{number(deduction.cost)}  {self._place(deduction.call)}: {one_line(deduction.words)}"
        )

    def _place(self, call: ToolCall | None) -> str:
        if call is None:
            return "no step"
        at = self._numbers.get(_identity(call))
        return f"step {at}" if at else f"{call.name} in another trace"


def _identity(call: ToolCall) -> tuple[object, ...]:
    return (call.span_id, call.call_id, call.name, call.start_ns)


def side_by_side(each: Explained) -> Iterator[str]:
    """What the rule expects beside what was done; ≠ where they differ, + where that is free."""
    lines = comparison(each.evaluation, each.evaluator)
    if not lines:
        return
    half = max(24, (shutil.get_terminal_size((120, 24)).columns - 16) // 2)
    rows = [("expected", "", "actual")]
    rows += [(_cut(line.expected, half), line.sign, _cut(line.actual, half)) for line in lines]
    for at, text in enumerate(table.lines(rows)):
        styled = at and lines[at - 1].sign == "≠"
        yield "        " + (click.style(text, fg="red") if styled else text)


def _cut(words: str, columns: int) -> str:
    words = one_line(words)
    return words if len(words) <= columns else words[: columns - 1] + "…"


def unmatched_lines(reasons: Iterable[tuple[str, str]]) -> Iterator[str]:
    told = [f"  {name}: {one_line(why)}" for name, why in reasons]
    if told:
        yield ""
        yield f"{plural(len(told), 'rule')} did not match"
        yield from told
