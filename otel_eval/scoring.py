"""From groups that closed to evaluations, and where the spans in them went."""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

from otel_eval.counters import Counters
from otel_eval.evaluators.base import Evaluator
from otel_eval.extract import Keys, extract
from otel_eval.grouping import Closed, Grouper
from otel_eval.job import Job
from otel_eval.model import ClosedBy, Evaluation, Span, Trajectory
from otel_eval.outlet import Delivery
from otel_eval.rules import RuleSet, View, session_jobs, trace_jobs
from otel_eval.slow import SlowPool
from otel_eval.weight import trajectory_bytes

log = logging.getLogger("otel_eval")

MAX_EVALUATIONS: Final = 256
"""How many evaluations are handed out at a time."""

TraceGroup: TypeAlias = Closed[str, Span]
SessionGroup: TypeAlias = Closed[str, Sequence[View]]
Notice = TypeVar("Notice")


Task: TypeAlias = tuple[str, str, str | None, str]
"""What a model is asked: the rule, the evaluator, the agent and the span id of the anchor."""


def task_of(rule: str, evaluator: str, trajectory: Trajectory) -> Task:
    anchor = trajectory.anchor
    return rule, evaluator, trajectory.agent, anchor.span_id if anchor else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTrace:
    """Notice of a closed trace, or of a part of one, with what deterministic evaluators said."""

    trace_id: str
    part: int
    span_ids: Sequence[str]
    evaluations: Sequence[Evaluation]
    closed_by: ClosedBy = "root"
    whole: bool = True
    late: bool = False
    awaited: Collection[Task] = ()
    """What models were asked; what they say comes later, by way of the sinks."""
    sessions: Collection[str] = ()
    """The sessions that the trace was given to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedSession:
    """Notice of a closed session, or of a part of one."""

    session: str
    part: int
    closed_by: ClosedBy
    traces: Sequence[str]
    """As `trace id/part`."""
    evaluations: Sequence[Evaluation]
    awaited: Collection[Task] = ()


class _Found:
    __slots__ = ("awaited", "evaluations", "sessions")

    def __init__(
        self, evaluations: Sequence[Evaluation] = (), awaited: Collection[Task] = ()
    ) -> None:
        self.evaluations = evaluations
        self.awaited = awaited
        self.sessions: Collection[str] = ()
        """The sessions that the trace was given to."""


@dataclass(kw_only=True)
class Scorer:
    """Runs the rules; what it finds is handed out in batches, what is slow goes to the pool."""

    keys: Keys
    counters: Counters
    sessions: Grouper[str, Sequence[View]]
    slow: SlowPool
    hand_out: Callable[[Delivery], None]
    on_closed: Callable[[ClosedTrace], None] | None
    on_session: Callable[[ClosedSession], None] | None = None

    def __post_init__(self) -> None:
        self._evaluations: list[Evaluation] = []
        self._durations: list[tuple[str, float]] = []

    def score_traces(self, groups: Iterable[TraceGroup], rules: RuleSet, now: float) -> None:
        for group in groups:
            if group.late:
                self._count_late(group)
                self._notify(group, _Found())
            else:
                self._notify(group, self._score_trace(group, rules, now))

    def score_sessions(self, groups: Iterable[SessionGroup]) -> None:
        for group in groups:
            self.counters.close_session(group.by)
            views = [view for views in group.items for view in views]
            found = self._evaluate(session_jobs(views, part=group.part, closed_by=group.by))
            self._notify_session(group, views, found)

    def rejoin(self, group: TraceGroup, rules: RuleSet, now: float) -> Collection[str]:
        """Give a trace that was scored to its sessions again, and nothing else."""
        return self._join_sessions(group, self._read(group, rules)[1], now)

    def deliver(self) -> None:
        """Hand out what has gathered."""
        if self._durations or self._evaluations:
            self.hand_out(Delivery(evaluations=self._evaluations, durations=self._durations))
            self._evaluations, self._durations = [], []

    def _count_late(self, group: TraceGroup) -> None:
        if group.after == "size":
            self.counters.pass_over("trace_full", len(group.items))
        else:
            self.counters.settle("late", len(group.items))

    def _score_trace(self, group: TraceGroup, rules: RuleSet, now: float) -> _Found:
        try:
            is_agent_trace, views = self._read(group, rules)
        # What foreign code wrote into one trace must not keep the others from being scored.
        except Exception as error:
            log.error("trace %s cannot be read: %s", group.key, type(error).__name__)
            self.counters.pass_over("error", len(group.items))
            return _Found()
        if is_agent_trace or views:
            self.counters.close_trace(group.by)
        if not views:
            self.counters.pass_over("no_rule" if is_agent_trace else "not_agent", len(group.items))
            return _Found()
        return self._run(group, views, now)

    def _read(self, group: TraceGroup, rules: RuleSet) -> tuple[bool, list[View]]:
        extraction = extract(
            group.items,
            keys=self.keys,
            part=group.part,
            closed_by=group.by,
            whole=group.whole,
            conversation=rules.reads_conversation,
        )
        return extraction.is_agent_trace, rules.views(extraction)

    def _run(self, group: TraceGroup, views: list[View], now: float) -> _Found:
        jobs = trace_jobs(views)
        found = self._evaluate(jobs)
        found.sessions = self._join_sessions(group, views, now)
        if jobs or found.sessions:
            self.counters.settle("scored", len(group.items))
        else:
            self.counters.pass_over("no_session", len(group.items))
        return found

    def _join_sessions(
        self, group: TraceGroup, views: Iterable[View], now: float
    ) -> Collection[str]:
        """Give the trace to the sessions that it is of; one trace may hold runs of several."""
        by_session: dict[str, list[View]] = {}
        for rule, trajectory in views:
            if rule.per == "session" and trajectory.session is not None:
                by_session.setdefault(trajectory.session, []).append((rule, trajectory))
        for session, its_views in by_session.items():
            size = sum({id(each): trajectory_bytes(each) for _, each in its_views}.values())
            item_id = f"{group.key}/{group.part}"
            self.sessions.add(session, its_views, now, item_id=item_id, size=size)
        return by_session.keys()

    def _evaluate(self, jobs: Iterable[Job]) -> _Found:
        found: list[Evaluation] = []
        awaited: set[Task] = set()
        for job in jobs:
            said = self._ask(job)
            found += said
            for each in job.rule.judges:
                withheld = self._submit(job, each, said, awaited)
                if withheld is not None:
                    found.append(withheld)
        self._evaluations += found
        if len(self._evaluations) >= MAX_EVALUATIONS:
            self.deliver()
        return _Found(found, awaited)

    def _submit(
        self, job: Job, evaluator: Evaluator, said: Sequence[Evaluation], awaited: set[Task]
    ) -> Evaluation | None:
        """Have a model asked; answers with why not, where it is not worth that.

        Known at once, so that what nobody asks about neither waits for answers nor is waited for.
        """
        withheld = job.withheld(evaluator, lambda: {each.verdict for each in said})
        if withheld is None:
            awaited.add(task_of(job.rule.name, evaluator.name, job.trajectory))
            self.slow.submit(job, evaluator)
        return withheld

    def _ask(self, job: Job) -> Sequence[Evaluation]:
        """What the evaluators say that ask no model, and how long each of them took."""
        found: list[Evaluation] = []
        started = perf_counter()
        for evaluator in job.rule.deterministic:
            found += job.evaluate(evaluator)
            ended = perf_counter()
            self._durations.append((evaluator.name, ended - started))
            started = ended
        return found

    def _notify(self, group: TraceGroup, found: _Found) -> None:
        if self.on_closed is None:
            return
        span_ids = [span.span_id for span in group.items]
        notice = ClosedTrace(
            trace_id=group.key,
            part=group.part,
            span_ids=span_ids,
            evaluations=found.evaluations,
            closed_by=group.by,
            whole=group.whole,
            late=group.late,
            awaited=found.awaited,
            sessions=found.sessions,
        )
        self._call(self.on_closed, notice)

    def _notify_session(self, group: SessionGroup, views: Iterable[View], found: _Found) -> None:
        if self.on_session is None:
            return
        traces = dict.fromkeys(f"{each.trace_id}/{each.part}" for _, each in views)
        notice = ClosedSession(
            session=group.key,
            part=group.part,
            closed_by=group.by,
            traces=list(traces),
            evaluations=found.evaluations,
            awaited=found.awaited,
        )
        self._call(self.on_session, notice)

    def _call(self, callback: Callable[[Notice], None], notice: Notice) -> None:
        try:
            callback(notice)
        # The callback is not the engine's own code, and the next trace is waiting.
        except Exception as error:
            self.counters.fail(callback, "raised")
            log.error("the callback for what closed raised %s", type(error).__name__)
