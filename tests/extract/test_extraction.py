"""The rules of DESIGN about whose calls are whose, on spans written by hand."""

import time
from collections.abc import Mapping
from typing import Any

import pytest

from otel_eval.extract import Keys, extract, join, trajectories
from otel_eval.model import UNRECORDED, Event, Scope, Span, Status
from tests.extract.captures import NAMES, spans_of

TRACE = "a" * 32


def span(
    number: int,
    attributes: Mapping[str, Any] | None = None,
    *,
    parent: int | None = None,
    start: int | None = None,
    end: int | None = None,
    scope: str = "mine",
    **more: Any,
) -> Span:
    return Span(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        start_ns=number * 10 if start is None else start,
        end_ns=number * 10 + 5 if end is None else end,
        attributes=attributes or {},
        scope=Scope(name=scope),
        **more,
    )


def tool(name: str = "search", **more: Any) -> dict[str, Any]:
    return {"tool.name": name, "input.value": "{}", "output.value": '"ok"', **more}


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"openinference.span.kind": "AGENT", "agent.name": name, **more}


def genai_tool(name: str = "search", **more: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}


def names(spans: list[Span]) -> list[str]:
    return [call.name for each in trajectories(spans) for call in each.tool_calls]


def test_a_wrapper_of_another_library_is_the_same_call() -> None:
    outer = span(1, genai_tool(), end=99, scope="one")
    inner = span(2, tool(), parent=1, scope="two")

    (found,) = trajectories([outer, inner])

    (call,) = found.tool_calls
    assert (call.span_id, call.output) == (outer.span_id, "ok")


def test_the_same_library_nested_is_recursion() -> None:
    assert names([span(1, tool(), end=99), span(2, tool(), parent=1)]) == ["search", "search"]


def test_two_instrumentations_side_by_side_are_one_call() -> None:
    one = span(1, tool(), start=10, end=20, scope="one")
    two = span(2, tool(), start=11, end=19, scope="two")

    assert names([one, two]) == ["search"]


def test_a_retry_with_equal_arguments_is_two_calls() -> None:
    one = span(1, tool(), scope="one")
    two = span(2, tool(), scope="two")

    assert names([one, two]) == ["search", "search"]


def test_client_and_server_of_one_request_are_one_call() -> None:
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search"}
    client = span(1, attributes, end=99, kind="client")
    server = span(2, attributes, parent=1, kind="server")

    assert names([client, server]) == ["search"]


def test_the_same_call_id_is_the_same_call_wherever_it_is() -> None:
    one = span(1, genai_tool(**{"gen_ai.tool.call.id": "c1"}), scope="one")
    two = span(9, genai_tool(**{"gen_ai.tool.call.id": "c1"}), scope="one")

    assert names([one, two]) == ["search"]


def test_a_synthesized_tool_is_no_call() -> None:
    assert names([span(1, agent("a")), span(2, tool(**{"tool.synthesized": True}))]) == []


def test_a_child_that_starts_before_its_parent_is_ordered_by_its_own_start() -> None:
    spans = [
        span(5, agent("a"), start=50),
        span(6, tool("first"), parent=5, start=10),
        span(7, tool("second"), parent=5, start=20),
    ]

    assert names(spans) == ["first", "second"]


def test_calls_that_start_together_come_in_the_models_order() -> None:
    asked = (
        '[{"role": "assistant", "parts": ['
        '{"type": "tool_call", "id": "c2", "name": "b", "arguments": {}},'
        '{"type": "tool_call", "id": "c1", "name": "a", "arguments": {}}]}]'
    )
    model = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked}
    spans = [
        span(1, model),
        span(2, genai_tool("a", **{"gen_ai.tool.call.id": "c1"}), start=50),
        span(3, genai_tool("b", **{"gen_ai.tool.call.id": "c2"}), start=50),
    ]

    assert names(spans) == ["b", "a"]


def test_calls_without_a_span_are_recovered_from_what_the_model_put_out() -> None:
    asked = (
        '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "a",'
        ' "arguments": {"x": 1}}]}]'
    )
    answered = (
        '[{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": 7}]}]'
    )
    spans = [
        span(1, {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked}),
        span(2, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": answered}),
    ]

    (found,) = trajectories(spans)

    (call,) = found.tool_calls
    assert (call.name, call.arguments, call.output) == ("a", {"x": 1}, 7)


def test_history_is_not_taken_for_calls() -> None:
    history = (
        '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "a",'
        ' "arguments": {}}]}]'
    )

    assert (
        names([span(1, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": history})]) == []
    )


def test_an_agent_with_a_tool_span_gets_no_calls_from_messages() -> None:
    asked = (
        '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c9", "name": "ghost",'
        ' "arguments": {}}]}]'
    )
    spans = [
        span(1, agent("a"), end=99),
        span(2, {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked}, parent=1),
        span(3, tool(), parent=1),
    ]

    assert names(spans) == ["search"]


def two_agents() -> list[Span]:
    return [
        span(1, agent("boss", **{"session.id": "s1"}), end=99),
        span(2, tool("plan"), parent=1),
        span(3, agent("helper"), parent=1, end=60),
        span(4, tool("dig"), parent=3),
        span(7, agent("helper"), parent=1, end=90),
        span(8, tool("fill"), parent=7),
    ]


def test_the_whole_trace_belongs_to_the_outermost_agent() -> None:
    (found,) = trajectories(two_agents())

    assert (found.agent, found.session) == ("boss", "s1")
    assert [(call.name, call.agent) for call in found.tool_calls] == [
        ("plan", "boss"),
        ("dig", "helper"),
        ("fill", "helper"),
    ]


@pytest.mark.parametrize(
    ("name", "nested", "expected"),
    [
        ("boss", True, ["plan", "dig", "fill"]),
        ("boss", False, ["plan"]),
        ("helper", True, ["dig", "fill"]),
    ],
)
def test_an_agents_trajectory_holds_its_sub_agents_unless_told_otherwise(
    name: str, nested: bool, expected: list[str]
) -> None:
    found = extract(two_agents()).by_agent(name, nested=nested)

    assert [call.name for call in found.tool_calls] == expected
    assert found.session == "s1"


def test_runs_are_one_per_outermost_span_of_the_agent() -> None:
    runs = extract(two_agents()).runs("helper")

    assert [[call.name for call in run.tool_calls] for run in runs] == [["dig"], ["fill"]]
    assert [run.anchor.span_id[-1] for run in runs if run.anchor] == ["3", "7"]


def test_agents_that_spans_only_name_have_trajectories_too() -> None:
    spans = [
        span(1, {}),
        span(2, genai_tool("dig", **{"gen_ai.agent.name": "one"}), parent=1),
        span(3, genai_tool("fill", **{"gen_ai.agent.name": "two"}), parent=1),
    ]

    extraction = extract(spans)

    assert extraction.agents == ["one", "two"]
    assert [call.name for call in extraction.by_agent("two").tool_calls] == ["fill"]


def test_the_agent_falls_back_to_the_service() -> None:
    (found,) = trajectories([span(1, tool(), resource={"service.name": "shop"})])

    assert (found.agent, found.service) == ("shop", "shop")


def test_extra_keys_are_tried_first() -> None:
    spans = [span(1, agent("a", my_agent="b", my_session="s9"), end=99), span(2, tool(), parent=1)]

    found = extract(spans, keys=Keys(agent=["my_agent"], session=["my_session"])).trace

    assert (found.agent, found.session) == ("b", "s9")


def test_a_trace_without_agent_model_or_tool_is_no_agent_trace() -> None:
    http = span(1, {"http.request.method": "GET"}, kind="server")

    assert not extract([http]).is_agent_trace
    assert trajectories([http]) == []


@pytest.mark.parametrize(
    ("attributes", "status", "error"),
    [
        ({}, Status(code="error", message="boom"), "boom"),
        ({"error.type": "Timeout"}, Status(), "Timeout"),
        ({"gen_ai.tool.status": "error"}, Status(), "error"),
        ({"langfuse.observation.level": "ERROR"}, Status(), "error"),
        ({"output.value": '{"isError": true, "content": []}'}, Status(), "the result says isError"),
    ],
    ids=["status", "error.type", "tool status", "level", "isError"],
)
def test_errors_are_seen_wherever_they_are_written(
    attributes: dict[str, Any], status: Status, error: str
) -> None:
    (found,) = trajectories([span(1, tool(**attributes), status=status)])

    assert found.tool_calls[0].error == error


def test_the_error_text_is_not_the_output() -> None:
    failed = span(1, tool(**{"output.value": "boom"}), status=Status(code="error", message="boom"))

    (found,) = trajectories([failed])

    assert found.tool_calls[0].output is UNRECORDED


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{'a': (1, None)}", {"a": [1, None]}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": [1, {"b": "x', UNRECORDED),
        ("{'a': [1, 'x", UNRECORDED),
        ("plain words", "plain words"),
        ("12345678901234567890123", 12345678901234567890123),
        ({"kv": [1]}, {"kv": [1]}),
    ],
    ids=["json", "python", "twice", "cut json", "cut python", "text", "big", "kvlist"],
)
def test_values_are_read_as_they_were_meant(text: Any, value: Any) -> None:
    (found,) = trajectories([span(1, {"tool.name": "t", "output.value": text})])

    assert found.tool_calls[0].output == value


@pytest.mark.parametrize("key", ["gen_ai.tool.call.arguments", "tool_arguments"])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": null}', {"a": None}),
        ("{'a': None}", {"a": None}),
        ('"{\\"a\\": null}"', {"a": None}),
        ("", {}),
        ("'a'", "'a'"),
        ('{"a": [1, {"b": "x', UNRECORDED),
    ],
    ids=["json", "python", "twice", "none", "text", "cut json"],
)
def test_arguments_are_an_object_wherever_they_can_be(key: str, text: str, value: Any) -> None:
    (found,) = trajectories([span(1, {"gen_ai.tool.name": "t", key: text})])

    assert found.tool_calls[0].arguments == value


def test_a_content_wrapper_stays_in_the_record() -> None:
    (found,) = trajectories([span(1, tool(**{"output.value": '{"content": {"a": 1}}'}))])

    assert found.tool_calls[0].output == {"content": {"a": 1}}


def test_no_arguments_none_and_unrecorded_are_three_things() -> None:
    spans = [
        span(1, {"tool.name": "a", "input.value": "{}"}),
        span(2, {"tool.name": "b", "input.value": "null"}),
        span(3, {"tool.name": "c"}),
    ]

    (found,) = trajectories(spans)

    assert [call.arguments for call in found.tool_calls] == [{}, None, UNRECORDED]


def test_parent_cycles_and_two_roots_do_no_harm() -> None:
    cycle = [span(1, agent("a"), parent=2), span(2, tool(), parent=1)]
    roots = [span(3, agent("b")), span(4, tool("other"))]

    assert sorted(names(cycle + roots)) == ["other", "search"]


def test_a_session_joins_its_traces_in_time() -> None:
    first, second = (extract(two_agents()).trace for _ in range(2))

    joined = join([first, second], closed_by="idle")

    assert (joined.per, len(joined.tool_calls), joined.closed_by) == ("session", 6, "idle")


@pytest.mark.parametrize("name", NAMES)
def test_agents_and_runs_together_have_every_call_of_the_trace(name: str) -> None:
    groups: dict[str, list[Span]] = {}
    for each in spans_of(name):
        groups.setdefault(each.trace_id, []).append(each)

    for spans in groups.values():
        extraction = extract(spans)
        every = {call.span_id for call in extraction.trace.tool_calls}
        by_agent = [extraction.by_agent(each) for each in extraction.agents]
        runs = [run for each in extraction.agents for run in extraction.runs(each)]
        for found in (by_agent, runs):
            assert {
                call.span_id for each in found for call in each.tool_calls
            } == every or not found


def test_a_tool_span_beside_its_agents_span_is_the_agents() -> None:
    spans = [
        span(1, {}),
        span(2, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}, parent=1),
        span(3, genai_tool(), parent=1),
    ]

    extraction = extract(spans)

    assert [call.name for call in extraction.by_agent("a").tool_calls] == ["search"]
    assert [call.name for call in extraction.runs("a")[0].tool_calls] == ["search"]


@pytest.mark.parametrize(
    "attributes",
    [
        tool(**{"traceloop.workflow.name": "w"}),
        tool(**{"traceloop.workflow.name": "w", "openinference.span.kind": "TOOL"}),
        genai_tool(**{"openinference.span.kind": "TOOL"}),
        tool(**{"langfuse.observation.type": "span"}),
        genai_tool(**{"langfuse.observation.type": "span"}),
        tool(**{"mlflow.spanType": '"UNKNOWN"'}),
        tool(**{"openinference.span.kind": "CHAIN"}),
        tool(**{"mcp.method.name": "tools/call"}),
        tool(**{"gen_ai.system": "openai"}),
    ],
    ids=lambda attributes: "+".join(attributes),
)
def test_a_tool_span_is_seen_under_attributes_of_other_libraries(
    attributes: dict[str, Any],
) -> None:
    assert names([span(1, attributes)]) == ["search"]


def test_a_recorded_exception_is_an_error_unless_the_span_went_well() -> None:
    event = Event(name="exception", attributes={"exception.message": "boom"})
    spans = [
        span(1, tool(), events=[event]),
        span(2, tool(), events=[event], status=Status(code="ok")),
    ]

    (found,) = trajectories(spans)

    assert [call.error for call in found.tool_calls] == ["boom", None]


def test_a_handoff_is_not_recovered_as_a_call() -> None:
    model = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "transfer_to_b",
    }
    spans = [
        span(1, agent("triage"), end=99),
        span(2, model, parent=1),
        span(3, {"openinference.span.kind": "TOOL"}, parent=1, name="handoff to b"),
    ]

    assert names(spans) == []


@pytest.mark.parametrize("text", ["null", "true", '{"a": 1}', '"q"', "NaN", "1.50", "...", "007"])
def test_semantic_kernel_writes_str_so_other_spellings_are_text(text: str) -> None:
    attributes = genai_tool(**{"gen_ai.tool.call.result": text})

    (found,) = trajectories([span(1, attributes, scope="semantic_kernel.functions")])

    assert found.tool_calls[0].output == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("None", None), ("True", True), ("[1, 'a']", [1, "a"]), ("2.5", 2.5), ("words", "words")],
)
def test_semantic_kernel_values_are_read_back(text: str, value: Any) -> None:
    attributes = genai_tool(**{"gen_ai.tool.call.result": text})

    (found,) = trajectories([span(1, attributes, scope="semantic_kernel.functions")])

    assert found.tool_calls[0].output == value


@pytest.mark.parametrize("text", ["0012", "1.50", "nan", "inf", " 5 ", "+5", "１２", "1_0"])
def test_crewai_text_that_is_no_printed_number_stays_text(text: str) -> None:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "t",
        "output.value": text,
        "output.mime_type": "text/plain",
    }

    (found,) = trajectories([span(1, attributes, scope="openinference.instrumentation.crewai")])

    assert found.tool_calls[0].output == text


@pytest.mark.parametrize(("text", "value"), [("12", UNRECORDED), ("fine", "fine"), ("[1]", [1])])
def test_a_message_fills_an_output_only_where_its_text_is_not_in_doubt(
    text: str, value: Any
) -> None:
    model = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "tool",
        "llm.input_messages.0.message.tool_call_id": "c1",
        "llm.input_messages.0.message.content": text,
    }
    call = {"openinference.span.kind": "TOOL", "tool.name": "t", "tool_call.id": "c1"}

    (found,) = trajectories([span(1, call), span(2, model)])

    assert found.tool_calls[0].output == value


def test_calls_side_by_side_with_other_arguments_are_two() -> None:
    one = span(1, tool(**{"input.value": '{"q": 1}'}), start=10, end=20, scope="one")
    two = span(2, tool(**{"input.value": '{"q": 2}'}), start=11, end=19, scope="two")
    later = span(3, tool(**{"input.value": '{"q": 1}'}), start=20, end=30, scope="two")

    assert names([one, two, later]) == ["search"] * 3


@pytest.mark.parametrize("others", [0, 1, 3000], ids=["one library", "one twice", "most twice"])
def test_thousands_of_calls_at_once_are_read_in_a_moment(others: int) -> None:
    spans = [span(number, tool(), start=0, end=10**9) for number in range(1, 4000)]
    spans += [span(9000 + number, tool(), scope="other", start=1) for number in range(others)]
    started = time.process_time()

    (found,) = trajectories(spans)

    assert len(found.tool_calls) == 3999
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "attributes",
    [
        {"openinference.span.kind": "LLM", "llm.token_count.prompt": float("nan")},
        {"openinference.span.kind": "LLM", "llm.token_count.prompt": float("inf")},
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "t",
            "input.value": '{"args":5,"kwargs":5}',
        },
        {"gen_ai.prompt.0.role": 5, "gen_ai.completion.0.tool_calls.0.name": None},
    ],
)
@pytest.mark.parametrize("scope", ["openinference.instrumentation.smolagents", "other"])
def test_odd_content_never_raises(attributes: dict[str, Any], scope: str) -> None:
    assert extract([span(1, attributes, scope=scope)]).trace.tool_calls is not None


@pytest.mark.parametrize("messages", ['["a"]', "5", '[{"parts": 5}]'])
def test_odd_messages_on_a_tool_span_never_raise(messages: str) -> None:
    name = "gen_ai.client.inference.operation.details"
    event = Event(name=name, attributes={"gen_ai.output.messages": messages})

    assert names([span(1, genai_tool(), events=[event])]) == ["search"]


def test_an_agents_own_work_leaves_out_its_sub_agents_model_calls() -> None:
    model = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 7}
    spans = [*two_agents(), span(5, model, parent=3), span(9, model, parent=1)]

    found = extract(spans).by_agent("boss", nested=False)

    assert len(found.model_calls) == 1


def test_where_all_spans_are_each_others_parents_the_first_is_the_anchor() -> None:
    found = extract([span(1, agent("a"), parent=2), span(2, tool(), parent=1)]).trace

    assert (found.trace_id, found.anchor is not None) == (TRACE, True)


def test_openllmetrys_older_messages_give_calls() -> None:
    model = {
        "gen_ai.system": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "How is it?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "search",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"q": 1}',
        "llm.request.functions.0.name": "search",
    }

    (found,) = trajectories([span(1, model)])

    assert [(call.name, call.arguments) for call in found.tool_calls] == [("search", {"q": 1})]
    assert (found.input, [tool.name for tool in found.available_tools]) == (
        "How is it?",
        ["search"],
    )
