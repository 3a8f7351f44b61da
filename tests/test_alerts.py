"""Alert rules from a configuration; `tests/outside/test_promtool.py` has them run by promtool."""

import re
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from otel_eval import alerts
from otel_eval.alerts.actors import Trouble
from otel_eval.alerts.rules import AlertRule, duration
from otel_eval.alerts.series import Story
from otel_eval.cli import main
from otel_eval.config import Config
from tests.deploy.files import DEPLOY

CHECK = {"evaluators": [{"type": "tool-loop"}]}
SCORES = {
    "OtelEvalPassRateLow",
    "OtelEvalFailuresBurnFast",
    "OtelEvalFailuresBurnSlow",
    "OtelEvalScoreDrop",
    "OtelEvalEvaluatorErrors",
    "OtelEvalSkipShareHigh",
}
FLOORS = {"OtelEvalPassRateLow", "OtelEvalFailuresBurnFast", "OtelEvalFailuresBurnSlow"}
PIPELINE = {
    "OtelEvalAbsent",
    "OtelEvalNothingScored",
    "OtelEvalSpansDropped",
    "OtelEvalSpansUnevaluated",
    "OtelEvalRequestsRefused",
    "OtelEvalSpansLate",
    "OtelEvalNearCapacity",
    "OtelEvalJournalDamaged",
}


def rules(*given: dict[str, Any], **sections: Any) -> list[AlertRule]:
    config = Config.parse({"rules": list(given), **sections} if given else sections)
    found = [rule for group in alerts.groups(config) for rule in group.rules]
    return [rule for rule in found if isinstance(rule, AlertRule)]


def rule(name: str = "flow", **alert: Any) -> dict[str, Any]:
    return {"name": name, **CHECK, **({"alert": alert} if alert else {})}


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["alerts", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("prometheus/otel-eval.rules.yaml", ()),
        ("prometheus/otel-eval.test.yaml", ("--tests",)),
        ("kubernetes/prometheusrule.yaml", ("--format", "prometheusrule")),
    ],
)
def test_what_is_shipped_is_up_to_date(file: str, options: tuple[str, ...]) -> None:
    shipped = (DEPLOY / file).read_text(encoding="utf-8")

    assert shipped == run(*options), f"otel-eval alerts {' '.join(options)} > deploy/{file}"


def test_without_rules_every_rule_is_watched_by_the_defaults() -> None:
    found = {each.alert: each for each in rules()}

    assert found.keys() == SCORES | PIPELINE
    assert found["OtelEvalPassRateLow"].expr.endswith("ratio_recent < 0.9")
    assert found["OtelEvalScoreDrop"].expr.endswith("mean_baseline - 0.1")


def test_a_rule_without_a_block_gets_the_defaults() -> None:
    (floor,) = (each for each in rules(rule("flow")) if each.alert == "OtelEvalPassRateLow")

    assert floor.expr.endswith('ratio_recent{rule="flow"} < 0.9')
    assert floor.labels == {"rule": "flow"}


def test_a_block_sets_thresholds_delay_and_severity() -> None:
    given = rule(pass_rate=0.8, drop=0.2, min_evaluations=7, severity="page", **{"for": "30m"})
    found = {each.alert: each for each in rules(given) if each.alert in SCORES}

    assert "< 0.8" in found["OtelEvalPassRateLow"].expr
    assert "- 0.2" in found["OtelEvalScoreDrop"].expr
    assert ">= 7" in found["OtelEvalSkipShareHigh"].expr
    assert ">= 7" in found["OtelEvalFailuresBurnFast"].expr
    assert {each.severity for each in found.values()} == {"page"}
    assert found["OtelEvalScoreDrop"].for_seconds == 1800


@pytest.mark.parametrize(
    ("block", "missing"),
    [
        pytest.param({"drop": 0.1}, FLOORS, id="no floor"),
        pytest.param({"pass_rate": 0.9}, {"OtelEvalScoreDrop"}, id="no drop"),
        pytest.param({"pass_rate": 0.9, "drop": 0}, {"OtelEvalScoreDrop"}, id="a drop of 0"),
        pytest.param({"severity": "page"}, set(), id="no threshold at all"),
    ],
)
def test_only_what_a_block_names_is_watched(block: dict[str, Any], missing: set[str]) -> None:
    found = {each.alert for each in rules(rule(**block))}

    assert SCORES - found == missing


@pytest.mark.parametrize("pass_rate", [0.1, 0.5, 0.9, 0.99, 1.0])
def test_a_burn_rate_can_be_reached(pass_rate: float) -> None:
    found = [each for each in rules(rule(pass_rate=pass_rate)) if "Burn" in each.alert]

    limits = [float(text) for each in found for text in re.findall(r"> (\S+)", each.expr)]

    assert limits
    assert all(0 <= limit < 1 for limit in limits)


def test_each_rule_has_alerts_of_its_own() -> None:
    found = rules(rule("one"), rule("two", drop=0.3))

    identities = [(each.alert, each.severity, tuple(each.labels.items())) for each in found]

    assert len(identities) == len(set(identities))


def test_configured_labels_tell_scores_apart() -> None:
    labels = {"emit": {"metrics": {"labels": {"environment": "deployment.environment.name"}}}}
    (floor,) = (each for each in rules(**labels) if each.alert == "OtelEvalPassRateLow")

    assert floor.expr.startswith("agent_rule_environment:")
    assert "{{ $labels.environment }}" in floor.description


def test_limits_are_those_of_the_configuration() -> None:
    found = rules(grouping={"max_open_traces": 1234, "max_buffer_mib": 64})
    (near,) = (each for each in found if each.alert == "OtelEvalNearCapacity")

    assert "/ 1234," in near.expr
    assert f"/ {64 * 2**20}," in near.expr


@pytest.mark.parametrize("each", rules(), ids=lambda each: each.alert)
def test_an_alert_tells_who_and_how_much(each: AlertRule) -> None:
    wanted = {"agent", "rule"} if each.alert in SCORES else {"instance"}
    told = set() if each.alert == "OtelEvalAbsent" else wanted

    assert told <= set(re.findall(r"\$labels\.(\w+) }}", each.description))
    assert each.alert == "OtelEvalAbsent" or "$value" in each.description
    assert each.severity in {"warning", "critical"}


def test_every_alert_has_a_promtool_test() -> None:
    tests = yaml.safe_load(run("--tests"))["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]

    fires = {case["alertname"] for case in cases if case["exp_alerts"]}
    silent = {case["alertname"] for case in cases if not case["exp_alerts"]}

    assert fires == silent == SCORES | PIPELINE


def test_promtool_records_before_it_looks_for_what_is_recorded() -> None:
    """Left to itself it takes groups in any order, now this one and now that."""
    tests, rules = yaml.safe_load(run("--tests")), yaml.safe_load(run())

    assert tests["group_eval_order"] == [group["name"] for group in rules["groups"]]


def test_the_custom_resource_holds_the_same_groups() -> None:
    resource = yaml.safe_load(run("--format", "prometheusrule"))

    assert resource["kind"] == "PrometheusRule"
    assert resource["spec"] == yaml.safe_load(run())


def test_tests_go_with_a_rule_file_only() -> None:
    done = CliRunner().invoke(main, ["alerts", "--tests", "--format", "prometheusrule"])

    assert done.exit_code == 2
    assert "--format prometheus" in done.output


def test_a_bad_configuration_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("rulez: []")

    done = CliRunner().invoke(main, ["alerts", "-c", str(tmp_path / "bad.yaml")])

    assert done.exit_code == 2
    assert "bad.yaml:1" in done.output


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.5, "500ms"),
        (90, "90s"),
        (900, "15m"),
        (5400, "90m"),
        (7200, "2h"),
        (86400, "1d"),
    ],
)
def test_durations_are_written_in_whole_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_story_counts_up_without_a_step_missing() -> None:
    story = Story(good=3, bad=2, after=2)

    assert story.counter(well=2, ill=0) == "0+2x3 6+0x1 8+2x1"
    assert story.gauge(well=0, ill=9) == "0+0x3 9+0x1 0+0x1"


@pytest.mark.parametrize("rate", [10 / 240, 20 / 240, 85 / 240, 2 / 3])
def test_a_counter_is_never_reset_by_a_step_that_was_rounded(rate: float) -> None:
    """Prometheus would count all of it a second time."""
    story = Story(good=11_520, bad=4_320, after=2_880)

    counted = values(story.counter(well=rate, ill=0))

    assert all(later >= earlier for earlier, later in pairwise(counted))
    assert len(counted) == 11_520 + 4_320 + 2_880 + 1


def values(notation: str) -> list[float]:
    """As promtool reads it."""
    parts = [re.split(r"[+x]", part) for part in notation.split()]
    return [
        value
        for first, step, more in parts
        for value in accumulate([float(step)] * int(more), initial=float(first))
    ]


def test_several_configured_labels_are_told_in_one_sentence() -> None:
    labels = {"environment": "deployment.environment.name", "region": "cloud.region"}
    (low,) = (
        each
        for each in rules(emit={"metrics": {"labels": labels}})
        if each.alert == "OtelEvalPassRateLow"
    )

    assert ", environment {{ $labels.environment }}, region {{ $labels.region }}, pass" in (
        low.description
    )


def test_a_trouble_is_rendered_as_prometheus_would() -> None:
    (drop,) = (each for each in rules() if each.alert == "OtelEvalScoreDrop")
    labels = {"agent": "a", "rule": "r", "evaluator": "e"}

    told = Trouble(rule=drop, labels=labels, value=0.5).document()

    assert told["exp_annotations"]["description"] == (
        "Traces of agent a under rule r have a mean score of 0.50 by e; "
        "their baseline of 7 days is 1.00, and a drop of 0.1 is too much."
    )
