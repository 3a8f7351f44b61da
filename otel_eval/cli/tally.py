"""What `otel-eval score` counts while traces go by: sums and short lines, never spans."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from otel_eval.model import Evaluation, Failure, Score, Skip, SkipCode
from otel_eval.recorded import RecordedSession, RecordedTrace

SHOWN_FAILURES: Final = 20
"""How many kinds of failure are kept to be shown; all failing traces are counted."""

SHOWN_ALIKE: Final = 5
"""How many traces are named of those that failed in the same words."""

WHY_SKIPPED: Final[Mapping[SkipCode, str]] = {
    "arguments_unrecorded": "without recorded arguments",
    "output_unrecorded": "without recorded results",
    "incomplete": "incomplete",
    "no_tool_calls": "without tool calls",
    "sampled_out": "outside the sample",
    "budget": "beyond the budget",
    "timeout": "without an answer in time",
    "tools_unknown": "without known tools",
}


class Key(NamedTuple):
    agent: str
    rule: str
    evaluator: str


@dataclass
class Row:
    """What one evaluator of one rule said about one agent."""

    scores: int = 0
    total: float = 0.0
    passed: int = 0
    errors: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def mean(self) -> float:
        return self.total / self.scores

    def add(self, evaluation: Evaluation) -> None:
        match evaluation.outcome:
            case Score(value=value):
                self.scores += 1
                self.total += value
                self.passed += evaluation.verdict == "pass"
            case Skip(code=code):
                self.skipped[WHY_SKIPPED[code]] += 1
            case Failure():
                self.errors += 1


@dataclass(slots=True)
class Failed:
    """Traces or sessions in which the same evaluations failed, in the same words."""

    lines: Sequence[str]
    titles: list[str] = field(default_factory=list)
    count: int = 0

    @property
    def untitled(self) -> int:
        return self.count - len(self.titles)

    def add(self, title: str) -> None:
        self.count += 1
        if self.count <= SHOWN_ALIKE:
            self.titles.append(title)


class Tally:
    """Rows by agent, rule and evaluator; where traces went; what failed."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.traces = 0
        self._failed: dict[tuple[str, ...], Failed] = {}
        self.failed_traces = 0
        self.failed_sessions = 0
        self.failed_rules: set[str] = set()
        self._unscored: dict[str, str] = {}

    def add_trace(self, trace: RecordedTrace, evaluations: Sequence[Evaluation]) -> None:
        self.traces += 1
        trace_id = trace.extraction.trace.trace_id
        if why := _why_unscored(trace, evaluations):
            self._unscored[trace_id] = why
        if self._add(evaluations, f"trace {trace_id}"):
            self.failed_traces += 1

    def add_session(self, session: RecordedSession, evaluations: Sequence[Evaluation]) -> None:
        if _any_score(evaluations):
            for trace_id in session.trace_ids:
                self._unscored.pop(trace_id, None)
        if self._add(evaluations, f"session {session.session}"):
            self.failed_sessions += 1

    @property
    def failed(self) -> Sequence[Failed]:
        """What is shown of the failures, in the order in which they came."""
        return list(self._failed.values())

    @property
    def failed_unshown(self) -> int:
        """How many traces and sessions failed in ways that are not shown."""
        shown = sum(failed.count for failed in self._failed.values())
        return self.failed_traces + self.failed_sessions - shown

    @property
    def scored_traces(self) -> int:
        return self.traces - len(self._unscored)

    @property
    def unscored(self) -> Counter[str]:
        """How many traces have no score, by the reason."""
        return Counter(self._unscored.values())

    @property
    def rules(self) -> set[str]:
        """The names of those that said anything, be it that they skip."""
        return {key.rule for key in self.rows}

    @property
    def scores(self) -> int:
        return sum(row.scores for row in self.rows.values())

    @property
    def errors(self) -> int:
        return sum(row.errors for row in self.rows.values())

    @property
    def is_judged(self) -> bool:
        """Whether there is anything that passed or failed."""
        return self.scores > 0 or self.errors > 0

    @property
    def mean(self) -> float:
        """Over all scores; there is at least one."""
        return sum(row.total for row in self.rows.values()) / self.scores

    @property
    def lowest(self) -> tuple[Key, float]:
        """The row with the lowest mean, and the mean."""
        scored = [(key, row.mean) for key, row in self.rows.items() if row.scores]
        return min(scored, key=lambda each: each[1])

    def _add(self, evaluations: Iterable[Evaluation], title: str) -> bool:
        failing: list[Evaluation] = []
        for evaluation in evaluations:
            key = Key(evaluation.trajectory.agent or "-", evaluation.rule, evaluation.evaluator)
            self.rows.setdefault(key, Row()).add(evaluation)
            if evaluation.verdict in ("fail", "error"):
                failing.append(evaluation)
        self._note(failing, title)
        return bool(failing)

    def _note(self, failing: Sequence[Evaluation], title: str) -> None:
        self.failed_rules.update(evaluation.rule for evaluation in failing)
        if not failing:
            return
        agents = dict.fromkeys(each.trajectory.agent or "no agent named" for each in failing)
        lines = [failure_line(each, name_agent=len(agents) > 1) for each in failing]
        kind = (*agents, *lines)
        if kind not in self._failed and len(self._failed) == SHOWN_FAILURES:
            return
        failed = self._failed.setdefault(kind, Failed(lines))
        failed.add(f"{title}  {', '.join(agents)}")


def failure_line(evaluation: Evaluation, *, name_agent: bool = False) -> str:
    """`rule / evaluator 0.50, passes at 0.80: reason`."""
    where = f"{evaluation.rule} / {evaluation.evaluator}"
    where += f", call of {evaluation.call.name}" if evaluation.call else ""
    where += f", agent {evaluation.trajectory.agent}" if name_agent else ""
    return f"{where} {told(evaluation)}"


def told(evaluation: Evaluation) -> str:
    """The outcome in words."""
    match evaluation.outcome:
        case Score(value=value, reason=reason):
            why = f": {reason}" if reason else ""
            return f"{number(value)}, passes at {number(evaluation.pass_at)}{why}"
        case Skip(code=code, reason=reason):
            return f"skipped ({code}): {reason}"
        case Failure(type=type_, message=message):
            return f"raised {type_}: {message}".removesuffix(": ")


def number(value: float) -> str:
    """Two digits; never so rounded that a fail looks like a pass."""
    text = f"{value:.2f}"
    return f"{value:.4f}" if text == "1.00" and value < 1 else text


def _why_unscored(trace: RecordedTrace, evaluations: Sequence[Evaluation]) -> str | None:
    if _any_score(evaluations):
        return None
    if not trace.views:
        is_agent_trace = trace.extraction.is_agent_trace
        return "matched by no rule" if is_agent_trace else "without an agent"
    reasons = Counter(_reasons(evaluations))
    return reasons.most_common(1)[0][0] if reasons else "without a session"


def _reasons(evaluations: Iterable[Evaluation]) -> Iterator[str]:
    for evaluation in evaluations:
        match evaluation.outcome:
            case Skip(code=code):
                yield WHY_SKIPPED[code]
            case Failure():
                yield "whose evaluators raised errors"


def _any_score(evaluations: Iterable[Evaluation]) -> bool:
    return any(isinstance(evaluation.outcome, Score) for evaluation in evaluations)
