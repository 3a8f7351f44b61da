"""tool-call-accuracy beyond the golden cases: matchers, what was not recorded, the summary line."""

from typing import Any

import pytest

from otel_eval.evaluators.accuracy import ToolCallAccuracy
from otel_eval.model import UNRECORDED, Score, Skip
from tests.conftest import call, trajectory


def evaluator(*expected: tuple[str, Any], **fields: Any) -> ToolCallAccuracy:
    calls = [{"tool": tool, "args": args} for tool, args in expected]
    return ToolCallAccuracy(expected=calls, **fields)


def test_no_call_can_be_expected() -> None:
    good, bad = evaluator().evaluate(trajectory()), evaluator().evaluate(trajectory(["a"]))

    assert isinstance(good, Score)
    assert isinstance(bad, Score)
    assert (good.value, bad.value) == (1.0, 0.0)
    assert good.reason == "0 of 0 expected calls made exactly"
    assert bad.reason == "0 of 0 expected calls made exactly; not expected: a"
    assert bad.details["extra_calls"] == [{"tool": "a"}]


def test_matchers_stand_for_values() -> None:
    expected = evaluator(("a", {"x": {"$type": "integer"}}), ("a", {"x": 1}))

    outcome = expected.evaluate(trajectory([call("a", {"x": 1}), call("a", {"x": 2})]))

    assert isinstance(outcome, Score)
    assert outcome.value == 1


def test_a_call_with_other_arguments_is_incorrect_not_missed_and_extra() -> None:
    outcome = evaluator(("a", {"x": 1}), ("b", {})).evaluate(
        trajectory([call("a", {"x": 2}), call("a", {"x": 3}), call("c", {})])
    )

    assert isinstance(outcome, Score)
    assert outcome.reason == (
        "0 of 2 expected calls made exactly; other arguments: a; missed: b; not expected: a, c"
    )
    assert outcome.details["summary"] == (
        "Accuracy Score: 0.0% | Correct: 0/2 | Incorrect: 1 | Missed: 1 | Extra: 2"
    )


@pytest.mark.parametrize(
    ("arguments", "skipped"),
    [([{"x": 1}, UNRECORDED], False), ([UNRECORDED], True), ([{"x": 2}, UNRECORDED], True)],
)
def test_only_what_would_decide_the_score_is_skipped(arguments: list[Any], skipped: bool) -> None:
    calls = trajectory([call("a", each) for each in arguments], dialect="genai")

    outcome = evaluator(("a", {"x": 1})).evaluate(calls)

    assert isinstance(outcome, Skip) == skipped
    if isinstance(outcome, Skip):
        assert outcome.code == "arguments_unrecorded"
        assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in outcome.reason


def test_the_summary_rounds_halves_up() -> None:
    expected = evaluator(*[("a", {})] + [("b", {})] * 16)

    outcome = expected.evaluate(trajectory([call("a", {})] * 1 + [call("c", {})] * 14))

    assert isinstance(outcome, Score)
    assert outcome.value == pytest.approx(0.0625)
    assert outcome.details["summary"].startswith("Accuracy Score: 6.3% | Correct: 1/17 |")


def test_an_incomplete_trace_is_skipped() -> None:
    outcome = evaluator().evaluate(trajectory(whole=False))

    assert isinstance(outcome, Skip)
    assert outcome.code == "incomplete"
