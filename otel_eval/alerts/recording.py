"""What Prometheus works out once and alerts use many times.

A quiet agent has few evaluations in an hour, a busy one thousands. So two windows stand for "now":
the latest hour of the last day that had enough evaluations, else the whole day if that had.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from otel_eval.alerts.plan import Plan, Watch
from otel_eval.alerts.rules import Recording

WINDOWS: Final = ("5m", "30m", "1h", "6h")
BASELINE: Final = "[7d:1h] offset 1d"
HOLD: Final = "[50h:1h]"
"""The best baseline of two days: one that a lasting drop has not reached for three."""


class Names:
    """The recorded series by what they mean."""

    def __init__(self, plan: Plan) -> None:
        rule, evaluator = plan.rule_level.prefix, plan.evaluator_level.prefix
        self._rule = rule
        self.scores = f"{evaluator}:otel_eval_score_count:increase1h"
        self.score_sum = f"{evaluator}:otel_eval_score_sum:increase1h"
        self.mean_hour = f"{evaluator}:otel_eval_score:mean1h"
        self.mean_now = f"{evaluator}:otel_eval_score:mean_recent"
        self.mean_week = f"{evaluator}:otel_eval_score:mean7d"
        self.mean_baseline = f"{evaluator}:otel_eval_score:mean_baseline"
        self.pass_hour = f"{rule}:otel_eval_pass:ratio1h"
        self.pass_now = f"{rule}:otel_eval_pass:ratio_recent"
        self.enough_hour = f"{rule}:otel_eval_score_count:busiest1h"
        self.enough_day = f"{rule}:otel_eval_score_count:busiest1d"

    def judged(self, window: str) -> str:
        return f"{self._rule}:otel_eval_evaluations_judged:increase{window}"

    def failed(self, window: str) -> str:
        return f"{self._rule}:otel_eval_evaluations_failed:increase{window}"


def recordings(plan: Plan) -> list[Recording]:
    names = Names(plan)
    return [
        *_counts(plan, names),
        *_verdicts(plan, names),
        *(each for watch in plan.watches for each in _pass_ratios(names, watch)),
        *(each for watch in plan.watches for each in _means(names, watch)),
    ]


def _counts(plan: Plan, names: Names) -> Iterator[Recording]:
    """A rule of many evaluators judges few traces often: its busiest evaluator says how many."""
    level, rule = plan.evaluator_level, plan.rule_level
    for record, metric in (
        (names.scores, "otel_eval_score_count"),
        (names.score_sum, "otel_eval_score_sum"),
    ):
        yield Recording(record=record, expr=f"sum {level.by} (increase({metric}[1h]))")
    yield Recording(record=names.enough_hour, expr=f"max {rule.by} ({names.scores})")
    day = f"sum_over_time({names.scores}[1d:1h])"
    yield Recording(record=names.enough_day, expr=f"max {rule.by} ({day})")


def _verdicts(plan: Plan, names: Names) -> Iterator[Recording]:
    """Where nothing failed there is no series of failures; it counts as 0."""
    by = plan.rule_level.by
    for window in WINDOWS:
        judged, failed = (
            f"sum {by} (increase(otel_eval_evaluations_total{{verdict{test}}}[{window}]))"
            for test in ('=~"pass|fail"', '="fail"')
        )
        yield Recording(record=names.judged(window), expr=judged)
        none = f"0 * {names.judged(window)}"
        yield Recording(record=names.failed(window), expr=f"{failed}\nor\n{none}")


def _pass_ratios(names: Names, watch: Watch) -> Iterator[Recording]:
    only, least = watch.selector, watch.alert.min_evaluations
    failed, judged = names.failed("1h") + only, names.judged("1h") + only
    hour = f"1 - {failed} / {judged}\nand\n{names.enough_hour}{only} >= {least}"
    days = f"1 - sum_over_time({failed}[1d:1h]) / sum_over_time({judged}[1d:1h])"
    day = f"{days}\nand\n{names.enough_day}{only} >= {least}"
    record = partial(Recording, labels=watch.labels)
    yield record(record=names.pass_hour, expr=hour)
    yield record(record=names.pass_now, expr=_recent(names.pass_hour + only, day))


def _means(names: Names, watch: Watch) -> Iterator[Recording]:
    only, least = watch.selector, watch.alert.min_evaluations
    total, count = names.score_sum + only, names.scores + only
    hour = f"{total} / {count}\nand\n{count} >= {least}"
    day = _mean_over(total, count, "[1d:1h]", least)
    week = _mean_over(total, count, BASELINE, least)
    held = f"max_over_time({names.mean_week}{only}{HOLD})"
    record = partial(Recording, labels=watch.labels)
    yield record(record=names.mean_hour, expr=hour)
    yield record(record=names.mean_now, expr=_recent(names.mean_hour + only, day))
    yield record(record=names.mean_week, expr=week)
    yield record(record=names.mean_baseline, expr=held)


def _mean_over(total: str, count: str, window: str, least: int) -> str:
    many = f"sum_over_time({count}{window})"
    return f"sum_over_time({total}{window}) / {many}\nand\n{many} >= {least}"


def _recent(hour: str, day: str) -> str:
    return f"last_over_time({hour}[1d])\nor\n(\n{day}\n)"
