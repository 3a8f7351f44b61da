"""What holds for any spans: arrival order and repetition change nothing, and nothing hangs."""

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_eval.extract import extract, trajectories
from otel_eval.model import Span, Trajectory
from tests.extract.captures import NAMES, spans_of

IDS = st.sampled_from(["a1", "b2", "c3", "d4", "e5", "#1"])
ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        [
            "tool.name",
            "input.value",
            "output.value",
            "agent.name",
            "session.id",
            "openinference.span.kind",
            "gen_ai.operation.name",
            "gen_ai.tool.name",
            "gen_ai.agent.name",
            "gen_ai.tool.call.id",
            "gen_ai.tool.call.arguments",
            "gen_ai.input.messages",
            "gen_ai.output.messages",
            "traceloop.span.kind",
            "ai.operationId",
            "langfuse.observation.type",
            "mlflow.spanType",
            "mcp.method.name",
        ]
    ),
    st.one_of(
        st.sampled_from(
            [
                "TOOL",
                "LLM",
                "AGENT",
                "execute_tool",
                "chat",
                "invoke_agent",
                "tool",
                "task",
                "ai.toolCall",
                "generation",
                '"TOOL"',
                "tools/call",
                '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "x"}]}]',
                '{"a": [1, {"b": null}]}',
                "[1, 2",
            ]
        ),
        st.none(),
        st.integers(),
        st.text(max_size=5),
        st.lists(st.integers(), max_size=2),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    ),
    max_size=6,
)
SPANS = st.lists(
    st.builds(
        Span,
        trace_id=st.just("f" * 32),
        span_id=IDS,
        parent_id=st.none() | IDS,
        name=st.sampled_from(["", "x", "execute_tool x", "tools/call x", "execute_task a"]),
        start_ns=st.integers(0, 9),
        end_ns=st.integers(0, 9),
        attributes=ATTRIBUTES,
    ),
    max_size=12,
)


def views(spans: list[Span]) -> list[Trajectory]:
    """Every trajectory there is to see, traces sorted because a file has no order of its own."""
    found = sorted(trajectories(spans), key=lambda each: each.trace_id)
    groups = {each.trace_id: [s for s in spans if s.trace_id == each.trace_id] for each in found}
    for group in groups.values():
        extraction = extract(group)
        found += [extraction.by_agent(agent, nested=False) for agent in extraction.agents]
        found += extraction.runs()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_arrival_order_changes_nothing(name: str) -> None:
    spans = spans_of(name)
    shuffled = spans.copy()

    for seed in range(3):
        random.Random(seed).shuffle(shuffled)
        assert views(shuffled) == views(spans)


@pytest.mark.parametrize("name", NAMES)
def test_duplicates_change_nothing(name: str) -> None:
    spans = spans_of(name)

    assert views(spans + spans[::-1]) == views(spans)


@pytest.mark.parametrize("name", NAMES)
def test_a_lost_parent_loses_no_call(name: str) -> None:
    """Any span that is no tool call itself may be missing."""
    spans = spans_of(name)
    called = [call for each in trajectories(spans) for call in each.tool_calls]
    ids = {call.span_id for call in called}

    for lost in [span for span in spans if span.span_id not in ids][:40]:
        left = [span for span in spans if span is not lost]
        found = [call for each in trajectories(left) for call in each.tool_calls]
        assert sorted(call.name for call in found) == sorted(call.name for call in called)


# A machine at work elsewhere makes any example slow; a hang still ends the run.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPANS)
def test_no_span_raises_or_hangs(spans: list[Span]) -> None:
    """Parent cycles, two roots, odd values, children before their parents in time."""
    assert views(spans) == views(spans[::-1]) or len({s.span_id for s in spans}) < len(spans)


def test_ten_thousand_calls_of_one_tool_twice_instrumented_take_no_square_time() -> None:
    spans = [span for number in range(5000) for span in twice(number)]

    (found,) = trajectories(spans)

    assert len(found.tool_calls) == 5000


def twice(number: int) -> list[Span]:
    start = number * 10
    one = Span(
        trace_id="a" * 32,
        span_id=f"{number:016x}",
        name="search",
        start_ns=start,
        end_ns=start + 8,
        attributes={"tool.name": "search", "input.value": "{}"},
    )
    other = replace(
        one,
        span_id=f"{number + 10**6:016x}",
        start_ns=start + 1,
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"},
        scope=replace(one.scope, name="another"),
    )
    return [one, other]
