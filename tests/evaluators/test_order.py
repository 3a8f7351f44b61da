"""tool-call-order beyond the seeds: groups in any order, strictness, reasons."""

from typing import Any

import pytest

from otel_eval.evaluators.order import ToolCallOrder
from otel_eval.model import Score, Skip
from tests.conftest import call, trajectory


def judged(order: list[Any], calls: str, **fields: Any) -> Score:
    outcome = ToolCallOrder(tool_calls_order=order, **fields).evaluate(trajectory(list(calls)))
    assert isinstance(outcome, Score)
    return outcome


@pytest.mark.parametrize(
    ("order", "calls", "value", "lcs"),
    [
        (["a", ["b", "c"], "d"], "abcd", 1.0, "abcd"),
        (["a", ["b", "c"], "d"], "acbd", 1.0, "acbd"),
        (["a", ["b", "c"], "d"], "axcxbxd", 1.0, "acbd"),
        (["a", ["b", "c"], "d"], "adbc", 0.75, "abc"),
        ([["a", "b"], ["c", "d"]], "dcba", 0.5, "dc"),
        ([["a", "a", "b"]], "aba", 1.0, "aba"),
        ([["a", "a", "b"]], "ab", 2 / 3, "ab"),
        ([["a", "b"], "a"], "aba", 1.0, "aba"),
        ([["a"], ["b"]], "ba", 0.5, None),
        ([["x", "y"]], "ab", 0.0, ""),
        ([["x", "y"]], "", 0.0, ""),
    ],
)
def test_the_tools_of_a_group_come_in_any_order(
    order: list[Any], calls: str, value: float, lcs: str | None
) -> None:
    outcome = judged(order, calls)

    assert outcome.value == pytest.approx(value)
    assert outcome.details["expected_tool_calls_order"] == order
    assert lcs is None or outcome.details["lcs"] == list(lcs)


@pytest.mark.parametrize(
    ("order", "calls", "value"),
    [
        (["a", ["b", "c"]], "acb", 1.0),
        (["a", ["b", "c"]], "acbx", 0.0),
        (["a", ["b", "c"]], "cab", 0.0),
        (["a", "b"], "ab", 1.0),
        (["a", "b"], "abb", 0.0),
        (["a", "b"], "", 0.0),
    ],
)
def test_strict_wants_equal_sequences(order: list[Any], calls: str, value: float) -> None:
    assert judged(order, calls, strict=True).value == value


@pytest.mark.parametrize(
    ("order", "calls", "strict", "reason"),
    [
        (["a"], "a", False, "1 of 1 expected call in order"),
        (
            ["a"],
            "",
            False,
            "0 of 1 expected call in order, missing or out of place: a (position 1)",
        ),
        (["a", "b"], "axb", False, "2 of 2 expected calls in order"),
        (["a", "b"], "axb", True, "1 call more than the expected 2"),
        (
            ["a", "b", "c"],
            "ac",
            True,
            "2 of 3 expected calls in order, missing or out of place: b (position 2)",
        ),
        (
            ["a", ["b", "c"]],
            "a",
            False,
            "1 of 3 expected calls in order, missing or out of place: "
            "b (position 2), c (position 3)",
        ),
        (
            list("abcdefg"),
            "",
            False,
            "0 of 7 expected calls in order, missing or out of place: a (position 1), "
            "b (position 2), c (position 3), d (position 4), e (position 5), 2 more",
        ),
    ],
)
def test_the_reason_names_positions(
    order: list[Any], calls: str, strict: bool, reason: str
) -> None:
    assert judged(order, calls, strict=strict).reason == reason


def test_an_incomplete_trace_is_skipped() -> None:
    outcome = ToolCallOrder(tool_calls_order=["a"]).evaluate(trajectory(["a"], whole=False))

    assert isinstance(outcome, Skip)
    assert outcome.code == "incomplete"


def test_a_failed_attempt_can_be_left_out() -> None:
    calls = trajectory([call("a", error="timeout"), call("a"), call("b")])
    evaluator = ToolCallOrder(tool_calls_order=["a", "b"], strict=True, attempts="succeeded")

    outcome = evaluator.evaluate(calls)

    assert isinstance(outcome, Score)
    assert outcome.value == 1
