"""Content that a span lost is unrecorded or still right by another way, never something else."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from otel_eval.extract import trajectories
from otel_eval.model import Event, Json, Span, ToolCall
from tests.extract.captures import NAMES, same, spans_of, truth_of

CONTENT = re.compile(
    r"(input|output)\.value|gen_ai\.(input|output)\.messages|gen_ai\.tool\.call\.(arguments|result)"
    r"|gen_ai\.system_instructions|tool_arguments|tool_response|traceloop\.entity\.(input|output)"
    r"|ai\.toolCall\.(args|result)|ai\.(prompt|response)\..*|ai\.prompt"
    r"|langfuse\.observation\.(input|output)|mlflow\.span(Inputs|Outputs)"
    r"|gcp\.vertex\.agent\.(tool_call_args|tool_response|llm_request|llm_response)"
    r"|llm\.(input|output)_messages\..*|pydantic_ai\.all_messages|all_messages_events|events"
    r"|final_result|metadata|tool\.parameters|gen_ai\.tool\.definitions|content|message"
)

MESSAGES = re.compile(
    r"gen_ai\.(input|output)\.messages|ai\.prompt\.messages|pydantic_ai\.all_messages"
    r"|all_messages_events|events"
)

# pydantic-ai writes texts raw and all else as JSON: for a text that looks like JSON only a message
# that keeps the type can tell, for openai-agents only one that shows the model another text, and
# these mutants take the message away.
TOLD_BY_MESSAGES = {
    "openai_agents_chat_openinference_odd",
    "pydantic_ai1_v1_odd",
    "pydantic_ai2_v2_odd",
}
MUTABLE = [name for name in NAMES if name not in TOLD_BY_MESSAGES]

Mutant = Callable[[Span], Span]


def keys_of(spans: Sequence[Span]) -> list[str]:
    found = {key for span in spans for key in span.attributes}
    found |= {key for span in spans for event in span.events for key in event.attributes}
    return sorted(key for key in found if CONTENT.fullmatch(key))


def without(key: str) -> Mutant:
    return lambda span: replace(
        span,
        attributes={k: v for k, v in span.attributes.items() if k != key},
        events=[_event_without(event, key) for event in span.events],
    )


def _event_without(event: Event, key: str) -> Event:
    return replace(event, attributes={k: v for k, v in event.attributes.items() if k != key})


def cut(key: str, share: float) -> Mutant:
    """As an SDK's length limit does it; only structured text shows that it was cut."""
    return lambda span: replace(
        span,
        attributes={
            k: _cut(v, share) if k == key and _is_structured(v) else v
            for k, v in span.attributes.items()
        },
    )


def _cut(text: str, share: float) -> str:
    return text[: max(2, int(len(text) * share))]


def _is_structured(raw: Json) -> bool:
    if not isinstance(raw, str) or not raw.startswith(("{", "[")) or len(raw) < 5:
        return False
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def without_message(key: str, place: int) -> Mutant:
    """One message of a recorded list is gone."""
    return lambda span: replace(
        span,
        attributes={k: _dropped(v, place) if k == key else v for k, v in span.attributes.items()},
    )


def _dropped(raw: Json, place: int) -> Json:
    try:
        messages = json.loads(raw)
    except (TypeError, ValueError):
        return raw
    if not isinstance(messages, list) or len(messages) <= place:
        return raw
    return json.dumps(messages[:place] + messages[place + 1 :])


@cache
def truths(name: str) -> dict[str, dict[str, Any]]:
    """The true call of each tool span: without its message, a call's place among others is lost."""
    found = {each.trace_id: each for each in trajectories(spans_of(name))}
    return {
        call.span_id or "": true
        for trace in truth_of(name)["traces"]
        for call, true in zip(found[trace["trace_id"]].tool_calls, trace["tool_calls"], strict=True)
    }


def check(name: str, spans: list[Span], what: str) -> None:
    expected = truths(name)
    calls = [call for each in trajectories(spans) for call in each.tool_calls]

    assert sorted(call.span_id or "" for call in calls) == sorted(expected), what
    for call in calls:
        assert_no_lie(call, expected[call.span_id or ""], what)


def assert_no_lie(call: ToolCall, true: dict[str, Any], what: str) -> None:
    assert same(call.arguments, true["arguments"]), (what, call.name, call.arguments)
    if not true["error"]:
        assert same(call.output, true["output"]), (what, call.name, call.output)


@pytest.mark.parametrize("name", MUTABLE)
def test_content_stripped_everywhere(name: str) -> None:
    spans = spans_of(name)

    for key in keys_of(spans):
        check(name, [without(key)(span) for span in spans], f"without {key}")


@pytest.mark.parametrize("name", MUTABLE)
def test_content_stripped_from_one_span(name: str) -> None:
    spans = spans_of(name)

    for place, span in enumerate(spans[:30]):
        for key in keys_of([span])[:8]:
            mutated = [*spans[:place], without(key)(span), *spans[place + 1 :]]
            check(name, mutated, f"without {key} of {span.name}")


@pytest.mark.parametrize("name", NAMES)
def test_events_stripped(name: str) -> None:
    spans = spans_of(name)

    check(name, [replace(span, events=()) for span in spans], "without events")


@pytest.mark.parametrize("name", MUTABLE)
def test_messages_stripped_one_by_one(name: str) -> None:
    spans = spans_of(name)

    for key in filter(MESSAGES.fullmatch, keys_of(spans)):
        for place in range(4):
            mutated = [without_message(key, place)(span) for span in spans]
            check(name, mutated, f"{key} without message {place}")


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("name", MUTABLE)
def test_content_cut_off(name: str, share: float) -> None:
    spans = spans_of(name)

    for key in keys_of(spans):
        check(name, [cut(key, share)(span) for span in spans], f"{key} cut at {share}")


ODD = [
    5,
    None,
    True,
    [1],
    {"x": [None]},
    "",
    "5",
    "null",
    "[5]",
    "{}",
    '{"messages": 5, "inputs": 5, "contents": 5, "content": 5, "config": 5, "choices": [5]}',
    '{"kwargs": 5, "args": 5, "data": 5, "output": {"lc": 1, "kwargs": {}}, "input_str": 5}',
    '[{"role": 5, "parts": 5, "content": [5, {"type": "tool_call"}, {"toolUse": 5}], "id": []}]',
    '[{"role": "tool", "tool_calls": [5, {"function": 5, "id": {}}], "tool_call_id": 7}]',
    '[{"parts": [{"type": "tool_call", "id": {}, "name": []}, {"type": "tool_call_response"}]}]',
    '{"function_declarations": [5, {"name": {}}], "tools": [5], "toolSpec": 5}',
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_values_never_raise(odd: Json) -> None:
    """Whatever a library writes where something else is expected; one capture of each dialect."""
    for name in NAMES[::5]:
        spans = spans_of(name)[:25]
        for key in sorted({key for span in spans for key in span.attributes}):
            trajectories([_with(span, key, odd) for span in spans])


def _with(span: Span, key: str, value: Json) -> Span:
    if key not in span.attributes:
        return span
    return replace(span, attributes={**span.attributes, key: value})
