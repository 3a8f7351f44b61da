"""How much memory what is held takes, near enough to keep a buffer in its bounds.

The size on the wire would not do: small attributes take several times as much here.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from sys import getsizeof
from typing import Final

from otel_eval.model import Attributes, Json, Span, Trajectory

SPAN_BYTES: Final = 800
"""A span without attributes, its ids, and its place in the group."""
RECORD_BYTES: Final = 300
"""Any smaller record: an event, a link, a tool call, a message."""

ALIKE_BYTES: Final = 4096
"""Spans of a request that weigh no more than this on average are taken for equally heavy."""

KEY_BYTES: Final = 72
_FLAT: Final = frozenset({str, int, float, bool, type(None)})


def weights(spans: Sequence[Span], total: int = 0) -> Iterable[int]:
    """What each span weighs. `total`: of all of them, where it is known.

    To weigh small spans one by one would take a sixth of the time that it takes to decode them.
    """
    if 0 < total <= ALIKE_BYTES * len(spans):
        return repeat(total // len(spans), len(spans))
    return map(span_bytes, spans)


def span_bytes(span: Span) -> int:
    """Without resource and scope, which the spans of a request share."""
    total = SPAN_BYTES + attribute_bytes(span.attributes)
    for event in span.events:
        total += RECORD_BYTES + attribute_bytes(event.attributes)
    for link in span.links:
        total += RECORD_BYTES + attribute_bytes(link.attributes)
    return total


def attribute_bytes(attributes: Attributes) -> int:
    """Nearly all attributes are flat, and this runs for every span."""
    values = attributes.values()
    total = getsizeof(attributes) + KEY_BYTES * len(attributes) + sum(map(getsizeof, values))
    if not _FLAT.issuperset(map(type, values)):
        total += sum(json_bytes(value) for value in values if type(value) not in _FLAT)
    return total


def trajectory_bytes(trajectory: Trajectory) -> int:
    """What a session keeps of a trace."""
    calls, messages = trajectory.tool_calls, trajectory.messages
    tools = trajectory.available_tools
    records = len(calls) + len(messages) + len(tools) + len(trajectory.model_calls)
    contents = [each for call in calls for each in (call.arguments, call.output)]
    contents += [message.content for message in messages]
    contents += [tool.parameters for tool in tools]
    anchor = attribute_bytes(trajectory.anchor.attributes) if trajectory.anchor else 0
    return SPAN_BYTES + anchor + RECORD_BYTES * records + json_bytes(contents)


def json_bytes(value: Json) -> int:
    """Without recursion: how deep a value is nested is the sender's choice."""
    total, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        total += getsizeof(each)
        if isinstance(each, dict):
            waiting.extend(each)
            waiting.extend(each.values())
        elif isinstance(each, (list, tuple)):
            waiting.extend(each)
    return total
