from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.budget import ToolBudget
from otel_eval.model import ModelCall, Score, Skip, Trajectory
from tests.conftest import call, trajectory

SECOND = 1_000_000_000


def made(**fields: Any) -> Trajectory:
    """Three calls and two model calls of 100 tokens each, in ten seconds."""
    models = [ModelCall(input_tokens=80, output_tokens=20)] * 2
    defaults = {"model_calls": models, "start_ns": 5 * SECOND, "end_ns": 15 * SECOND}
    return trajectory(["a", "b", "c"], **{**defaults, **fields})


def judge(judged: Trajectory, **settings: Any) -> Score:
    outcome = ToolBudget(**settings).evaluate(judged)
    assert isinstance(outcome, Score)
    return outcome


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        pytest.param({"max_calls": 3}, 1.0, id="calls kept"),
        pytest.param({"max_calls": 2}, 0.0, id="calls broken"),
        pytest.param({"max_duration": "10s"}, 1.0, id="duration kept"),
        pytest.param({"max_duration": 9.5}, 0.0, id="duration broken"),
        pytest.param({"max_duration": "1m30s"}, 1.0, id="duration in parts"),
        pytest.param({"max_tokens": 200}, 1.0, id="tokens kept"),
        pytest.param({"max_tokens": 199}, 0.0, id="tokens broken"),
        pytest.param({"max_model_calls": 1}, 0.0, id="model calls broken"),
        pytest.param({"max_calls": 0, "max_tokens": 500}, 0.5, id="one of two"),
        pytest.param(
            {"max_calls": 0, "max_tokens": 500, "max_duration": 60, "max_model_calls": 9},
            0.75,
            id="three of four",
        ),
    ],
)
def test_share_of_budgets_kept(settings: dict[str, Any], value: float) -> None:
    assert judge(made(), **settings).value == value


def test_the_reason_says_what_was_used() -> None:
    score = judge(made(), max_calls=2, max_duration="500ms", max_tokens=1_000_000)

    assert score.reason == "over budget: 3 tool calls of 2, 10 seconds of 0.5"
    assert score.details["tokens"] == {"used": 200, "limit": 1_000_000}
    assert judge(made(), max_tokens=10**7).reason == "within budget: 200 tokens of 10000000"


@pytest.mark.parametrize(
    ("judged", "settings", "reason"),
    [
        (trajectory(["a"]), {"max_calls": 0}, "over budget: 1 tool call of 0"),
        (trajectory([]), {"max_calls": 1}, "within budget: 0 tool calls of 1"),
        (trajectory([], end_ns=SECOND), {"max_duration": 2}, "within budget: 1 second of 2"),
        (
            trajectory([], end_ns=SECOND // 2),
            {"max_duration": 1},
            "within budget: 0.5 seconds of 1",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_is_singular(judged: Trajectory, settings: dict[str, Any], reason: str) -> None:
    assert judge(judged, **settings).reason == reason


def test_the_skip_says_how_to_record_tokens() -> None:
    judged = made(model_calls=[ModelCall(), ModelCall(input_tokens=1)], dialect="traceloop")

    assert ToolBudget(max_tokens=500).evaluate(judged) == Skip(
        "output_unrecorded",
        "1 of 2 model calls without token usage: record token usage on model spans "
        "(gen_ai.usage.input_tokens, gen_ai.usage.output_tokens)",
    )


def test_tokens_of_model_calls_that_have_no_span_are_unrecorded() -> None:
    skip = ToolBudget(max_tokens=5).evaluate(trajectory(["search"]))

    assert isinstance(skip, Skip)
    assert skip.code == "output_unrecorded"
    assert skip.reason.startswith("no model call was recorded: record token usage")


def test_without_calls_every_budget_is_kept() -> None:
    assert judge(trajectory([]), max_calls=0, max_tokens=0, max_duration=0).value == 1.0


def test_the_duration_is_that_of_the_calls_if_nothing_else_is_timed() -> None:
    calls = [call("a", start_ns=SECOND, end_ns=2 * SECOND), call("b", start_ns=2, end_ns=SECOND)]

    assert judge(trajectory(calls), max_duration="1s").value == 0.0


@pytest.mark.parametrize(
    ("settings", "fields", "code"),
    [
        pytest.param({"max_calls": 3}, {"whole": False}, "incomplete", id="not broken so far"),
        pytest.param(
            {"max_tokens": 500}, {"model_calls": [ModelCall()]}, "output_unrecorded", id="tokens"
        ),
    ],
)
def test_what_is_not_known_to_be_kept_is_skipped(
    settings: dict[str, Any], fields: dict[str, Any], code: str
) -> None:
    outcome = ToolBudget(**settings).evaluate(made(**fields))

    assert isinstance(outcome, Skip)
    assert outcome.code == code


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        pytest.param({"max_calls": 2, "max_tokens": 500}, {"whole": False}, id="incomplete"),
        pytest.param(
            {"max_calls": 2, "max_tokens": 500}, {"model_calls": [ModelCall()]}, id="unrecorded"
        ),
    ],
)
def test_a_broken_budget_scores_whatever_else_is_unknown(
    settings: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert judge(made(**fields), **settings).value == 0.5


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="no budget"),
        pytest.param({"max_calls": -1}, id="negative"),
        pytest.param({"max_tokens": True}, id="not a number"),
        pytest.param({"max_duration": "5 minutes"}, id="not a duration"),
        pytest.param({"max_duration": -1}, id="negative duration"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ToolBudget.model_validate(settings)
