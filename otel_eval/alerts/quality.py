"""Alerts about what agents do: scores too low, scores falling, scores that cannot be had."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from otel_eval.alerts.plan import Level, Plan, Watch
from otel_eval.alerts.recording import Names
from otel_eval.alerts.rules import AlertRule

MAX_ERROR_SHARE: Final = 0.05
MAX_SKIP_SHARE: Final = 0.5
EXPECTED_SKIPS: Final = "sampled_out|no_tool_calls"
"""Skips that say nothing about the recording: they are meant, or there was nothing to judge."""
HIGHEST_SHARE: Final = 0.95
"""No burn rate asks for more than this, however much may fail."""

PERCENT: Final = "{{ $value | humanizePercentage }}"


class Burn(NamedTuple):
    """The long window says that it matters, the short one that it still goes on."""

    alert: str
    long: str
    short: str
    factor: float
    for_seconds: float


BURNS: Final = (
    Burn("OtelEvalFailuresBurnFast", "1h", "5m", 5, 120),
    Burn("OtelEvalFailuresBurnSlow", "6h", "30m", 2, 900),
)


def quality_alerts(plan: Plan) -> list[AlertRule]:
    return [rule for watch in plan.watches for rule in watch_alerts(plan, watch)]


def watch_alerts(plan: Plan, watch: Watch) -> Iterator[AlertRule]:
    """A threshold of 0 is never crossed, so there is no alert for it."""
    if watch.alert.pass_rate:
        yield _pass_rate(plan, watch, watch.alert.pass_rate)
        yield from (_burn(plan, watch, watch.alert.pass_rate, burn) for burn in BURNS)
    if watch.alert.drop:
        yield _drop(plan, watch, watch.alert.drop)
    yield _errors(plan, watch)
    yield _skips(plan, watch)


def _pass_rate(plan: Plan, watch: Watch, floor: float) -> AlertRule:
    level = plan.rule_level
    return AlertRule(
        alert="OtelEvalPassRateLow",
        expr=f"{Names(plan).pass_now}{watch.selector} < {floor:g}",
        for_seconds=watch.alert.for_,
        severity=watch.alert.severity,
        labels=watch.labels,
        summary=f"{_who(level)}: pass rate {PERCENT}",
        description=(
            f"{_whom(level)} pass {PERCENT} of their evaluations; the floor is {percent(floor)}."
        ),
    )


def _drop(plan: Plan, watch: Watch, drop: float) -> AlertRule:
    level, names = plan.evaluator_level, Names(plan)
    now, before = names.mean_now + watch.selector, names.mean_baseline + watch.selector
    score = '{{ $value | printf "%.2f" }}'
    return AlertRule(
        alert="OtelEvalScoreDrop",
        expr=f"{now} <= {before} - {drop:g}",
        for_seconds=watch.alert.for_,
        severity=watch.alert.severity,
        labels=watch.labels,
        summary=f"{_who(level)}: mean score fell to {score}",
        description=(
            f"{_whom(level)} have a mean score of {score} by {_label('evaluator')}; "
            f"their baseline of 7 days is {asked(names.mean_baseline, level)}, "
            f"and a drop of {drop:g} is too much."
        ),
    )


def _burn(plan: Plan, watch: Watch, pass_rate: float, burn: Burn) -> AlertRule:
    level, names, only = plan.rule_level, Names(plan), watch.selector
    allowed = 1 - pass_rate
    limit = f"{min(burn.factor * allowed, HIGHEST_SHARE):.4g}"
    long, short = (
        f"{names.failed(window)}{only} / {names.judged(window)}{only} > {limit}"
        for window in (burn.long, burn.short)
    )
    many = f"sum_over_time({names.enough_hour}{only}[{burn.long}:1h])"
    enough = f"{names.enough_hour}{only}" if burn.long == "1h" else many
    return AlertRule(
        alert=burn.alert,
        expr=f"{long}\nand\n{short}\nand\n{enough} >= {watch.alert.min_evaluations}",
        for_seconds=min(burn.for_seconds, watch.alert.for_),
        severity=watch.alert.severity,
        labels=watch.labels,
        summary=f"{_who(level)}: {PERCENT} fail",
        description=(
            f"{_whom(level)} fail {PERCENT} of their evaluations of {burn.long}, and it goes on; "
            f"{percent(allowed)} may fail."
        ),
    )


def _errors(plan: Plan, watch: Watch) -> AlertRule:
    level, only = plan.evaluator_level, watch.test
    errors = _evaluations(level, 'verdict="error"', only)
    every = _evaluations(level, 'verdict!="skip"', only)
    return AlertRule(
        alert="OtelEvalEvaluatorErrors",
        expr=_share(errors, every, MAX_ERROR_SHARE, watch),
        for_seconds=watch.alert.for_,
        severity=watch.alert.severity,
        labels=watch.labels,
        summary=f"{_who(level)}: evaluator {_label('evaluator')} fails",
        description=(
            f"{_label('evaluator')} raised in {PERCENT} of its evaluations of {_label('agent')} "
            f"under rule {_label('rule')}; more than {MAX_ERROR_SHARE:.0%} is too much."
        ),
    )


def _skips(plan: Plan, watch: Watch) -> AlertRule:
    level, only = plan.skip_level, watch.test
    codes = _selector(f'code!~"{EXPECTED_SKIPS}"', only)
    skips = f"sum {level.by} (increase(otel_eval_skips_total{codes}[1h]))"
    judged = _evaluations(level, 'verdict!="skip"', only)
    every = f"({skips} + ({judged} or 0 * {skips}))"
    return AlertRule(
        alert="OtelEvalSkipShareHigh",
        expr=_share(skips, every, MAX_SKIP_SHARE, watch),
        for_seconds=watch.alert.for_,
        severity=watch.alert.severity,
        labels=watch.labels,
        summary=f"{_who(level)}: {PERCENT} skipped",
        description=(
            f"{_label('evaluator')} could not judge {PERCENT} of what {_label('agent')} did "
            f"under rule {_label('rule')}; more than {MAX_SKIP_SHARE:.0%} is too much."
        ),
    )


def _share(part: str, whole: str, limit: float, watch: Watch) -> str:
    return f"{part} / {whole} > {limit:g}\nand\n{whole} >= {watch.alert.min_evaluations}"


def _evaluations(level: Level, *selectors: str) -> str:
    return f"sum {level.by} (increase(otel_eval_evaluations_total{_selector(*selectors)}[1h]))"


def _selector(*parts: str) -> str:
    return "{" + ", ".join(part for part in parts if part) + "}"


def _label(name: str) -> str:
    return f"{{{{ $labels.{name} }}}}"


def _who(level: Level) -> str:
    """For a subject line: whose scores, where."""
    return " ".join(_label(name) for name in level.labels if name != "evaluator")


def _whom(level: Level) -> str:
    extra = [name for name in level.labels if name not in ("agent", "rule", "evaluator")]
    where = "".join(f", {name} {_label(name)}" for name in extra)
    comma = "," if extra else ""
    return f"Traces of agent {_label('agent')} under rule {_label('rule')}{where}{comma}"


def percent(share: float) -> str:
    """As Prometheus' humanizePercentage writes it."""
    return f"{100 * share:.4g}%"


def asked(series: str, level: Level) -> str:
    """The value of another series with the same labels, looked up when the alert fires."""
    tests = ",".join(f"{name}=%q" for name in level.labels)
    values = " ".join(f"$labels.{name}" for name in level.labels)
    query = f'printf "{series}{{{tests}}}" {values} | query'
    return f'{{{{ with {query} }}}}{{{{ . | first | value | printf "%.2f" }}}}{{{{ end }}}}'
