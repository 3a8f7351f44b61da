"""A real LangGraph agent, instrumented by OpenInference, whose model is a script."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openinference.instrumentation.langchain import LangChainInstrumentor

from otel_eval import EvalSpanProcessor
from tests.frameworks.weather import EXPECTED, RULE, check
from tests.telemetry import Telemetry


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    processor = EvalSpanProcessor(rules=[RULE], **made.options())
    made.tracer_provider.add_span_processor(processor)
    made.export_spans()
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=made.tracer_provider)
    yield made
    instrumentor.uninstrument()
    processor.shutdown()


@tool
def get_temperature(city: str) -> dict[str, float]:
    """The temperature in a city."""
    return {"temperature": 25.0 if city == "Tokyo" else 0.0}


@tool
def get_forecast(city: str) -> str:
    """The forecast for a city."""
    return f"Overcast in {city}"


def weather_agent() -> Any:
    """The temperature first, then the forecast, then an answer."""
    asked = [
        AIMessage("", tool_calls=[{"name": name, "args": {"city": city}, "id": f"call-{turn}"}])
        for turn, (name, city) in enumerate(EXPECTED)
    ]
    model = GenericFakeChatModel(messages=iter([*asked, AIMessage("Overcast, 25 degrees.")]))
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([get_temperature, get_forecast]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(name="weather-agent")


def test_a_langgraph_agent_is_scored(telemetry: Telemetry) -> None:
    agent = weather_agent()

    answer = agent.invoke({"messages": [("user", "How is the weather in Tokyo?")]})
    assert telemetry.tracer_provider.force_flush()

    assert answer["messages"][-1].content == "Overcast, 25 degrees."
    check(telemetry)
