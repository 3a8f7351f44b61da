"""A real pydantic-ai agent whose model is a script."""

import asyncio
from collections.abc import Iterator

import pytest
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from otel_eval import EvalSpanProcessor
from tests.frameworks.weather import EXPECTED, RULE, check
from tests.telemetry import Telemetry


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    processor = EvalSpanProcessor(rules=[RULE], **made.options())
    made.tracer_provider.add_span_processor(processor)
    made.export_spans()
    yield made
    processor.shutdown()


def scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """The temperature first, then the forecast, then an answer."""
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if turn < len(EXPECTED):
        name, city = EXPECTED[turn]
        return ModelResponse(parts=[ToolCallPart(name, {"city": city})])
    return ModelResponse(parts=[TextPart("Overcast, 25 degrees.")])


def weather_agent(telemetry: Telemetry) -> Agent:
    settings = InstrumentationSettings(
        tracer_provider=telemetry.tracer_provider, meter_provider=telemetry.meter_provider
    )
    agent = Agent(
        FunctionModel(scripted), name="weather-agent", capabilities=[Instrumentation(settings)]
    )

    @agent.tool_plain
    def get_temperature(city: str) -> dict[str, float]:
        return {"temperature": 25.0 if city == "Tokyo" else 0.0}

    @agent.tool_plain
    def get_forecast(city: str) -> str:
        return f"Overcast in {city}"

    return agent


def test_a_pydantic_ai_agent_is_scored(telemetry: Telemetry) -> None:
    agent = weather_agent(telemetry)

    # Not run_sync, which leaves the event loop that it makes to the garbage collector.
    answer = asyncio.run(agent.run("How is the weather in Tokyo?"))
    assert telemetry.tracer_provider.force_flush()

    assert answer.output == "Overcast, 25 degrees."
    check(telemetry)
