"""The JavaScript OTLP exporters, as npm has them."""

import os
import subprocess

import pytest

from tests.outside import programs
from tests.sidecar.running import running

AGENT = """
const { BasicTracerProvider, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-base");
const { context, trace } = require("@opentelemetry/api");
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${process.argv[1]}`);
const compression = process.argv[3];
const exporter = new OTLPTraceExporter({ url: process.argv[2], compression });
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const tracer = provider.getTracer("js-agent");
const operation = "gen_ai.operation.name";
const agent = { [operation]: "invoke_agent", "gen_ai.agent.name": "shopper" };
const root = tracer.startSpan("invoke_agent shopper", { attributes: agent });
const within = trace.setSpan(context.active(), root);
for (const tool of ["search", "answer"]) {
  const attributes = { [operation]: "execute_tool", "gen_ai.tool.name": tool };
  tracer.startSpan(`execute_tool ${tool}`, { attributes }, within).end();
}
root.end();
provider.forceFlush().then(() => provider.shutdown());
"""
RULE = {
    "name": "flow",
    "evaluators": [{"type": "tool-call-order", "tool_calls_order": ["search", "answer"]}],
}


@pytest.mark.outside
@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize(
    "exporter",
    [
        pytest.param("proto", id="HTTP with protobuf"),
        pytest.param("http", id="HTTP with JSON"),
        pytest.param("grpc", id="gRPC"),
    ],
)
def test_their_traces_are_scored(exporter: str, compression: str) -> None:
    node, modules = programs.node(), programs.node_modules()
    with running(rules=[RULE]) as run:
        url = f"http://127.0.0.1:{run.ports.http}/v1/traces"
        if exporter == "grpc":
            url = f"http://127.0.0.1:{run.ports.grpc}"
        subprocess.run(
            [node, "-e", AGENT, exporter, url, compression],
            check=True,
            env={**os.environ, "NODE_PATH": str(modules)},
            timeout=60,
        )
        run.wait("otel_eval_evaluations_total", 1, agent="shopper", verdict="pass")

        assert run.value("otel_eval_spans_scored_total") == 3
