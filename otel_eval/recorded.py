"""Traces that were recorded, so that nothing more is to come: scored at once, without a clock."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from otel_eval.closed import Closed
from otel_eval.engine import OWN_SCOPE
from otel_eval.extract import Extraction, Keys, extract
from otel_eval.group import Group, Limits, place_of
from otel_eval.job import Job
from otel_eval.model import Evaluation, Span
from otel_eval.rules import RuleSet, View, session_jobs, trace_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTrace:
    """One trace, the rules that match it, and what those about traces and runs have to do."""

    extraction: Extraction
    views: Sequence[View]
    jobs: Sequence[Job]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSession:
    """One session, and what the rules about sessions have to do."""

    session: str
    trace_ids: frozenset[str]
    jobs: Sequence[Job]


class Reader:
    """Takes trace after trace; of those that rules about sessions want it keeps trajectories."""

    def __init__(self, rules: RuleSet, keys: Keys | None = None, *, all_seen: bool = False) -> None:
        """With `all_seen` every trace is whole, though a span around it may still be open."""
        self.rules = rules
        self._keys = keys or Keys()
        self._all_seen = all_seen
        self._sessions: dict[str, list[View]] = {}

    def trace(self, spans: Iterable[Span]) -> RecordedTrace | None:
        """None where there is nothing but spans of our own."""
        others = [span for span in spans if span.scope.name != OWN_SCOPE]
        if not others:
            return None
        group = closed(others)
        extraction = extract(
            group.items,
            keys=self._keys,
            closed_by=group.by,
            whole=group.whole or self._all_seen,
        )
        views = self.rules.views(extraction)
        self._join_sessions(views)
        return RecordedTrace(extraction=extraction, views=views, jobs=trace_jobs(views))

    def sessions(self) -> Iterator[RecordedSession]:
        """Once every trace was seen."""
        for session, views in self._sessions.items():
            yield RecordedSession(
                session=session,
                trace_ids=frozenset(trajectory.trace_id for _, trajectory in views),
                jobs=session_jobs(views, part=1, closed_by="idle"),
            )

    def _join_sessions(self, views: Iterable[View]) -> None:
        for rule, trajectory in views:
            if rule.per == "session" and trajectory.session is not None:
                self._sessions.setdefault(trajectory.session, []).append((rule, trajectory))


def evaluated(jobs: Iterable[Job]) -> list[Evaluation]:
    return [
        evaluation
        for job in jobs
        for evaluator in job.rule.evaluators
        for evaluation in job.evaluate(evaluator)
    ]


def closed(spans: Sequence[Span]) -> Closed[str, Span]:
    """The spans of one trace, each once: closed by root, or by idle where its root is missing."""
    group: Group[Span] = Group(past=None, opened_at=0.0, lost=False)
    for span in spans:
        if not group.has(span.span_id):
            group.add(span.span_id, span, 0, span.parent_id, place_of(span), 0.0)
    _, by = group.deadline(Limits())
    return group.close(spans[0].trace_id, by)
