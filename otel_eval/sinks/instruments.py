"""The metrics of otel_eval: names, units, labels and buckets, the same for every metric sink."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from otel_eval.model import Evaluation

Snapshot: TypeAlias = Mapping[str, Mapping[tuple[str, ...], float]]
"""Values by the instrument's OTel name, then by its label values; `()` where it has no labels."""
Pipeline: TypeAlias = Callable[[], Snapshot]
"""What the engine offers to metric sinks: its counters and gauges as they are now."""

SCOPE: Final = "otel_eval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    name: str
    prometheus: str
    """Without the `_total` that counters get."""
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    kind: Literal["counter", "gauge", "histogram"] = "counter"


SCORE: Final = Instrument(
    name="otel_eval.score",
    prometheus="otel_eval_score",
    unit="{score}",
    help="Scores from 0 to 1.",
    labels=("agent", "rule", "evaluator"),
    buckets=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0),
    kind="histogram",
)
EVALUATIONS: Final = Instrument(
    name="otel_eval.evaluations",
    prometheus="otel_eval_evaluations",
    unit="{evaluation}",
    help="Evaluations by verdict.",
    labels=("agent", "rule", "evaluator", "verdict"),
)
SKIPS: Final = Instrument(
    name="otel_eval.skips",
    prometheus="otel_eval_skips",
    unit="{evaluation}",
    help="Evaluations that could not be judged, by what was missing.",
    labels=("agent", "rule", "evaluator", "code"),
)
DURATION: Final = Instrument(
    name="otel_eval.evaluation.duration",
    prometheus="otel_eval_evaluation_duration_seconds",
    unit="s",
    help="How long evaluators took.",
    labels=("evaluator",),
    buckets=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0),
    kind="histogram",
)
LAG: Final = Instrument(
    name="otel_eval.lag",
    prometheus="otel_eval_lag_seconds",
    unit="s",
    help="From the end of what was judged to its score.",
    labels=("evaluator",),
    buckets=(0.1, 0.3, 1.0, 3.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
    kind="histogram",
)

JUDGE_CALLS: Final = Instrument(
    name="otel_eval.judge.calls",
    prometheus="otel_eval_judge_calls",
    unit="{call}",
    help="Questions to judges, by what became of them.",
    labels=("model", "result"),
)
JUDGE_TOKENS: Final = Instrument(
    name="otel_eval.judge.tokens",
    prometheus="otel_eval_judge_tokens",
    unit="{token}",
    help="Tokens that judges read (input) and wrote (output).",
    labels=("direction",),
)
JUDGE_DURATION: Final = Instrument(
    name="otel_eval.judge.duration",
    prometheus="otel_eval_judge_duration_seconds",
    unit="s",
    help="How long judges took to answer, or not to.",
    buckets=(0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0),
    kind="histogram",
)


def _spans(what: str, help: str, *labels: str) -> Instrument:
    return Instrument(
        name=f"otel_eval.spans.{what}",
        prometheus=f"otel_eval_spans_{what}",
        unit="{span}",
        help=help,
        labels=labels,
        kind="gauge" if what in {"open", "queued"} else "counter",
    )


def _groups(what: str, unit: str, help: str) -> Instrument:
    opens = what.startswith("open_")
    return Instrument(
        name=f"otel_eval.{what}",
        prometheus=f"otel_eval_{what}",
        unit=unit,
        help=help,
        labels=() if opens else ("closed_by",),
        kind="gauge" if opens else "counter",
    )


PIPELINE: Final = (
    _groups("traces", "{trace}", "Agent traces by what closed them."),
    _groups("sessions", "{session}", "Sessions by what closed them."),
    _spans("received", "Spans taken in."),
    _spans("scored", "Spans of traces that were scored."),
    _spans("late", "Spans that came after their trace was scored."),
    _spans("duplicate", "Spans seen before."),
    _spans("own", "Spans that otel_eval made itself."),
    _spans("unevaluated", "Spans that were not evaluated.", "reason"),
    _spans("forwarded", "Spans handed on."),
    _spans("dropped", "Spans that could not be handed on.", "reason"),
    _spans("open", "Spans of traces that are still open."),
    _spans("queued", "Spans that wait to be handed on."),
    _groups("open_traces", "{trace}", "Traces that are still open."),
    _groups("open_sessions", "{session}", "Sessions that are still open."),
    Instrument(
        name="otel_eval.buffered",
        prometheus="otel_eval_buffered_bytes",
        unit="By",
        help="Memory taken by open traces.",
        kind="gauge",
    ),
)


def observed(instrument: Instrument, snapshot: Snapshot) -> Mapping[tuple[str, ...], float]:
    """The instrument's values; one without labels counts from 0, not from its first event."""
    unseen: dict[tuple[str, ...], float] = {} if instrument.labels else {(): 0}
    return snapshot.get(instrument.name, unseen)


def lag(evaluation: Evaluation, now_ns: int) -> float | None:
    """Seconds since the judged thing ended; None where its end is not known."""
    end_ns = evaluation.trajectory.end_ns or evaluation.anchor.end_ns
    if not end_ns:
        return None
    return (now_ns - end_ns) / 1e9 if end_ns < now_ns else 0.0
