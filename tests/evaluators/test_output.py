"""tool-call-output beyond the golden cases: forms of an output, matchers, what was not recorded."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.output import ToolCallOutput
from otel_eval.model import UNRECORDED, Score, Skip, Trajectory
from tests.conftest import call, trajectory


def evaluator(*outputs: Any, **fields: Any) -> ToolCallOutput:
    return ToolCallOutput(
        tool_outputs=[{"name": "t", "output": each} for each in outputs], **fields
    )


def gave(*outputs: Any) -> Trajectory:
    return trajectory([call("t", output=each) for each in outputs], dialect="traceloop")


def value(outcome: Score | Skip) -> float:
    assert isinstance(outcome, Score)
    return outcome.value


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("{'a': 1}", {"a": 1.0}, True),
        ('{"a": 1}', "{'a': 1}", True),
        ({"a": [True]}, {"a": [1]}, False),
        ({"content": "x"}, {"content": "x"}, True),
        ("x", {"content": "x", "type": "tool"}, True),
        ("x", {"content": {"content": "x"}}, False),
        ({"content": "x"}, {"content": {"content": "x"}}, True),
        ({"content": "x"}, "x", False),
        ({"a": 1}, {"content": '{"a": 1}'}, True),
        ("None", None, True),
        (None, "null", True),
        ("", None, False),
        ("", "", True),
        ("1", 1, True),
        ("12345678901234567890123", 12345678901234567890123, True),
        (12345678901234567890123, "12345678901234567890123", True),
        ("12345678901234567890123", 12345678901234567890124, False),
        ('"1"', 1, False),
        ('"1"', "1", True),
        ("plain text", "plain text", True),
        ("plain text", "plain text ", False),
        ("{not json}", "{not json}", True),
        ({"$regex": "^ok"}, {"content": "ok: 3 rows"}, True),
        ({"$regex": "^ok"}, "not ok", False),
        ({"rows": {"$range": [1, 5]}}, {"rows": 3}, True),
        ({"rows": {"$range": [1, 5]}}, {"rows": 3, "more": 1}, False),
        ({"rows": 1, "error": {"$absent": True}}, {"rows": 1}, True),
        ({"$literal": {"$any": True}}, {"$any": True}, True),
        ({"$any": True}, None, True),
        ("NaN", math.nan, True),
        ("[NaN]", "[NaN]", True),
        ("{'a'}", ["a"], True),
        ("{1: 2}", {"1": 2}, True),
        ('{"$schema": "x"}', {"$schema": "x"}, True),
        ('{"$any": true}', {"a": 1}, False),
    ],
)
def test_outputs_compare_by_value(expected: Any, output: Any, same: bool) -> None:
    assert value(evaluator(expected).evaluate(gave(output))) == float(same)


def test_an_output_cannot_be_absent() -> None:
    with pytest.raises(ValidationError, match="not for an output"):
        evaluator({"$absent": True})


def test_equal_matchers_are_each_met() -> None:
    matcher = {"$regex": "^a"}

    assert value(evaluator(matcher, matcher).evaluate(gave("ab", "ac"))) == 1


def test_a_call_serves_one_expectation() -> None:
    assert value(evaluator("1", "1").evaluate(gave(1))) == 0.5


def test_the_best_pairing_is_found_over_all_forms() -> None:
    wrapped, other = {"content": "x", "id": 1}, {"content": "x", "id": 2}

    assert value(evaluator("x", wrapped).evaluate(gave(wrapped, other))) == 1
    assert value(evaluator("x", wrapped).evaluate(gave(other, wrapped))) == 1


@pytest.mark.parametrize(
    ("outputs", "strict", "skipped"),
    [
        pytest.param([1, 2, UNRECORDED], False, False, id="not needed"),
        pytest.param([1, UNRECORDED], False, True, id="could be the other"),
        pytest.param([UNRECORDED], True, False, id="cannot be both"),
    ],
)
def test_only_what_would_decide_the_score_is_skipped(
    outputs: list[Any], strict: bool, skipped: bool
) -> None:
    outcome = evaluator(1, 2, strict=strict).evaluate(gave(*outputs))

    assert isinstance(outcome, Skip) == skipped


def test_the_skip_says_how_to_turn_capture_on() -> None:
    assert evaluator(1).evaluate(gave(UNRECORDED)) == Skip(
        "output_unrecorded",
        "output of t was not recorded: set TRACELOOP_TRACE_CONTENT to true",
    )


def test_any_output_also_fits_one_that_was_not_recorded() -> None:
    assert value(evaluator({"$any": True}).evaluate(gave(UNRECORDED))) == 1


@pytest.mark.parametrize("expected", [1, None, {"$any": True}, {"$in": [{"$any": True}]}], ids=repr)
def test_a_call_that_failed_gave_no_output(expected: Any) -> None:
    outcome = evaluator(expected).evaluate(trajectory([call("t", error="timeout")]))

    assert isinstance(outcome, Score)
    assert outcome.value == 0
    assert outcome.reason == "0 of 1 expected output found; t (call 1) failed"


def test_any_output_is_taken_from_a_call_that_did_not_fail() -> None:
    calls = trajectory([call("t", error="timeout"), call("t", output="ok")])

    assert value(evaluator({"$any": True}).evaluate(calls)) == 1
    assert value(evaluator({"$any": True}, {"$any": True}).evaluate(calls)) == 0.5


def test_what_was_not_recorded_is_not_called_another_output() -> None:
    outcome = evaluator(1, 2, strict=True).evaluate(gave(UNRECORDED))

    assert isinstance(outcome, Score)
    assert "t (call 1) has an output that was not recorded" in outcome.reason


def test_the_reason_names_calls_and_no_values() -> None:
    outcome = evaluator("secret", 1, 2).evaluate(gave(1, "hidden"))

    assert isinstance(outcome, Score)
    assert outcome.reason == (
        "1 of 3 expected outputs found; t (call 2) gave another output; "
        "t was not called for expected output 3"
    )
    assert outcome.details["explained_tool_calls_outputs"] == {
        "t_0": {"expected": "secret", "actual": "hidden", "score": 0.0},
        "t_1": {"expected": 1, "actual": 1, "score": 1.0},
        "t_2": {"expected": 2, "score": 0.0},
    }


def test_an_incomplete_trace_is_skipped() -> None:
    outcome = evaluator(1).evaluate(trajectory([call("t", output=1)], whole=False))

    assert isinstance(outcome, Skip)
    assert outcome.code == "incomplete"
