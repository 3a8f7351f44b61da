"""agent → Collector → otel-eval → Collector."""

from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from otel_eval.model import Span
from tests.outside import programs
from tests.sidecar.agents import agent_run
from tests.sidecar.collectors import collector, spans_in
from tests.sidecar.running import Running, running

RULE = {
    "name": "flow",
    "evaluators": [{"type": "tool-call-order", "tool_calls_order": ["search", "answer"]}],
}


def exporter_to(run: Running, protocol: str) -> dict[str, object]:
    if protocol == "grpc":
        return {"otlp": {"endpoint": f"127.0.0.1:{run.ports.grpc}", "tls": {"insecure": True}}}
    return {"otlphttp": {"endpoint": f"http://127.0.0.1:{run.ports.http}"}}


def through_two_collectors(tmp_path: Path, protocol: str, mode: str) -> tuple[list[Span], str]:
    """What the last Collector wrote: the spans, and the whole text."""
    program = programs.collector()
    front, back = tmp_path / "front", tmp_path / "back"
    front.mkdir()
    back.mkdir()
    file = back / "out.jsonl"
    with collector(program, back, {"file": {"path": str(file)}}) as behind:
        forward = {
            "endpoint": f"http://127.0.0.1:{behind[protocol]}",
            "protocol": protocol,
            "mode": mode,
        }
        with (
            running(rules=[RULE], forward=forward) as run,
            collector(program, front, exporter_to(run, protocol)) as before,
        ):
            exporter = OTLPSpanExporter(f"127.0.0.1:{before['grpc']}", insecure=True)
            for _ in range(3):
                exporter.export(agent_run(["search", "answer"]))
            exporter.shutdown()
            run.wait("otel_eval_spans_scored_total", 9)
    return spans_in(file), file.read_text()


@pytest.mark.outside
@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("mode", ["through", "attach"])
def test_every_span_arrives_once_and_with_its_scores(
    tmp_path: Path, protocol: str, mode: str
) -> None:
    spans, text = through_two_collectors(tmp_path, protocol, mode)

    sent = [span for span in spans if span.scope.name == "agent"]
    roots = [span for span in sent if span.name == "invoke_agent shopper"]
    own = [span for span in spans if span.scope.name == "otel_eval"]
    assert len({(span.trace_id, span.span_id) for span in sent}) == len(sent) == 9
    names = {event.name for span in (roots if mode == "attach" else own) for event in span.events}
    assert names == {"gen_ai.evaluation.result"}
    assert len(own) == (0 if mode == "attach" else 3)
    assert text.count('"eventName":"gen_ai.evaluation.result"') == 3
