from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.allowlist import ToolAllowlist
from otel_eval.model import Score, Skip
from tests.conftest import call, trajectory


def judge(calls: list[Any], **settings: Any) -> Score:
    outcome = ToolAllowlist(**settings).evaluate(trajectory(calls))
    assert isinstance(outcome, Score)
    return outcome


@pytest.mark.parametrize(
    ("settings", "calls", "value"),
    [
        pytest.param({"allowed": ["get_*", "search"]}, ["get_a", "search"], 1.0, id="all allowed"),
        pytest.param({"allowed": ["get_*"]}, ["get_a", "set_a"], 0.5, id="one not allowed"),
        pytest.param({"allowed": "get_*"}, ["Get_a"], 0.0, id="case matters"),
        pytest.param({"allowed": ["/^(get|list)_/"]}, ["list_a", "drop"], 0.5, id="expression"),
        pytest.param({"forbidden": ["rm"]}, ["ls", "rm", "ls", "rm"], 0.5, id="forbidden"),
        pytest.param({"allowed": ["*"], "forbidden": ["rm"]}, ["rm"], 0.0, id="forbidden wins"),
        pytest.param({"required": ["log_*"]}, ["log_a", "b"], 1.0, id="required is there"),
        pytest.param({"required": ["log"]}, ["a", "b", "c"], 0.75, id="required is missing"),
        pytest.param({"required": ["a", "b"]}, [], 0.0, id="required, no call"),
        pytest.param({"allowed": ["a"]}, [], 1.0, id="no call breaks no list"),
    ],
)
def test_share_of_calls_allowed(settings: dict[str, Any], calls: list[str], value: float) -> None:
    assert judge(calls, **settings).value == value


def test_the_reason_names_tools_and_positions() -> None:
    score = judge(["ls", "rm"], forbidden=["rm"], required=["log"])

    assert score.reason == "1 of 2 calls not allowed: rm (call 2); required but not called: log"
    assert score.details == {
        "calls": 2,
        "not_allowed": {"rm": 1},
        "missing_required": ["log"],
    }
    assert judge(["ls"], forbidden=["rm"]).reason == "1 call, none of them outside the list"


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        pytest.param({"forbidden": ["rm"]}, 0.5, id="what happened"),
        pytest.param({"forbidden": ["rm"], "required": ["log"]}, 0.5, id="required may yet come"),
        pytest.param({"allowed": ["*"], "required": ["ls"]}, 1.0, id="required has come"),
        pytest.param({"required": ["log"]}, "incomplete", id="required is missing so far"),
    ],
)
def test_an_incomplete_trajectory_scores_what_happened(
    settings: dict[str, Any], value: float | str
) -> None:
    made = trajectory(["ls", "rm"], whole=False)

    match ToolAllowlist(**settings).evaluate(made):
        case Score(value=found):
            assert found == value
        case Skip(code=code):
            assert code == value


def test_attempts_that_failed_can_be_left_out() -> None:
    calls = [call("rm", error="denied"), "ls"]

    assert judge(calls, forbidden="rm", attempts="succeeded").value == 1.0


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="no list"),
        pytest.param({"allowed": []}, id="empty list"),
        pytest.param({"allowed": [""]}, id="empty name"),
        pytest.param({"forbidden": ["/(/"]}, id="no expression"),
        pytest.param({"required": [1]}, id="not a name"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ToolAllowlist.model_validate(settings)
