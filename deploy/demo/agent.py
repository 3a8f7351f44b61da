"""A weather agent that never tires: real OTLP spans, some of them of a day gone wrong.

    python agent.py [--bad SHARE] [--every SECONDS] [--traces COUNT]

OTEL_EXPORTER_OTLP_ENDPOINT says where the spans go.
"""

import argparse
import itertools
import random
import time

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, Tracer

TOOLS = ("get_temperature", "get_forecast")
CITIES = ("Tokyo", "Lagos", "Lima", "Oslo")


def main() -> None:
    options = arguments()
    provider = TracerProvider(resource=Resource.create({"service.name": "weather"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=1000))
    tracer = provider.get_tracer("weather-demo")
    for number in itertools.count() if options.traces is None else range(options.traces):
        answer(tracer, city=CITIES[number % len(CITIES)], bad=random.random() < options.bad)
        time.sleep(options.every)
    provider.shutdown()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bad", type=float, default=0.05, help="share of traces gone wrong")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two traces")
    parser.add_argument("--traces", type=int, help="how many; endless unless given")
    return parser.parse_args()


def answer(tracer: Tracer, *, city: str, bad: bool) -> None:
    """One question about the weather; on a bad day every tool fails."""
    names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather-agent"}
    with tracer.start_as_current_span("invoke_agent weather-agent", attributes=names):
        for tool in TOOLS:
            called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=called) as span:
                use(span, city, bad)


def use(span: Span, city: str, bad: bool) -> None:
    span.set_attribute("gen_ai.tool.call.arguments", f'{{"city": "{city}"}}')
    if bad:
        span.set_attribute("error.type", "timeout")
        span.set_status(Status(StatusCode.ERROR, "timeout"))
    else:
        span.set_attribute("gen_ai.tool.call.result", '"12 °C"')


if __name__ == "__main__":
    main()
