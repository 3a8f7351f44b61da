"""The same run in the words of four instrumentations: names and attributes of its spans."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from opentelemetry.trace import SpanKind

from otel_eval.demo.scripts import Run, Step
from otel_eval.model import Json

Attributes: TypeAlias = Mapping[str, str | int]

MODEL: Final = "sample-model"
INPUT_TOKENS: Final = 420
OUTPUT_TOKENS: Final = 35


@dataclass(frozen=True, slots=True)
class Opening:
    """A span as it starts."""

    name: str
    attributes: Attributes = field(default_factory=dict)
    kind: SpanKind = SpanKind.INTERNAL


class Writing(Protocol):
    title: str
    scope: str

    def agent(self, agent: str, run: Run) -> Opening: ...

    def model(self) -> Opening | None:
        """None where an instrumentation does not tell."""

    def tool(self, step: Step) -> Opening: ...

    def result(self, step: Step) -> Attributes: ...

    def answer(self, run: Run) -> Attributes: ...


class GenAI:
    """OpenTelemetry's GenAI conventions."""

    title = "GenAI conventions"
    scope = "demo.genai"

    def agent(self, agent: str, run: Run) -> Opening:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": run.session,
            "gen_ai.input.messages": _message("user", run.question),
        }
        return Opening(f"invoke_agent {agent}", attributes)

    def model(self) -> Opening:
        return _chat()

    def tool(self, step: Step) -> Opening:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.tool,
            "gen_ai.tool.call.arguments": _json(step.arguments),
        }
        return Opening(f"execute_tool {step.tool}", attributes)

    def result(self, step: Step) -> Attributes:
        return {"gen_ai.tool.call.result": _json(step.result)}

    def answer(self, run: Run) -> Attributes:
        return {"gen_ai.output.messages": _message("assistant", run.answer)}


class OpenInference:
    """Arize's OpenInference."""

    title = "OpenInference"
    scope = "openinference.instrumentation.demo"

    def agent(self, agent: str, run: Run) -> Opening:
        attributes = {
            "openinference.span.kind": "AGENT",
            "agent.name": agent,
            "session.id": run.session,
            "input.value": run.question,
        }
        return Opening(f"{agent}.run", attributes)

    def model(self) -> Opening:
        attributes: Attributes = {
            "openinference.span.kind": "LLM",
            "llm.model_name": MODEL,
            "llm.token_count.prompt": INPUT_TOKENS,
            "llm.token_count.completion": OUTPUT_TOKENS,
        }
        return Opening("ChatCompletion", attributes)

    def tool(self, step: Step) -> Opening:
        attributes = {
            "openinference.span.kind": "TOOL",
            "tool.name": step.tool,
            "input.value": _json(step.arguments),
            "input.mime_type": "application/json",
        }
        return Opening(step.tool, attributes)

    def result(self, step: Step) -> Attributes:
        return {"output.value": _json(step.result), "output.mime_type": "application/json"}

    def answer(self, run: Run) -> Attributes:
        return {"output.value": run.answer}


class Traceloop:
    """Traceloop's OpenLLMetry."""

    title = "Traceloop"
    scope = "opentelemetry.instrumentation.demo"

    def agent(self, agent: str, run: Run) -> Opening:
        attributes = {
            "traceloop.span.kind": "agent",
            "traceloop.entity.name": agent,
            "traceloop.association.properties.session_id": run.session,
            "traceloop.entity.input": _json({"args": [], "kwargs": {"question": run.question}}),
        }
        return Opening(f"{agent}.agent", attributes)

    def model(self) -> Opening:
        return _chat()

    def tool(self, step: Step) -> Opening:
        attributes = {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": step.tool,
            "traceloop.entity.input": _json({"args": [], "kwargs": step.arguments}),
        }
        return Opening(f"{step.tool}.tool", attributes)

    def result(self, step: Step) -> Attributes:
        return {"traceloop.entity.output": _json(step.result)}

    def answer(self, run: Run) -> Attributes:
        return {"traceloop.entity.output": _json(run.answer)}


class Plain:
    """Spans written by hand: the least that can be scored."""

    title = "plain tool.name"
    scope = "demo.homemade"

    def agent(self, agent: str, run: Run) -> Opening:
        attributes = {"agent.name": agent, "session.id": run.session, "input.value": run.question}
        return Opening("handle ticket", attributes, SpanKind.SERVER)

    def model(self) -> None:
        return None

    def tool(self, step: Step) -> Opening:
        attributes = {"tool.name": step.tool, "input.value": _json(step.arguments)}
        return Opening(step.tool, attributes)

    def result(self, step: Step) -> Attributes:
        return {"output.value": _json(step.result)}

    def answer(self, run: Run) -> Attributes:
        return {"output.value": run.answer}


def _chat() -> Opening:
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": MODEL,
        "gen_ai.usage.input_tokens": INPUT_TOKENS,
        "gen_ai.usage.output_tokens": OUTPUT_TOKENS,
    }
    return Opening(f"chat {MODEL}", attributes, SpanKind.CLIENT)


def _message(role: str, text: str) -> str:
    return _json([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _json(value: Json) -> str:
    return json.dumps(value)
