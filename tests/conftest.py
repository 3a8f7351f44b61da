"""Builders with dull defaults: a test says only what it is about."""

from collections.abc import Sequence
from typing import Any

from hypothesis import settings

from otel_eval.model import UNRECORDED, Anchor, Recorded, Span, ToolCall, Trajectory

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"

# A busy machine is slow now and then, which breaks no law.
settings.register_profile("laws", parent=settings.default, deadline=None)
settings.load_profile("laws")


def call(name: str = "search", arguments: Recorded = UNRECORDED, **fields: Any) -> ToolCall:
    """A tool call; arguments and output are unrecorded unless given."""
    return ToolCall(name=name, arguments=arguments, **fields)


def trajectory(calls: Sequence[str | ToolCall] = (), **fields: Any) -> Trajectory:
    """A whole trajectory of these calls, one nanosecond each, in order."""
    made = [call(each) if isinstance(each, str) else each for each in calls]
    defaults: dict[str, Any] = {
        "trace_id": TRACE_ID,
        "agent": "agent",
        "anchor": Anchor(trace_id=TRACE_ID, span_id=SPAN_ID),
    }
    return Trajectory(**{**defaults, "tool_calls": tuple(made), **fields})


def span(name: str = "work", **fields: Any) -> Span:
    """A root span that took one second."""
    defaults: dict[str, Any] = {
        "trace_id": TRACE_ID,
        "span_id": SPAN_ID,
        "start_ns": 0,
        "end_ns": 1_000_000_000,
    }
    return Span(name=name, **{**defaults, **fields})
