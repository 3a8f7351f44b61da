"""promtool tests for the rules of a configuration: what must fire, last three days, and end."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from otel_eval.alerts.actors import LEAST_FOR_QUIET, Actor, Cast, Trouble, instances, told
from otel_eval.alerts.documents import dump
from otel_eval.alerts.pipeline import pipeline_alerts
from otel_eval.alerts.plan import Plan
from otel_eval.alerts.quality import quality_alerts
from otel_eval.alerts.rules import ORDER, duration
from otel_eval.alerts.series import Story, series
from otel_eval.config import Config
from otel_eval.model import Json

HOUR: Final = 60
DAY: Final = 24 * HOUR
GOOD: Final = 8 * DAY
"""Long enough that the baseline, of 7 days and a day old, is full."""
EVALUATION: Final = "30m"
"""Coarse, so that two weeks pass in seconds; alerts look at whole hours anyway."""
RULE_FILE: Final = "otel-eval.rules.yaml"


def promtool_tests(config: Config) -> str:
    """Tests for the rule file beside them."""
    plan = Plan.of(config)
    tests = [_lasting(plan), *_seldom(plan), _gone(plan), _never(plan)]
    return dump(
        {
            "rule_files": [RULE_FILE],
            "evaluation_interval": EVALUATION,
            # Else promtool takes any order, and alerts may look for what is not recorded yet.
            "group_eval_order": list(ORDER),
            "tests": tests,
        }
    )


def _lasting(plan: Plan) -> Json:
    """All alerts at once: trouble of three days and more, then none."""
    delay = _longest(plan)
    story = Story(good=GOOD, bad=3 * DAY + delay + HOUR, after=8 * HOUR)
    agents = chain.from_iterable(Cast(plan, watch, story).everyone() for watch in plan.watches)
    actors = [*agents, *instances(plan, story)]
    troubles = [each for actor in actors for each in actor.troubles]
    firing = (GOOD + 7 * HOUR + delay, GOOD + 3 * DAY + delay)
    quiet = (GOOD - HOUR, GOOD + story.bad + 7 * HOUR)
    expected = _expected(troubles, firing, quiet)
    return _test("everything goes wrong for three days", actors, expected)


def _seldom(plan: Plan) -> Iterator[Json]:
    """Agents that never have enough evaluations in an hour are judged by the day."""
    story = Story(good=GOOD, bad=3 * DAY, after=2 * DAY)
    watches = [each for each in plan.watches if each.alert.min_evaluations >= LEAST_FOR_QUIET]
    actors = [Cast(plan, watch, story).steady() for watch in watches]
    troubles = [each for actor in actors for each in actor.troubles]
    if not troubles:
        return
    firing, quiet = (GOOD + 2 * DAY,), (GOOD - HOUR, GOOD + 4 * DAY + 12 * HOUR)
    expected = _expected(troubles, firing, quiet)
    yield _test("a few evaluations an hour, all bad for three days", actors, expected)


def _gone(plan: Plan) -> Json:
    """Metrics there for an hour, gone for three days, and back."""
    values = f"0+1x{HOUR} _x{3 * DAY + HOUR} 0+1x{3 * HOUR}"
    actor = Actor(series=[series("otel_eval_spans_received_total", {"job": "otel-eval"}, values)])
    trouble = told(plan, "OtelEvalAbsent", labels={}, value=1.0)
    firing, quiet = (2 * HOUR, 3 * DAY + HOUR), (HOUR, 3 * DAY + 4 * HOUR)
    expected = _expected([trouble], firing, quiet)
    return _test("no otel-eval is there", [actor], expected)


def _never(plan: Plan) -> Json:
    """Spans from the first minute on, and never a score: no series says so, only its absence."""
    where = {"job": "otel-eval", "instance": "new:9464"}
    other = {**where, "reason": "not_agent"}
    actor = Actor(
        series=[
            series("otel_eval_spans_received_total", where, f"0+10x{6 * HOUR}"),
            series("otel_eval_spans_unevaluated_total", other, f"0+10x{6 * HOUR}"),
        ]
    )
    trouble = told(plan, "OtelEvalNothingScored", labels=where, value=600.0)
    expected = _expected([trouble], (4 * HOUR,), (10,))
    return _test("nothing was ever scored", [actor], expected)


def _longest(plan: Plan) -> int:
    """Minutes that an alert may take from its cause to its firing, in whole hours."""
    rules = [*quality_alerts(plan), *pipeline_alerts(plan)]
    return HOUR * -int(-max(rule.for_seconds for rule in rules) // 3600)


def _expected(
    troubles: Sequence[Trouble], firing: Iterable[int], quiet: Iterable[int]
) -> list[Json]:
    """At each of these minutes, for each alert: all that fires, and nothing else."""
    expected: list[Json] = []
    for name in sorted({trouble.rule.alert for trouble in troubles}):
        fires = [each.document() for each in troubles if each.rule.alert == name]
        expected += [_at(minute, name, fires) for minute in firing]
        expected += [_at(minute, name, []) for minute in quiet]
    return expected


def _at(minute: int, alert: str, fires: list[Json]) -> Json:
    return {"eval_time": duration(minute * 60), "alertname": alert, "exp_alerts": fires}


def _test(name: str, actors: Iterable[Actor], expected: list[Json]) -> Json:
    inputs = [each for actor in actors for each in actor.series]
    return {"name": name, "interval": "1m", "input_series": inputs, "alert_rule_test": expected}
