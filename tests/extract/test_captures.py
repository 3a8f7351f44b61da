"""Spans recorded from real frameworks, against what their tools really did."""

from typing import Any

import pytest

from otel_eval.extract import trajectories
from otel_eval.model import UNRECORDED, ToolCall, Trajectory
from tests.extract.captures import NAMES, same, spans_of, truth_of


def recorded(calls: list[ToolCall], field: str) -> int:
    return sum(getattr(call, field) is not UNRECORDED for call in calls)


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_gives_the_tool_calls_that_were_made(name: str) -> None:
    truth = truth_of(name)
    found = {each.trace_id: each for each in trajectories(spans_of(name))}

    for trace in truth["traces"]:
        _check(found[trace["trace_id"]], trace)
    calls = [call for trace in truth["traces"] for call in found[trace["trace_id"]].tool_calls]
    recoverable = truth["recoverable"]
    assert recorded(calls, "arguments") >= _count(recoverable["args_in_trace"])
    succeeded = [call for call in calls if call.error is None]
    assert recorded(succeeded, "output") >= _count(recoverable["output_in_trace"])


def test_traces_without_tool_calls_stay_empty() -> None:
    for name in NAMES:
        expected = {trace["trace_id"] for trace in truth_of(name)["traces"]}
        for each in trajectories(spans_of(name)):
            assert each.trace_id in expected or not each.tool_calls, name


def _check(found: Trajectory, trace: dict[str, Any]) -> None:
    expected = trace["tool_calls"]
    assert [call.name for call in found.tool_calls] == [call["name"] for call in expected]
    if trace["agent"] is not None:
        assert found.agent == trace["agent"]
    if trace["session"] is not None:
        assert found.session == trace["session"]
    for call, true in zip(found.tool_calls, expected, strict=True):
        assert same(call.arguments, true["arguments"]), (call.name, call.arguments)
        assert (call.error is not None) == bool(true["error"]), (call.name, call.error)
        if not true["error"]:
            assert same(call.output, true["output"]), (call.name, call.output)
        if true.get("agent"):
            assert call.agent == true["agent"]


def _count(share: str) -> int:
    return int(share.split("/")[0])
