"""Alerts about otel-eval itself: what it loses, misses or is about to run out of."""

from typing import Final

from otel_eval.alerts.plan import Plan
from otel_eval.alerts.quality import PERCENT, percent
from otel_eval.alerts.rules import AlertRule

MIN_SPANS: Final = 100
"""Fewer spans in the window say nothing about the pipeline."""
MAX_LATE_SHARE: Final = 0.05
NEAR: Final = 0.75
"""Of a limit. At 80 % of the buffer traces are closed early, so this is before it."""
MINUTES: Final = 60.0
WHERE: Final = "by (job, instance)"
NEVER_SCORED: Final = "not_agent|no_rule|no_session"
"""Reasons that are no fault: nobody asked for these spans to be scored."""
LOST: Final = "shed|trace_full|undecodable|error"
AT: Final = "{{ $labels.instance }}"
GAUGES: Final = {
    "max_open_traces": "otel_eval_open_traces",
    "max_open_sessions": "otel_eval_open_sessions",
    "max_buffer_mib": "otel_eval_buffered_bytes",
}


def pipeline_alerts(plan: Plan) -> list[AlertRule]:
    return [
        _absent(),
        _nothing_scored(),
        _dropped(),
        _unevaluated(),
        _refused(),
        _late(),
        _near_capacity(plan.limits),
        _journal_damaged(),
    ]


def _absent() -> AlertRule:
    return AlertRule(
        alert="OtelEvalAbsent",
        expr="absent(otel_eval_spans_received_total)",
        for_seconds=10 * MINUTES,
        severity="critical",
        summary="No otel-eval is scraped",
        description="Prometheus has no metrics of any otel-eval: no agent's scores are watched.",
    )


def _nothing_scored() -> AlertRule:
    """Of one instance: spans that a rule is for. Of all: anything, for a day or from the start."""
    received, unasked, scores = (
        f"sum {WHERE} (increase({metric}[1h]))"
        for metric in (
            "otel_eval_spans_received_total",
            f'otel_eval_spans_unevaluated_total{{reason=~"{NEVER_SCORED}"}}',
            "otel_eval_score_count",
        )
    )
    asked = f"{received} - ({unasked} or 0 * {received})"
    day = "sum(increase(otel_eval_score_count[1d])) == 0"
    return AlertRule(
        alert="OtelEvalNothingScored",
        expr=f"({asked} >= {MIN_SPANS} unless on (job, instance) {scores} > 0)\n"
        f"or\n({received} >= {MIN_SPANS} and on () (absent(otel_eval_score_count) or {day}))",
        for_seconds=30 * MINUTES,
        severity="warning",
        summary=f"{AT} receives spans and scores nothing",
        description=(
            f'{AT} received {{{{ $value | printf "%.0f" }}}} spans to judge in 1h, '
            "and 0 evaluations came of them."
        ),
    )


def _dropped() -> AlertRule:
    return AlertRule(
        alert="OtelEvalSpansDropped",
        expr=_grown("otel_eval_spans_dropped_total"),
        for_seconds=0,
        severity="critical",
        summary=f"{AT} drops spans: {{{{ $labels.reason }}}}",
        description=(
            f'{AT} did not forward {{{{ $value | printf "%.0f" }}}} spans of 15m '
            "({{ $labels.reason }}); 0 should be lost."
        ),
    )


def _unevaluated() -> AlertRule:
    return AlertRule(
        alert="OtelEvalSpansUnevaluated",
        expr=_grown("otel_eval_spans_unevaluated_total", f'{{reason=~"{LOST}"}}'),
        for_seconds=0,
        severity="warning",
        summary=f"{AT} passes over spans: {{{{ $labels.reason }}}}",
        description=(
            f'{AT} did not evaluate {{{{ $value | printf "%.0f" }}}} spans of 15m '
            "({{ $labels.reason }}); 0 should be passed over."
        ),
    )


def _refused() -> AlertRule:
    """Once is what refusals are for; senders lose spans when it lasts. Restarts are no fault."""
    refused = 'otel_eval_requests_refused_total{reason!="shutdown"}'
    return AlertRule(
        alert="OtelEvalRequestsRefused",
        expr=f"sum by (job, instance, reason) (increase({refused}[15m])) > 0",
        for_seconds=15 * MINUTES,
        severity="warning",
        summary=f"{AT} refuses requests: {{{{ $labels.reason }}}}",
        description=(
            f'{AT} asked for {{{{ $value | printf "%.0f" }}}} requests of 15m to come again '
            "({{ $labels.reason }}); senders that are refused for long drop their spans."
        ),
    )


def _grown(metric: str, only: str = "") -> str:
    """A counter by reason begins with its first loss, which `increase` does not see.

    Only where the instance itself was there before: else Prometheus was away, not the series.
    """
    by = "by (job, instance, reason)"
    grown = f"sum {by} (increase({metric}{only}[15m]))"
    began = f"{metric}{only} unless {metric}{only} offset 15m"
    known = "and on (job, instance) otel_eval_spans_received_total offset 15m"
    return f"{grown} > 0\nor\nsum {by} ({began} {known}) > 0"


def _late() -> AlertRule:
    late, received = (
        f"sum {WHERE} (increase(otel_eval_spans_{what}_total[1h]))" for what in ("late", "received")
    )
    return AlertRule(
        alert="OtelEvalSpansLate",
        expr=f"{late} / {received} > {MAX_LATE_SHARE:g}\nand\n{received} >= {MIN_SPANS}",
        for_seconds=15 * MINUTES,
        severity="warning",
        summary=f"{PERCENT} of the spans come too late for {AT}",
        description=(
            f"{PERCENT} of the spans that {AT} received in 1h came after their trace was scored; "
            f"more than {percent(MAX_LATE_SHARE)} is too much."
        ),
    )


def _near_capacity(limits: dict[str, int]) -> AlertRule:
    shares = "\nor\n".join(
        f'label_replace(max {WHERE} ({gauge}) / {limits[option]}, "limit", "{option}", "", "")'
        for option, gauge in GAUGES.items()
    )
    return AlertRule(
        alert="OtelEvalNearCapacity",
        expr=f"(\n{shares}\n) > {NEAR:g}",
        for_seconds=10 * MINUTES,
        severity="warning",
        summary=f"{AT} is at {PERCENT} of {{{{ $labels.limit }}}}",
        description=(
            f"{AT} holds {PERCENT} of what {{{{ $labels.limit }}}} allows; "
            f"from 80% on, traces may be closed before they end (this warns at {percent(NEAR)})."
        ),
    )


def _journal_damaged() -> AlertRule:
    """Seen when a process starts, so it is told for as long as that process lives."""
    return AlertRule(
        alert="OtelEvalJournalDamaged",
        expr=f"sum {WHERE} (otel_eval_journal_damaged_total) > 0",
        for_seconds=0,
        severity="critical",
        summary=f"{AT} found its journal damaged",
        description=(
            f'{AT} set {{{{ $value | printf "%.0f" }}}} damaged journals aside when it started; '
            "0 should be, and what only they held was neither scored nor forwarded."
        ),
    )
