from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.error_rate import ToolErrorRate
from otel_eval.model import Score, Skip
from tests.conftest import call, trajectory

OK = call("search", output={"hits": 3})
FAILED = call("search", error="timeout")
SAYS_SO = call("fetch", output={"isError": True, "content": []})


def judge(calls: list[Any], **settings: Any) -> Score:
    outcome = ToolErrorRate(**settings).evaluate(trajectory(calls))
    assert isinstance(outcome, Score)
    return outcome


@pytest.mark.parametrize(
    ("calls", "value"),
    [
        pytest.param([OK, OK], 1.0, id="no error"),
        pytest.param([OK, FAILED], 0.5, id="by status"),
        pytest.param([OK, OK, OK, SAYS_SO], 0.75, id="by result"),
        pytest.param([FAILED, FAILED], 0.0, id="all"),
        pytest.param([call("search", error="")], 0.0, id="error without text"),
    ],
)
def test_one_minus_the_share_of_failed_calls(calls: list[Any], value: float) -> None:
    assert judge(calls).value == value


def test_the_reason_counts_by_tool() -> None:
    score = judge([FAILED, FAILED, SAYS_SO, OK])

    assert score.reason == "3 of 4 calls failed: search (2 times), fetch (1 time)"
    assert score.details == {
        "calls": 4,
        "errors": 3,
        "error_rate": 0.75,
        "errors_by_tool": {"search": 2, "fetch": 1},
    }
    assert judge([OK]).reason == "none of 1 call failed"


def test_what_a_sink_notes_in_the_details_is_in_those_alone() -> None:
    judge([OK]).details["seen"] = True  # type: ignore[index]  # a dict all the same

    assert "seen" not in judge([OK]).details


def test_only_the_tools_given_count() -> None:
    assert judge([FAILED, SAYS_SO, call("fetch")], tools="fet*").value == 0.5


@pytest.mark.parametrize("tools", ["*", "other"])
def test_without_calls_there_is_nothing_to_judge(tools: str) -> None:
    outcome = ToolErrorRate(tools=tools).evaluate(trajectory([] if tools == "*" else [OK]))

    assert isinstance(outcome, Skip)
    assert outcome.code == "no_tool_calls"


def test_an_incomplete_trajectory_is_scored() -> None:
    outcome = ToolErrorRate().evaluate(trajectory([OK, FAILED], whole=False))

    assert isinstance(outcome, Score)


@pytest.mark.parametrize(("max_rate", "failures", "passes"), [(0.1, 1, True), (0.1, 2, False)])
def test_max_rate_sets_pass_at(max_rate: float, failures: int, passes: bool) -> None:
    rate = ToolErrorRate(max_rate=max_rate)

    outcome = rate.evaluate(trajectory([FAILED] * failures + [OK] * (10 - failures)))

    assert isinstance(outcome, Score)
    assert rate.pass_at is not None
    assert (outcome.value >= rate.pass_at) == passes


def test_settings_survive_a_round_trip() -> None:
    rate = ToolErrorRate(max_rate=0.3)

    assert ToolErrorRate.model_validate(rate.model_dump()) == rate


@pytest.mark.parametrize(
    "settings", [{"max_rate": 1.5}, {"max_rate": -0.1}, {"max_rate": 0.1, "pass_at": 0.5}]
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="max_rate"):
        ToolErrorRate.model_validate(settings)
