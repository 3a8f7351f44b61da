"""OpenInference (Arize): `openinference.span.kind`, `input.value`, `output.value`, `llm.*`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from otel_eval.extract.common import first, model_call, number, parsed, text, tool_definitions
from otel_eval.extract.dialect import Content, Reading, ToolReading, Turn
from otel_eval.extract.errors import error_of
from otel_eval.extract.genai import MERGED
from otel_eval.extract.messages import Answer, as_text, dispatched, turn, turns
from otel_eval.extract.values import (
    SPACED,
    json_value,
    stringified,
    text_value,
    value,
    value_or_text,
)
from otel_eval.model import UNRECORDED, Json, Recorded, Span, Tool

_SCOPE = "openinference.instrumentation."
_MESSAGE = re.compile(r"llm\.(input|output)_messages\.([0-9]{1,9})\.message\.(.+)")
_CALL = re.compile(r"tool_calls\.([0-9]{1,9})\.tool_call\.(?:function\.)?(id|name|arguments)")
_CONTENT = re.compile(r"contents\.([0-9]{1,9})\.message_content\.(type|text)")
_LLAMA_AGENT = re.compile(r"current_agent_name='([^']+)'")
_SIDES = {side: (f"{side}.value", f"{side}.mime_type") for side in ("input", "output")}
_RUN_SUFFIXES = (".run", "._execute_core", ".kickoff")


class OpenInference:
    """One convention, written by many instrumentors that each encode values their own way."""

    id = "openinference"

    def reads(self, span: Span) -> bool:
        return "openinference.span.kind" in span.attributes

    def read(self, span: Span) -> Reading:
        library = span.scope.name.removeprefix(_SCOPE)
        attributes = span.attributes
        reading = Reading()
        if "agent.name" in attributes:
            reading.agent = text(attributes["agent.name"])
        match attributes["openinference.span.kind"]:
            case "TOOL":
                reading.tool = _tool(span, library)
                reading.no_call = reading.tool is None
            case "LLM":
                model = text(attributes.get("llm.model_name"))
                reading.model = model_call(span, model, *_tokens(span))
                reading.runs_tools = library in _READERS
            case "AGENT":
                _agent(span, library, reading)
            case _:
                reading.agent = reading.agent or _llama_agent(span, library)
        if "metadata" in attributes:
            reading.agent = reading.agent or _langchain_agent(span)
        return reading

    def content(self, span: Span) -> Content:
        match span.attributes["openinference.span.kind"]:
            case "LLM":
                inputs, outputs = _conversation(span)
                asked, answer = _said(inputs, "user"), _said(outputs, "assistant")
                content = Content(inputs=inputs, outputs=outputs, input=asked, output=answer)
            case "AGENT":
                content = _agent_content(span)
            case _:
                content = Content(requests=dispatched(parsed(span.attributes.get("input.value"))))
        content.tools = _tools(span)
        return content


def _agent(span: Span, library: str, reading: Reading) -> None:
    if library == "openai_agents" and "agent.name" not in span.attributes:
        return  # the workflow around the agents, no agent itself
    if library == "langchain" and span.name == "agent" == _langgraph_node(span):
        return  # the step of LangGraph's own agent that asks the model
    named = reading.agent or _langchain_agent(span) or first(span.attributes, "graph.node.id")
    reading.agent = named or _run_name(span)
    reading.agent_span = True


def _agent_content(span: Span) -> Content:
    given, output = span.attributes.get("input.value"), span.attributes.get("output.value")
    if span.scope.name == _SCOPE + "langchain":
        asked, answer = _said(turns(given), "user"), _said(turns(output), "assistant")
        return Content(input=asked, output=answer)
    return Content(
        input=UNRECORDED if given is None else _question(value(given)),
        output=UNRECORDED if output is None else _answer(value(output)),
    )


def _question(given: Recorded) -> Recorded:
    task = given.get("task") if isinstance(given, dict) else None
    words = task.get("description") if isinstance(task, dict) else task  # crewai; smolagents
    return words if isinstance(words, str) else given


def _answer(given: Recorded) -> Recorded:
    words = given.get("raw") if isinstance(given, dict) else None  # crewai
    return words if isinstance(words, str) else given


def _run_name(span: Span) -> str:
    for suffix in _RUN_SUFFIXES:
        if span.name.endswith(suffix):
            return span.name.removesuffix(suffix)
    return span.name


def _langchain_agent(span: Span) -> str | None:
    if "lc_agent_name" not in str(span.attributes.get("metadata", "")):
        return None
    return text(_metadata(span).get("lc_agent_name"))


def _langgraph_node(span: Span) -> str | None:
    """The node whose step a span is; where the metadata is cut off, the span's name says it."""
    if not isinstance(parsed(span.attributes.get("metadata")), dict):
        return span.name if "langgraph_step" in str(span.attributes.get("metadata", "")) else None
    return text(_metadata(span).get("langgraph_node"))


def _metadata(span: Span) -> dict[str, Any]:
    metadata = parsed(span.attributes.get("metadata"))
    return metadata if isinstance(metadata, dict) else {}


def _llama_agent(span: Span, library: str) -> str | None:
    """LlamaIndex names the agent only inside the printed events of its workflow steps."""
    if library != "llama_index":
        return None
    for side in ("output.value", "input.value"):
        found = _LLAMA_AGENT.search(str(span.attributes.get(side, "")))
        if found:
            return found.group(1)
    return None


def _tool(span: Span, library: str) -> ToolReading | None:
    attributes = span.attributes
    name = text(attributes.get("tool.name"))
    if name is None or name == MERGED:  # openai-agents' handoffs are TOOL spans without a name
        return None
    reading = ToolReading(
        name=name,
        call_id=first(attributes, "tool_call.id", "tool.id", "tool.call_id"),
        error=error_of(span),
    )
    _READERS.get(library, _read_plain)(span, reading)
    if reading.arguments is UNRECORDED and "input.value" in attributes:
        reading.arguments_bare = True
    if reading.error is not None:
        reading.output = UNRECORDED
    return reading


def _raw(span: Span, side: str) -> tuple[Recorded, bool]:
    """The value of one side, and whether its mime type says JSON."""
    attributes, (value_key, mime_key) = span.attributes, _SIDES[side]
    return attributes.get(value_key, UNRECORDED), attributes.get(mime_key) == "application/json"


def _read_plain(span: Span, reading: ToolReading) -> None:
    attributes = span.attributes
    reading.arguments = value(attributes.get("input.value", UNRECORDED))
    read = json_value if attributes.get("output.mime_type") == "application/json" else value
    reading.output = read(attributes.get("output.value", UNRECORDED))


def _read_langchain(span: Span, reading: ToolReading) -> None:
    """One text argument is written bare, so only several arguments are sure to be an object."""
    raw, _ = _raw(span, "input")
    arguments = json_value(raw)
    reading.arguments_sure = False
    reading.arguments = arguments if isinstance(arguments, dict) else UNRECORDED
    reading.arguments_bare = raw is not UNRECORDED and reading.arguments is UNRECORDED
    raw, is_json = _raw(span, "output")
    message = json_value(raw) if is_json else None
    data = _told(message)
    if data is not None:
        content = data["content"]
        reading.call_id = reading.call_id or text(data["tool_call_id"])
        reading.output = value_or_text(content, SPACED)
        if data.get("status") == "error":
            reading.error = reading.error or str(content)
    else:
        reading.output = raw if message is None else message


def _told(message: Recorded) -> dict[str, Any] | None:
    """What is in a tool's message, if it is one."""
    if not isinstance(message, dict) or message.get("type") != "tool":
        return None
    data = message.get("data")
    is_told = isinstance(data, dict) and "tool_call_id" in data and "content" in data
    return data if is_told else None


def _read_openai_agents(span: Span, reading: ToolReading) -> None:
    """Text without a mime type is text. Texts that are JSON are tagged so, as objects are.

    The model is shown `str()` of the value: where that is what stands here, the value is a text.
    """
    reading.arguments = value(span.attributes.get("input.value", UNRECORDED))
    raw, is_json = _raw(span, "output")
    reading.output = value_or_text(raw, SPACED) if is_json else text_value(raw)
    if is_json and isinstance(raw, str) and raw not in (reading.output, str(reading.output)):
        reading.output_sure, reading.output_text = False, raw


def _read_llama_index(span: Span, reading: ToolReading) -> None:
    arguments = json_value(_raw(span, "input")[0])
    if (
        isinstance(arguments, dict)
        and "kwargs" in arguments
        and set(arguments) <= {"args", "kwargs"}
    ):
        arguments = arguments["kwargs"]
    reading.arguments = arguments
    output = json_value(_raw(span, "output")[0])
    if isinstance(output, dict) and "raw_output" in output:
        if output.get("is_error") is True:
            reading.error = reading.error or str(output["raw_output"])
        output = output["raw_output"]
    reading.output = output


def _read_smolagents(span: Span, reading: ToolReading) -> None:
    """{args, kwargs}; positional arguments get their names from the order of the parameters."""
    given = json_value(_raw(span, "input")[0])
    if isinstance(given, dict) and "kwargs" in given:
        reading.arguments = _named(given, parsed(span.attributes.get("tool.parameters")))
    else:
        reading.arguments = given
    raw, is_json = _raw(span, "output")
    reading.output = json_value(raw) if is_json else text_value(raw)


def _named(given: dict[str, Any], parameters: Json) -> Recorded:
    positional = given.get("args") or []
    if not isinstance(positional, list) or not isinstance(given.get("kwargs") or {}, dict):
        return UNRECORDED
    kwargs = {
        k: v for k, v in (given.get("kwargs") or {}).items() if k != "sanitize_inputs_outputs"
    }
    if not positional:
        return kwargs
    names = list(parameters) if isinstance(parameters, dict) else []
    only = positional[0] if len(positional) == 1 and not kwargs else None
    if isinstance(only, dict) and (not names or only.keys() <= set(names)):
        return only  # the tool takes all its arguments as one object
    if len(names) < len(positional):
        return UNRECORDED
    return {**dict(zip(names, positional, strict=False)), **kwargs}


def _read_crewai(span: Span, reading: ToolReading) -> None:
    """Text, numbers, booleans and None are all written as text/plain; lists and objects are not."""
    reading.arguments = value(span.attributes.get("input.value", UNRECORDED))
    raw, is_json = _raw(span, "output")
    if is_json:
        reading.output = json_value(raw)
    else:
        told = stringified(raw) if isinstance(raw, str) else raw
        reading.output = text_value(raw) if isinstance(told, str | list | dict) else told


_READERS = {
    "langchain": _read_langchain,
    "openai_agents": _read_openai_agents,
    "llama_index": _read_llama_index,
    "smolagents": _read_smolagents,
    "crewai": _read_crewai,
}


def _langchain_answer(raw: Json) -> tuple[Recorded, bool]:
    return value_or_text(raw, SPACED), False


def _openai_agents_answer(raw: Json) -> tuple[Recorded, bool]:
    """The model is shown `str()` of the value: what looks like a number or None may be text."""
    told = stringified(raw) if isinstance(raw, str) else raw
    return (told if isinstance(told, str | list | dict) else UNRECORDED), False


_ANSWERS: Mapping[str, Answer] = {
    "langchain": _langchain_answer,
    "openai_agents": _openai_agents_answer,
}


def _conversation(span: Span) -> tuple[Sequence[Turn], Sequence[Turn]]:
    sides: dict[str, dict[int, dict[str, Any]]] = {"input": {}, "output": {}}
    for key, raw in span.attributes.items():
        found = _MESSAGE.match(key) if key.startswith("llm.") else None
        if found:
            message = sides[found.group(1)].setdefault(int(found.group(2)), {})
            _set(message, found.group(3), raw)
    answer = _ANSWERS.get(span.scope.name.removeprefix(_SCOPE), as_text)
    inputs, outputs = (
        [turn(_message(messages[index]), answer) for index in sorted(messages)]
        for messages in sides.values()
    )
    return inputs, outputs


def _set(message: dict[str, Any], key: str, raw: Json) -> None:
    call = _CALL.match(key)
    content = _CONTENT.match(key)
    if call:
        message.setdefault("calls", {}).setdefault(int(call.group(1)), {})[call.group(2)] = raw
    elif content:
        message.setdefault("parts", {}).setdefault(int(content.group(1)), {})[content.group(2)] = (
            raw
        )
    elif key in ("role", "content", "tool_call_id"):
        message[key] = raw


def _message(raw: dict[str, Any]) -> dict[str, Json]:
    calls = raw.pop("calls", {})
    parts = raw.pop("parts", None)
    if calls:
        raw["tool_calls"] = [calls[index] for index in sorted(calls)]
    if parts and "content" not in raw:
        raw["content"] = [{"type": "text", **parts[index]} for index in sorted(parts)]
    return raw


def _tools(span: Span) -> Sequence[Tool]:
    attributes = span.attributes
    schemas = [
        attributes[key]
        for key in attributes
        if key.startswith("llm.tools.") and key.endswith(".json_schema")
    ]
    found = [tool for schema in schemas for tool in tool_definitions([schema])]
    name = text(attributes.get("tool.name"))
    if name and ("tool.description" in attributes or "tool.parameters" in attributes):
        description = text(attributes.get("tool.description"))
        parameters = parsed(attributes.get("tool.parameters"))
        if span.scope.name == _SCOPE + "smolagents" and isinstance(parameters, dict):
            parameters = {"type": "object", "properties": parameters}
        found.append(Tool(name=name, description=description, parameters=parameters))
    if not found and "smolagents.tools_names" in attributes:
        found.extend(tool_definitions(attributes["smolagents.tools_names"]))
    return found


def _tokens(span: Span) -> tuple[int | None, int | None]:
    attributes = span.attributes
    return (
        number(attributes, "llm.token_count.prompt"),
        number(attributes, "llm.token_count.completion"),
    )


def _said(conversation: Sequence[Turn], role: str) -> Recorded:
    """The last words of a role: before them there may be the history of a session."""
    for each in reversed(conversation):
        if each.role == role and each.text:
            return each.text
    return UNRECORDED
