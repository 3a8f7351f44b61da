"""Agents as the SDK records them."""

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


def agent_run(tools: Sequence[str]) -> Sequence[ReadableSpan]:
    """The spans of an agent that calls these tools."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("agent")
    operation = "gen_ai.operation.name"
    root = {operation: "invoke_agent", "gen_ai.agent.name": "shopper"}
    with tracer.start_as_current_span("invoke_agent shopper", attributes=root):
        for tool in tools:
            attributes = {operation: "execute_tool", "gen_ai.tool.name": tool}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                pass
    return memory.get_finished_spans()
