"""What is measured, and the floor under it: OTLP requests of agent traces with 9 spans each."""

import random
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_eval.model import Json

TRACES_PER_REQUEST: Final = 12
SPANS_PER_TRACE: Final = 9
SPANS_PER_REQUEST: Final = TRACES_PER_REQUEST * SPANS_PER_TRACE

_TOOLS: Final = ("get_temperature", "get_forecast")
_START_NS: Final = 1_700_000_000_000_000_000
_MS: Final = 1_000_000
_AGENT: Final = {
    "openinference.span.kind": "AGENT",
    "agent.name": "weather",
    "session.id": "s1",
    "input.value": "What is it like?",
    "output.value": "fine",
}
_TOOL: Final = {
    "openinference.span.kind": "TOOL",
    "input.mime_type": "application/json",
    "output.mime_type": "application/json",
}
_MODEL: Final = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt",
    "llm.token_count.prompt": 100,
    "llm.token_count.completion": 20,
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "What is it like?",
}

RULE: Final = {
    "name": "weather",
    "match": {"agent": "weather"},
    "evaluators": [
        {"type": "tool-call-count", "tool_calls_count": {"get_temperature": [">=", 2]}},
        {"type": "tool-call-order", "tool_calls_order": list(_TOOLS)},
        {"type": "tool-error-rate"},
    ],
}


class Traces:
    """Makes requests that are alike but for their ids; the same ones in every run."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def bodies(self, count: int, *, tools: int = 5, models: int = 3) -> list[bytes]:
        return [self._request(tools, models).SerializeToString() for _ in range(count)]

    def _request(self, tools: int, models: int) -> ExportTraceServiceRequest:
        request = ExportTraceServiceRequest()
        group = request.resource_spans.add()
        group.resource.attributes.append(_pair("service.name", "agent"))
        scoped = group.scope_spans.add()
        scoped.scope.name = "openinference.instrumentation.demo"
        for _ in range(TRACES_PER_REQUEST):
            scoped.spans.extend(self._trace(tools, models))
        return request

    def _trace(self, tools: int, models: int) -> list[Span]:
        """An agent that calls its tools and asks its model."""
        trace_id, root = self._random.randbytes(16), self._random.randbytes(8)
        below = [("get_weather", self._call(), i * 10 + 1, i * 10 + 9) for i in range(tools)]
        below += [("chat", _MODEL, i * 20, i * 20 + 1) for i in range(models)]
        spans = [_span(trace_id, root, b"", "agent_run", _AGENT, 0, 100)]
        return spans + [_span(trace_id, self._random.randbytes(8), root, *each) for each in below]

    def _call(self) -> dict[str, Json]:
        """Tools, arguments and results differ from call to call, as they do in production."""
        city, degrees = self._random.randrange(10_000), self._random.randrange(400) / 10
        return {
            **_TOOL,
            "tool.name": self._random.choice(_TOOLS),
            "input.value": f'{{"city": "city {city}", "unit": "celsius"}}',
            "output.value": f'{{"temperature": {degrees}, "sky": "clear"}}',
        }


def _span(
    trace_id: bytes,
    span_id: bytes,
    parent_id: bytes,
    name: str,
    attributes: dict[str, Json],
    start_ms: int,
    end_ms: int,
) -> Span:
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent_id,
        name=name,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=_START_NS + start_ms * _MS,
        end_time_unix_nano=_START_NS + end_ms * _MS,
        attributes=[_pair(key, value) for key, value in attributes.items()],
    )


def _pair(key: str, value: Json) -> KeyValue:
    if isinstance(value, int):
        return KeyValue(key=key, value=AnyValue(int_value=value))
    return KeyValue(key=key, value=AnyValue(string_value=value))


def floor(bodies: list[bytes]) -> None:
    """The least that a receiver in Python can do: parse, and one dictionary per span."""
    for body in bodies:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scoped in group.scope_spans:
                for span in scoped.spans:
                    attributes = {}
                    for pair in span.attributes:
                        value = pair.value
                        attributes[pair.key] = getattr(value, value.WhichOneof("value") or "")
