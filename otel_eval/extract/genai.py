"""OpenTelemetry's GenAI conventions, from the first span events to today's message attributes."""

import re
from collections.abc import Sequence

from otel_eval.extract import indexed
from otel_eval.extract.common import first, model_call, number, parsed, text, tool_definitions
from otel_eval.extract.dialect import Content, Reading, ToolReading, Turn
from otel_eval.extract.errors import error_of
from otel_eval.extract.messages import (
    Answer,
    arguments_of,
    as_text,
    exact,
    turn,
    turns,
)
from otel_eval.extract.values import value
from otel_eval.model import UNRECORDED, Event, Json, Recorded, Span, Tool

_MODEL_OPERATIONS = {"chat", "text_completion", "generate_content", "completion", "responses"}
_OBJECT = re.compile(r"\[?<[\w.]+( object( at 0x[0-9a-fA-F]+>\]?)?)?$")
"""What Python prints for an object that does not say what it is, or the beginning of it."""
_COMPLETION = "gen_ai.completion."
MERGED = "(merged tools)"


class GenAI:
    """`gen_ai.*`. Frameworks that encode values in a way of their own derive from it."""

    id = "genai"
    runs_tools = False
    """Whether the library runs the tools itself, and writes a span for each call."""

    def reads(self, span: Span) -> bool:
        attributes = span.attributes
        if "gen_ai.operation.name" in attributes or "gen_ai.tool.name" in attributes:
            return True
        if "tool.name" in attributes:  # a span of one's own with a word of these conventions in it
            return False
        return any(key.startswith("gen_ai.") for key in attributes) or any(
            event.name.startswith("gen_ai.") for event in span.events
        )

    def read(self, span: Span) -> Reading:
        attributes = span.attributes
        operation = text(attributes.get("gen_ai.operation.name"))
        reading = Reading()
        reading.agent = first(attributes, "gen_ai.agent.name", "agent_name")
        if operation == "execute_tool" or "gen_ai.tool.name" in attributes:
            reading.tool = self.tool(span)
        elif operation == "invoke_agent":
            reading.agent_span = True
            reading.agent = reading.agent or _named_by_span(span)
        elif operation in _MODEL_OPERATIONS or _is_model(span):
            reading.model = model_call(span, _model(span), *_tokens(span))
            reading.runs_tools = self.runs_tools
        return reading

    def content(self, span: Span) -> Content:
        inputs, outputs = conversation(span, self.answer)
        return Content(
            inputs=inputs,
            outputs=outputs,
            tools=_tools(span),
            input=asked(inputs),
            output=span.attributes.get("final_result", answered(outputs)),
        )

    def answer(self, raw: Json) -> tuple[Recorded, bool]:
        """A tool's answer as this family writes it into messages, and whether that is sure."""
        return as_text(raw)

    def tool(self, span: Span) -> ToolReading | None:
        """The tool call of a tool span, or None where it only looks like one."""
        attributes = span.attributes
        name = first(attributes, "gen_ai.tool.name") or _named_by_span(span)
        if not name or name == MERGED:
            return None
        error = error_of(span)
        reading = ToolReading(
            name=name,
            call_id=text(attributes.get("gen_ai.tool.call.id")),
            error=error,
            arguments=self.arguments(span),
        )
        if error is None:
            self.set_output(span, reading)
        return reading

    def arguments(self, span: Span) -> Recorded:
        raw = attribute(span, "gen_ai.tool.call.arguments", "tool_arguments")
        return _event_arguments(span) if raw is UNRECORDED else arguments_of(raw)

    def set_output(self, span: Span, reading: ToolReading) -> None:
        raw = attribute(span, "gen_ai.tool.call.result", "tool_response")
        if raw is UNRECORDED:
            raw = _event_output(span)
        if isinstance(raw, str) and _OBJECT.match(raw):
            reading.output_fillable = False
        elif raw is not UNRECORDED:
            self.read_result(raw, reading)

    def read_result(self, raw: Json, reading: ToolReading) -> None:
        """The result as this family encodes it; nobody knows how the others do."""
        reading.output = value(raw)


def conversation(span: Span, answer: Answer) -> tuple[Sequence[Turn], Sequence[Turn]]:
    """What went into a model or an agent, and what came out."""
    attributes = span.attributes
    inputs = list(turns(attributes.get("gen_ai.input.messages"), answer))
    outputs = list(turns(attributes.get("gen_ai.output.messages"), answer))
    if not inputs and not outputs:
        inputs = [turn(each, answer) for each in indexed.messages(attributes, "gen_ai.prompt.")]
        outputs = [turn(each, answer) for each in indexed.messages(attributes, _COMPLETION)]
    if not inputs and not outputs:
        _add_attribute_events(span, inputs, outputs)
    for event in span.events:
        _add_event(event, inputs, outputs, answer)
    system = attributes.get("gen_ai.system_instructions")
    if system is not None:
        blocks = parsed(system)
        inputs.insert(0, turn({"role": "system", "content": blocks if blocks else system}))
    return inputs, outputs


def _add_event(event: Event, inputs: list[Turn], outputs: list[Turn], answer: Answer) -> None:
    attributes = event.attributes
    match event.name:
        case "gen_ai.client.inference.operation.details":
            inputs.extend(turns(attributes.get("gen_ai.input.messages"), answer))
            outputs.extend(turns(attributes.get("gen_ai.output.messages"), answer))
        case "gen_ai.choice":
            message = parsed(attributes.get("message"))
            body = message if isinstance(message, dict) else {"content": message}
            if message is None:
                body = {"content": attributes.get("message") or attributes.get("content")}
            calls = parsed(attributes.get("tool_calls"))
            said = {"role": "assistant", **({"tool_calls": calls} if calls else {}), **body}
            outputs.append(turn(said, answer))
            shown = {"role": "tool", "content": parsed(attributes.get("tool.result"))}
            inputs.append(turn(shown, answer))
        case (
            "gen_ai.user.message"
            | "gen_ai.assistant.message"
            | "gen_ai.system.message"
            | "gen_ai.tool.message"
        ):
            inputs.append(_event_turn(event.name.split(".")[1], dict(attributes), answer))
        case _:
            pass


def _event_turn(role: str, body: dict[str, Json], answer: Answer) -> Turn:
    content = body.get("content")
    blocks = parsed(content) if isinstance(content, str) else content
    if isinstance(blocks, list):
        body["content"] = blocks
    calls = parsed(body.get("tool_calls"))
    if calls:
        body["tool_calls"] = calls
    return turn({**body, "role": role}, answer)


def _add_attribute_events(span: Span, inputs: list[Turn], outputs: list[Turn]) -> None:
    """pydantic-ai's first format keeps the events as a JSON list in an attribute."""
    events = parsed(span.attributes.get("events"))
    if not isinstance(events, list):
        return
    for event in events:
        if isinstance(event, dict):
            body = event.get("message") if event.get("event.name") == "gen_ai.choice" else event
            target = outputs if event.get("event.name") == "gen_ai.choice" else inputs
            if isinstance(body, dict):
                target.append(turn(body, exact))


def _event_arguments(span: Span) -> Recorded:
    for event in span.events:
        if event.name == "gen_ai.tool.message" and "content" in event.attributes:
            return arguments_of(event.attributes["content"])
    requests = [each for turn_ in conversation(span, as_text)[0] for each in turn_.requests]
    return requests[0].arguments if len(requests) == 1 else UNRECORDED


def _event_output(span: Span) -> Recorded:
    for event in span.events:
        if event.name == "gen_ai.choice" and "message" in event.attributes:
            return event.attributes["message"]
    for event in span.events:
        if event.name == "gen_ai.client.inference.operation.details":
            raw = event.attributes.get("gen_ai.output.messages")
            results = [each for said in turns(raw, exact) for each in said.results]
            if results:
                return results[0].output
    return UNRECORDED


def attribute(span: Span, *keys: str) -> Recorded:
    """The first of these attributes that is there."""
    for key in keys:
        if key in span.attributes:
            return span.attributes[key]
    return UNRECORDED


def _tools(span: Span) -> Sequence[Tool]:
    attributes = span.attributes
    for key in ("gen_ai.tool.definitions", "gen_ai.agent.tools", "model_request_parameters"):
        if key in attributes:
            raw = attributes[key]
            if key == "model_request_parameters":
                inner = parsed(raw)
                raw = inner.get("function_tools") if isinstance(inner, dict) else None
            found = tool_definitions(raw)
            if found:
                return found
    if "llm.request.functions.0.name" in attributes:
        return indexed.tools(attributes)
    name = text(attributes.get("gen_ai.tool.name"))
    if name and (
        "gen_ai.tool.description" in attributes or "gen_ai.tool.json_schema" in attributes
    ):
        return [
            Tool(
                name=name,
                description=text(attributes.get("gen_ai.tool.description")),
                parameters=parsed(attributes.get("gen_ai.tool.json_schema")),
            )
        ]
    return ()


def _is_model(span: Span) -> bool:
    attributes = span.attributes
    return "gen_ai.request.model" in attributes and "gen_ai.operation.name" not in attributes


def _model(span: Span) -> str | None:
    return first(span.attributes, "gen_ai.response.model", "gen_ai.request.model")


def _tokens(span: Span) -> tuple[int | None, int | None]:
    attributes = span.attributes
    return (
        number(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        number(attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    )


def _named_by_span(span: Span) -> str | None:
    """`execute_tool search` and `invoke_agent helper` carry the name behind the operation."""
    operation, _, name = span.name.partition(" ")
    return name if name and operation in ("execute_tool", "invoke_agent") else None


def asked(inputs: Sequence[Turn]) -> Recorded:
    """What the user said last: before it there may be the history of a session."""
    for each in reversed(inputs):
        if each.role == "user" and each.text:
            return each.text
    return UNRECORDED


def answered(outputs: Sequence[Turn]) -> Recorded:
    """What the model said last."""
    for each in reversed(outputs):
        if each.role in ("assistant", "") and each.text:
            return each.text.rstrip("\n")  # strands ends each answer so
    return UNRECORDED
