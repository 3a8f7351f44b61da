from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.loop import ToolLoop
from otel_eval.model import Score, Skip, ToolCall
from tests.conftest import call, trajectory

SEARCH = call("search", {"q": "cats"}, output="nothing")
OPEN = call("open", {"id": 1}, output="gone")
FAILING = [call("search", {"q": "cats"}, error=f"timeout after {i} s") for i in range(4)]
BLIND = call("search", {"q": "cats"})


def judge(calls: list[ToolCall], **settings: Any) -> Score:
    outcome = ToolLoop(**settings).evaluate(trajectory(calls))
    assert isinstance(outcome, Score)
    return outcome


@pytest.mark.parametrize(
    ("calls", "value"),
    [
        pytest.param([SEARCH] * 3, 1.0, id="as often as allowed"),
        pytest.param([SEARCH] * 4, 0.75, id="once more"),
        pytest.param([SEARCH] * 10, 0.3, id="many more"),
        pytest.param([SEARCH, OPEN] * 4, 0.75, id="in a circle of two"),
        pytest.param(
            [call("poll", {"id": 1}, output={"done": n}) for n in range(9)], 1.0, id="progress"
        ),
        pytest.param(
            [call("open", {"id": n}, output="gone") for n in range(9)], 1.0, id="other arguments"
        ),
        pytest.param(FAILING, 0.75, id="errors each time"),
        pytest.param([BLIND] * 5, 1.0, id="unrecorded results, not often enough"),
        pytest.param([BLIND] * 6, 0.5, id="unrecorded results, twice as often in a row"),
        pytest.param(([BLIND] * 3 + [OPEN]) * 3, 1.0, id="unrecorded results, not in a row"),
        pytest.param([*[BLIND] * 3, *FAILING[:3]], 1.0, id="errors only sometimes"),
    ],
)
def test_falls_with_calls_beyond_the_limit(calls: list[ToolCall], value: float) -> None:
    assert judge(calls).value == pytest.approx(value)


def test_the_reason_names_tools_and_counts() -> None:
    score = judge([SEARCH] * 5 + [OPEN])

    assert score.reason == "same arguments and same result beyond 3 allowed: search 2 times"
    assert score.details == {"calls": 6, "calls_beyond_limit": {"search": 2}}


def test_the_reason_claims_no_result_that_was_not_recorded() -> None:
    score = judge([BLIND] * 6)

    assert score.reason.startswith("same arguments, results not recorded, beyond 3 allowed: ")


def test_the_limit_can_be_set() -> None:
    assert judge([SEARCH] * 2, max_repeats=1).value == 0.5
    assert judge([SEARCH] * 9, max_repeats=9).value == 1.0


def test_ignored_tools_are_no_loop_and_do_not_break_one() -> None:
    calls = [BLIND, call("think", {"step": 1})] * 6

    assert judge(calls).value == 1.0
    assert judge(calls, ignore=["think"]).value == 0.5


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        pytest.param([], "no_tool_calls", id="no call"),
        pytest.param([call("think")], "no_tool_calls", id="only ignored calls"),
        pytest.param(
            [call("search", output="nothing")] * 4, "arguments_unrecorded", id="result the same"
        ),
        pytest.param([call("search")] * 6, "arguments_unrecorded", id="nothing recorded"),
    ],
)
def test_what_cannot_be_told_is_skipped(calls: list[ToolCall], code: str) -> None:
    outcome = ToolLoop(ignore="think").evaluate(trajectory(calls))

    assert isinstance(outcome, Skip)
    assert outcome.code == code


@pytest.mark.parametrize("calls", [[call("search")] * 5, [call("search", output="x")] * 3])
def test_unrecorded_arguments_that_decide_nothing_are_scored(calls: list[ToolCall]) -> None:
    assert judge(calls).value == 1.0


def test_an_incomplete_trajectory_is_scored() -> None:
    outcome = ToolLoop().evaluate(trajectory([SEARCH] * 4, whole=False))

    assert isinstance(outcome, Score)


@pytest.mark.parametrize("settings", [{"max_repeats": 0}, {"max_repeats": "x"}, {"ignore": []}])
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ToolLoop.model_validate(settings)
