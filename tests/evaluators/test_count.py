"""tool-call-count beyond the seeds: bounds, reasons, incomplete traces, attempts."""

from typing import Any

import pytest

from otel_eval.evaluators.count import Bound, ToolCallCount, read_bound
from otel_eval.model import Score, Skip
from tests.conftest import call, trajectory


def count(counts: dict[str, Any], **fields: Any) -> ToolCallCount:
    return ToolCallCount(tool_calls_count=counts, **fields)


@pytest.mark.parametrize(
    "given", [">= 2", ">=2", "  >=  2 ", [">=", 2], (">=", 2), [">=", "2"], [">=", 2.0]]
)
def test_a_bound_has_two_spellings(given: Any) -> None:
    assert read_bound(given) == Bound(">=", 2)


@pytest.mark.parametrize(
    "given", ["", "2", "~ 2", ">= two", ">= -1", [">="], [">=", 1, 2], [">=", "x"], None]
)
def test_other_bounds_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"operator|count"):
        read_bound(given)


@pytest.mark.parametrize(
    ("operator", "holds"),
    [
        ("=", [False, True, False]),
        ("==", [False, True, False]),
        ("!=", [True, False, True]),
        (">", [False, False, True]),
        (">=", [False, True, True]),
        ("<", [True, False, False]),
        ("<=", [True, True, False]),
    ],
)
def test_operators_hold_below_at_and_above_the_count(operator: str, holds: list[bool]) -> None:
    assert [Bound(operator, 2).holds(actual) for actual in (1, 2, 3)] == holds


def test_a_trace_without_calls_is_scored() -> None:
    outcome = count({"a": "= 0", "b": "= 1"}).evaluate(trajectory())

    assert outcome == Score(
        0.5,
        "b called 0 times, expected = 1",
        {
            "explained_tool_calls_count": {
                "a": "Actual: 0, Expected: 0, Score: 1.0",
                "b": "Actual: 0, Expected: 1, Score: 0.0",
            }
        },
    )


def test_the_reason_names_a_few_and_counts_the_rest() -> None:
    outcome = count({f"t{number}": "= 1" for number in range(7)}).evaluate(trajectory())

    assert isinstance(outcome, Score)
    assert outcome.reason.startswith("t0 called 0 times, expected = 1; t1 called")
    assert outcome.reason.endswith("; 2 more")


def test_all_is_well_in_one_sentence() -> None:
    outcome = count({"a": "= 1", "b": "<= 1"}).evaluate(trajectory(["a"]))

    assert isinstance(outcome, Score)
    assert outcome.reason == "2 of 2 counts as expected"


@pytest.mark.parametrize("bound", ["= 1", "= 0", "== 1", "!= 1", "> 0", ">= 1", "<= 1", "< 2"])
def test_an_incomplete_trace_is_skipped(bound: str) -> None:
    outcome = count({"a": bound}).evaluate(trajectory(["a"], whole=False, closed_by="idle"))

    assert isinstance(outcome, Skip)
    assert outcome.code == "incomplete"
    assert "closed by idle" in outcome.reason


@pytest.mark.parametrize(
    ("counts", "strict", "scored"),
    [
        ({"a": "< 2"}, False, True),
        ({"a": "<= 1", "b": "< 1"}, False, True),
        ({"a": "<= 1", "c": "<= 1"}, False, False),
        ({"a": "<= 1", "c": "= 1"}, False, False),
        ({"a": "<= 1", "c": "= 1"}, True, True),
    ],
)
def test_an_upper_bound_already_broken_settles_an_incomplete_trace(
    counts: dict[str, str], strict: bool, scored: bool
) -> None:
    outcome = count(counts, strict=strict).evaluate(trajectory(["a", "a", "b"], whole=False))

    assert isinstance(outcome, Score) == scored
    assert not isinstance(outcome, Score) or outcome.value == 0


def test_failed_attempts_count_unless_told_otherwise() -> None:
    calls = trajectory([call("a", error="timeout"), call("a", output={"isError": True}), call("a")])

    assert count({"a": "= 3"}).evaluate(calls).value == 1  # type: ignore[union-attr]  # a Score
    succeeded = count({"a": "= 1"}, attempts="succeeded")
    assert [outcome for _, outcome in succeeded.outcomes(calls)] == [succeeded.evaluate(calls)]
    assert succeeded.evaluate(calls).value == 1  # type: ignore[union-attr]  # a Score
