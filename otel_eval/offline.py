"""Scores of spans that are all there, in one call: for tests and notebooks."""

import sys
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from opentelemetry.sdk.trace import ReadableSpan

from otel_eval import extract
from otel_eval.assembly import Given, read_config
from otel_eval.decode import decode_spans
from otel_eval.engine import Engine, Grouping
from otel_eval.model import Anchor, Evaluation, Span, Trajectory
from otel_eval.recorded import evaluated
from otel_eval.rules import Rule, RuleSet, trace_jobs

Spans: TypeAlias = bytes | str | Iterable[ReadableSpan | Span | bytes | str]
"""ReadableSpans, Spans, OTLP requests as protobuf or JSON, or a mix of them."""

UNBOUNDED: Final = Grouping(
    max_open_traces=sys.maxsize,
    max_open_sessions=sys.maxsize,
    max_spans_per_trace=sys.maxsize,
    max_trace_bytes=sys.maxsize,
    max_buffer_bytes=sys.maxsize,
    max_queued_spans=sys.maxsize,
)
"""Nothing closes but because it is complete: by its root, or idle where that is missing."""
LATER: Final = UNBOUNDED.session_max_age
"""Seconds after which every trace, or every session, has closed by itself."""


class _Collecting:
    def __init__(self) -> None:
        self.evaluations: list[Evaluation] = []

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        self.evaluations += evaluations

    def close(self) -> None:
        """Nothing to do."""


def evaluate(
    spans: Spans, config: Given = None, *, rules: Iterable[Rule] | None = None
) -> list[Evaluation]:
    """Every evaluation of these spans, by the rules of a configuration or by those given.

    No span at all is a trace of nobody in particular, in which nothing was called.
    """
    settings = read_config(config, rules)
    decoded = decode_spans(spans)
    if not decoded:
        return _of_nothing(settings.rule_set())
    found = _Collecting()
    engine = Engine(
        settings.rule_set(),
        [found],
        grouping=UNBOUNDED,
        keys=settings.keys(),
        background=False,
    )
    engine.feed(decoded)
    for now in (0.0, LATER, 2 * LATER):
        engine.step(now)
    return found.evaluations


def _of_nothing(rules: RuleSet) -> list[Evaluation]:
    trajectory = Trajectory(trace_id="", anchor=Anchor(trace_id="", span_id=""))
    views = [(rule, trajectory) for rule in rules.rules if rule.match.fits_anyone]
    return evaluated(trace_jobs(views))


def trajectories(spans: Spans) -> list[Trajectory]:
    """What the agents did: the whole-trace trajectory of each trace in which one is at work."""
    return list(extract.trajectories(decode_spans(spans)))
