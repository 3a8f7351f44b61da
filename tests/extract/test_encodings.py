"""What each library makes of a value, read back: the value, or nothing; never another one."""

import re
from typing import Any

import pytest

from otel_eval.extract import trajectories
from otel_eval.extract.values import COMPACT, SPACED, value_or_text
from otel_eval.model import UNRECORDED, Scope, Span, ToolCall

ADK = "gcp.vertex.agent."
OBSERVATION = "langfuse.observation."


def only_call(scope: str, attributes: dict[str, Any], **resource: Any) -> ToolCall:
    made = Span(
        trace_id="a" * 32,
        span_id="b" * 16,
        name="search",
        scope=Scope(name=scope),
        attributes=attributes,
        resource=resource,
    )
    ((call,),) = [each.tool_calls for each in trajectories([made])]
    return call


@pytest.mark.parametrize(
    ("text", "layout", "value"),
    [
        ('{"a": 1}', SPACED, {"a": 1}),
        ('{"a":1}', COMPACT, {"a": 1}),
        ('{"a": 1}', COMPACT, '{"a": 1}'),
        ('{"a":1}', SPACED, '{"a":1}'),
        ("[1,  2]", SPACED, "[1,  2]"),
        ('{"a, b:c": "x:y,z \\" "}', SPACED, {"a, b:c": 'x:y,z " '}),
        ('{\n  "a": 1\n}', SPACED, '{\n  "a": 1\n}'),
        ('{\n  "a": 1\n}', COMPACT, '{\n  "a": 1\n}'),
        ("[]", SPACED, []),
        ("{}", COMPACT, {}),
        ("12\n", SPACED, "12\n"),
        (" true", SPACED, " true"),
        ("1e-7", COMPACT, 1e-7),
        ("1e-07", SPACED, 1e-7),
        ("1.50", SPACED, "1.50"),
        ('{"a": [1, 2', SPACED, UNRECORDED),
    ],
)
def test_json_in_another_layout_than_the_writers_is_text(
    text: str, layout: re.Pattern[str], value: Any
) -> None:
    assert value_or_text(text, layout) == value


def adk_tool(arguments: str, response: str) -> dict[str, Any]:
    return {
        "gen_ai.tool.name": "search",
        ADK + "tool_call_args": arguments,
        ADK + "tool_response": response,
    }


@pytest.mark.parametrize(
    ("arguments", "response", "expected"),
    [
        ('{"q": 1}', '{"result": 5}', ({"q": 1}, 5)),
        ('{"q": 1}', '{"result": {"a": 1}}', ({"q": 1}, {"result": {"a": 1}})),
        ('{"q": 1}', '{"result": 5, "n": 1}', ({"q": 1}, {"result": 5, "n": 1})),
        ('{"q": 1}', "{}", ({"q": 1}, {})),
        ("{}", '{"result": null}', ({}, None)),
        ("{}", "{}", (UNRECORDED, UNRECORDED)),
        ('{"q": 1}', '{"result": "<not specified>"}', ({"q": 1}, UNRECORDED)),
        ('{"q": 1}', '{"at": "<not serializable>", "n": 1}', ({"q": 1}, UNRECORDED)),
    ],
    ids=[
        "wrapped",
        "an object is never wrapped",
        "more than the wrapper",
        "an empty object",
        "no arguments and None",
        "kept out of the span",
        "no response yet",
        "a hole in the value",
    ],
)
def test_adk_wraps_what_is_no_object_and_marks_what_is_missing(
    arguments: str, response: str, expected: tuple[Any, Any]
) -> None:
    call = only_call("gcp.vertex.agent", adk_tool(arguments, response))

    assert (call.arguments, call.output) == expected


def test_adk_calls_without_an_id_yet_are_not_one_call() -> None:
    pending = {**adk_tool("{}", "{}"), "gen_ai.tool.call.id": "<not specified>"}
    spans = [
        Span(
            trace_id="a" * 32,
            span_id=f"{number:016x}",
            start_ns=number,
            end_ns=number + 1,
            scope=Scope(name="gcp.vertex.agent"),
            attributes=pending,
        )
        for number in (1, 5)
    ]

    (found,) = trajectories(spans)

    assert [call.call_id for call in found.tool_calls] == [None, None]


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('"9007199254740993"', 9007199254740993),
        ("9007199254740993", "9007199254740993"),
        ("9007199254740991", 9007199254740991),
        ('["9007199254740993"]', UNRECORDED),
        ('{"a": {"b": "-9007199254740993"}}', UNRECORDED),
        ('{"a": "12"}', {"a": "12"}),
        ('{"a":1}', '{"a":1}'),
        ("null", "null"),
    ],
)
def test_langfuse_writes_integers_beyond_javascripts_as_strings(text: str, output: Any) -> None:
    attributes = {OBSERVATION + "type": "tool", OBSERVATION + "output": text}

    call = only_call("langfuse-sdk", attributes, **{"telemetry.sdk.language": "python"})

    assert call.output == output


def test_langfuse_for_javascript_lays_json_out_without_spaces() -> None:
    attributes = {OBSERVATION + "type": "tool", OBSERVATION + "output": '{"a":1}'}

    call = only_call("langfuse-sdk", attributes, **{"telemetry.sdk.language": "nodejs"})

    assert call.output == {"a": 1}


@pytest.mark.parametrize("text", ['{"a":1}', "[1]", "{'a': 1}", "(1, 2)"])
def test_crewai_never_prints_a_list_or_an_object_as_plain_text(text: str) -> None:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "search",
        "output.value": text,
        "output.mime_type": "text/plain",
    }

    assert only_call("openinference.instrumentation.crewai", attributes).output == text


@pytest.mark.parametrize("library", ["crewai", "smolagents", "openai_agents"])
def test_json_text_that_breaks_off_is_no_text_either(library: str) -> None:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "search",
        "output.value": '{"a": 1, "b',
    }

    assert only_call(f"openinference.instrumentation.{library}", attributes).output is UNRECORDED


ASKED = (
    '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "search",'
    ' "arguments": {}}]}]'
)
ANSWERED = '[{"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": 7}]}]'


@pytest.mark.parametrize(
    ("scope", "tools", "answered", "calls"),
    [
        ("any-client", None, False, ["search"]),
        ("any-client", "search", False, ["search"]),
        ("any-client", "other", True, []),
        ("pydantic-ai", "search", True, ["search"]),
        ("pydantic-ai", "search", False, []),
        ("pydantic-ai", "other", True, []),
        ("pydantic-ai", None, True, []),
    ],
    ids=[
        "a client does not run the tools",
        "offered",
        "made up",
        "run, and its span lost",
        "a structured output",
        "made up and told so",
        "perhaps made up",
    ],
)
def test_only_what_was_run_is_recovered(
    scope: str, tools: str | None, answered: bool, calls: list[str]
) -> None:
    offered = {} if tools is None else {"gen_ai.tool.definitions": f'[{{"name": "{tools}"}}]'}
    chat = {"gen_ai.operation.name": "chat"}
    spans = [
        model_span(1, scope, {**chat, **offered, "gen_ai.output.messages": ASKED}),
        model_span(2, scope, {**chat, "gen_ai.input.messages": ANSWERED if answered else "[]"}),
    ]

    (found,) = trajectories(spans)

    assert [call.name for call in found.tool_calls] == calls


def model_span(number: int, scope: str, attributes: dict[str, Any]) -> Span:
    return Span(
        trace_id="a" * 32,
        span_id=f"{number:016x}",
        start_ns=number * 10,
        end_ns=number * 10 + 5,
        scope=Scope(name=scope),
        attributes=attributes,
    )


@pytest.mark.parametrize("depth", [900, 1020, 5000])
def test_what_is_nested_without_end_never_raises(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    attributes = {
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": deep,
        "gen_ai.tool.call.result": deep,
    }
    asked = ASKED.replace("{}", deep)

    spans = [
        model_span(1, "one", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked}),
        model_span(2, "one", attributes),
        model_span(2, "other", attributes),
    ]

    assert trajectories(spans)[0].tool_calls[0].arguments == deep
