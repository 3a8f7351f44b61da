"""tool-call-args beyond the golden cases: pairing, matchers, what was not recorded, reasons."""

from typing import Any

import pytest

from otel_eval.evaluators.args import ToolCallArgs
from otel_eval.model import UNRECORDED, Score, Skip, Trajectory
from tests.conftest import call, trajectory


def evaluator(*expected: Any, **fields: Any) -> ToolCallArgs:
    """Expectations for the tool `t`, unless they say otherwise."""
    calls = [each if "name" in each else {"name": "t", "args": each} for each in expected]
    return ToolCallArgs(tool_calls=calls, **fields)


def made(*arguments: Any) -> Trajectory:
    return trajectory([call("t", each) for each in arguments], dialect="openinference")


def value(outcome: Score | Skip) -> float:
    assert isinstance(outcome, Score)
    return outcome.value


ABSENT = {"$absent": True}


@pytest.mark.parametrize(
    ("expected", "arguments", "found"),
    [
        pytest.param([{"x": 1}, {}], [{"x": 1}, {"y": 2}], 2, id="the choosy one first"),
        pytest.param([{}, {"x": 1}], [{"x": 1}, {"y": 2}], 2, id="in any order"),
        pytest.param([{"x": 1}, {"y": 1}], [{"x": 1, "y": 1}, {"y": 1}], 2, id="by swapping"),
        pytest.param([{"x": 1}, {"x": 1}], [{"x": 1}], 1, id="one call for one expectation"),
        pytest.param(
            [{"x": 1}, {"x": 1, "y": ABSENT}],
            [{"x": 1}, {"x": 1, "y": 2}],
            2,
            id="an equal call is left to the one that needs it",
        ),
        pytest.param([{"x": {"$any": True}}, {"x": 1}], [{"x": 1}, {"x": 2}], 2, id="any"),
        pytest.param([{"x": {"$any": True}}], [{"y": 1}], 0, id="any is not absent"),
        pytest.param([{"x": ABSENT}], [{"x": 1}], 0, id="present"),
        pytest.param([{"x": ABSENT}], [{"y": 1}], 1, id="absent"),
        pytest.param([{"x": ABSENT}], ["text"], 0, id="text has no keys"),
        pytest.param([{}], ["text"], 1, id="nothing asked of text"),
        pytest.param([{}], [UNRECORDED], 1, id="nothing asked of the unrecorded"),
        pytest.param([{"x": 1}], [None], 0, id="null"),
        pytest.param([{"x": {"y": 1}}], [{"x": {"y": 1, "z": 2}}], 0, id="whole inside"),
    ],
)
def test_as_many_expected_calls_as_possible_find_their_own(
    expected: list[Any], arguments: list[Any], found: int
) -> None:
    outcome = evaluator(*expected).evaluate(made(*arguments))

    assert value(outcome) == found / len(expected)


@pytest.mark.parametrize(
    ("expected", "arguments", "found"),
    [
        pytest.param([{}], [""], 1, id="empty text is no arguments"),
        pytest.param([{}], [{}], 1, id="none"),
        pytest.param([{}], [{"x": 1}], 0, id="more than none"),
        pytest.param([{"x": {"$any": True}}], [{"x": 1, "y": 1}], 0, id="more than any"),
        pytest.param([{"x": {"$any": True}, "y": ABSENT}], [{"x": 1}], 1, id="absent"),
        pytest.param([{"x": {"$any": True}}, {"x": 1}], [{"x": 1}, {"x": 2}], 2, id="by swapping"),
    ],
)
def test_exact_arguments(expected: list[Any], arguments: list[Any], found: int) -> None:
    outcome = evaluator(*expected, subset=False).evaluate(made(*arguments))

    assert value(outcome) == found / len(expected)


@pytest.mark.parametrize(
    ("arguments", "strict", "skipped"),
    [
        pytest.param([{"x": 1}, {"x": 2}, UNRECORDED], False, False, id="not needed"),
        pytest.param([{"x": 1}, UNRECORDED], False, True, id="could be the other"),
        pytest.param([{"x": 1}, UNRECORDED], True, True, id="could be the other, strict"),
        pytest.param([UNRECORDED], False, True, id="could be one of two"),
        pytest.param([UNRECORDED], True, False, id="cannot be both"),
        pytest.param([{"x": 1}, {"x": 3}], False, False, id="all recorded"),
    ],
)
def test_only_what_would_decide_the_score_is_skipped(
    arguments: list[Any], strict: bool, skipped: bool
) -> None:
    outcome = evaluator({"x": 1}, {"x": 2}, strict=strict).evaluate(made(*arguments))

    assert isinstance(outcome, Skip) == skipped


def test_the_skip_says_how_to_turn_capture_on() -> None:
    outcome = evaluator({"x": 1}).evaluate(made(UNRECORDED))

    assert outcome == Skip(
        "arguments_unrecorded",
        "arguments of t were not recorded: "
        "set OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS to false",
    )


def test_unrecorded_calls_of_other_tools_do_not_matter() -> None:
    outcome = evaluator({"x": 1}).evaluate(trajectory([call("other")]))

    assert value(outcome) == 0


@pytest.mark.parametrize(
    ("expected", "arguments", "subset", "reason"),
    [
        ([{"x": 1}], [{"x": 1}], True, "1 of 1 expected call found"),
        (
            [{"x": 1}],
            [],
            True,
            "0 of 1 expected call found; t was not called for expected call 1",
        ),
        (
            [{"user": "secret-1", "z": 1, "w": ABSENT}],
            [{"user": "secret-2", "w": 1}],
            True,
            "0 of 1 expected call found; t (call 1) differs in user, lacks z, has w",
        ),
        (
            [{"x": 1}],
            [{"x": 1, "cc": "secret"}],
            False,
            "0 of 1 expected call found; t (call 1) has cc",
        ),
        (
            [{"x": 1}],
            ["secret"],
            True,
            "0 of 1 expected call found; t (call 1) has no arguments by name",
        ),
    ],
)
def test_the_reason_names_keys_and_no_values(
    expected: list[Any], arguments: list[Any], subset: bool, reason: str
) -> None:
    outcome = evaluator(*expected, subset=subset).evaluate(made(*arguments))

    assert isinstance(outcome, Score)
    assert outcome.reason == reason


def test_what_was_not_recorded_is_not_called_missing() -> None:
    outcome = evaluator({"x": 1}, {"x": 2}, strict=True).evaluate(made(UNRECORDED))

    assert isinstance(outcome, Score)
    assert outcome.reason == (
        "0 of 2 expected calls found; t (call 1) has arguments that were not recorded; "
        "t was not called for expected call 2"
    )


def test_an_argument_may_have_the_name_of_a_matcher() -> None:
    outcome = evaluator({"$in": {"$literal": [1]}}).evaluate(made({"$in": [1]}))

    assert value(outcome) == 1


def test_details_hold_what_each_expected_call_was_held_against() -> None:
    expected = [{"x": 1}, {"x": 2}, {"name": "u", "args": {}}]

    outcome = evaluator(*expected).evaluate(made({"x": 3}, {"x": 1}))

    assert isinstance(outcome, Score)
    assert outcome.details == {
        "explained_tool_calls_args": {
            "t_0": {"expected": {"x": 1}, "actual": {"x": 1}, "score": 1.0},
            "t_1": {"expected": {"x": 2}, "actual": {"x": 3}, "score": 0.0},
            "u_0": {"expected": {}, "score": 0.0},
        }
    }


def test_an_incomplete_trace_is_skipped() -> None:
    outcome = evaluator({"x": 1}).evaluate(trajectory([call("t", {"x": 1})], whole=False))

    assert isinstance(outcome, Skip)
    assert outcome.code == "incomplete"


def test_names_match_exactly() -> None:
    outcome = evaluator({"name": "T", "args": {}}).evaluate(made({}))

    assert value(outcome) == 0
