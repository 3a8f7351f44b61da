"""CPU per span of the whole pipeline in one thread, and of its stages, against the floor."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from orjson import dumps

from otel_eval.decode import decode_json, decode_protobuf
from otel_eval.decode.otlp import decode_in_python
from otel_eval.engine import Engine, Sink
from otel_eval.extract import extract
from otel_eval.model import Span
from otel_eval.rules import Rule, RuleSet
from otel_eval.sidecar.garbage import THRESHOLDS
from otel_eval.sinks.metrics import MetricsSink
from otel_eval.sinks.prometheus import PrometheusSink
from tests.benchmarks.measure import Run, best, collecting_seldom
from tests.benchmarks.rows import Row
from tests.benchmarks.workload import RULE, SPANS_PER_REQUEST, Traces, floor

Decode: TypeAlias = Callable[[bytes], list[Span]]

RULES: Final = RuleSet([Rule.parse(RULE)])
FLOOR: Final = "protobuf parse + one dict of attributes per span"
STEP_SECONDS: Final = 0.5
"""So that a trace is scored twenty requests later, when it has long left the processor's cache."""


def rows(quick: bool) -> Iterator[Row]:
    found = seconds_per_span(*((3, 1) if quick else (60, 15)))
    least = found["floor"]
    pipeline = "OTLP bytes → grouped, extracted, 3 evaluators, "
    for what, name, goal in (
        (f"{pipeline}Prometheus", "prometheus", 2.0),
        (f"{pipeline}Prometheus and OTel metrics", "both", 2.8),
        ("… of that: decoded", "decode", None),
        ("… of that: extracted, rules matched", "extract", None),
        ("… all without a sink", "no sink", None),
    ):
        note = f"{found[name] * 1e6:.1f} µs a span, floor {least * 1e6:.1f}"
        yield Row(what=what, against=FLOOR, value=found[name] / least, goal=goal, note=note)
    alone = found["json"] / found["decode"], found["json"] / found["decode in Python"]
    yield Row(
        what="OTLP/JSON → … Prometheus",
        against="the same from OTLP/protobuf",
        value=found["json prometheus"] / found["prometheus"],
        goal=3.0,
        note="decoding alone {:.1f} ×, and {:.1f} × protobuf decoded in Python".format(*alone),
    )


def seconds_per_span(requests: int, rounds: int) -> dict[str, float]:
    bodies = Traces().bodies(requests)
    with collecting_seldom(*THRESHOLDS):
        least = best(_stages(bodies), rounds)
    return {name: each / (requests * SPANS_PER_REQUEST) for name, each in least.items()}


def _stages(bodies: list[bytes]) -> Mapping[str, Run]:
    traces, texts = _traces_of(bodies), [_as_json(body) for body in bodies]
    provider = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    return {
        "floor": lambda: floor(bodies),
        "decode": lambda: [len(decode_protobuf(body)) for body in bodies],
        "decode in Python": lambda: [len(decode_in_python(body)) for body in bodies],
        "json": lambda: [len(decode_json(text)) for text in texts],
        "extract": lambda: _read(traces),
        "no sink": lambda: score(bodies),
        "prometheus": lambda: score(bodies, PrometheusSink()),
        "json prometheus": lambda: score(texts, PrometheusSink(), decode=decode_json),
        "both": lambda: score(bodies, PrometheusSink(), MetricsSink(meter_provider=provider)),
    }


def score(bodies: list[bytes], *sinks: Sink, decode: Decode = decode_protobuf) -> None:
    """As the sidecar does it: requests come in, and traces close some steps later."""
    engine = Engine(RULES, sinks, background=False, clock=lambda: 0.0)
    now = 0.0
    for body in bodies:
        spans = decode(body)
        engine.feed(spans, 2 * len(body) + 500 * len(spans))
        now += STEP_SECONDS
        engine.step(now)
    engine.step(now + 100)
    scored = engine.snapshot()["otel_eval.spans.scored"][()]
    engine.close()
    assert scored == len(bodies) * SPANS_PER_REQUEST, scored


def _read(traces: list[list[Span]]) -> None:
    for trace in traces:
        RULES.views(extract(trace, conversation=RULES.reads_conversation))


def _traces_of(bodies: list[bytes]) -> list[list[Span]]:
    traces: dict[str, list[Span]] = {}
    for body in bodies:
        for span in decode_protobuf(body):
            traces.setdefault(span.trace_id, []).append(span)
    return list(traces.values())


def _as_json(body: bytes) -> bytes:
    """With ids in hex, as OTLP has them; protobuf's own JSON would have base64."""
    request = ExportTraceServiceRequest.FromString(body)
    message = MessageToDict(request, use_integers_for_enums=True)
    for group, written in zip(request.resource_spans, message["resourceSpans"], strict=True):
        for scoped, other in zip(group.scope_spans, written["scopeSpans"], strict=True):
            for span, fields in zip(scoped.spans, other["spans"], strict=True):
                fields["traceId"], fields["spanId"] = span.trace_id.hex(), span.span_id.hex()
                fields["parentSpanId"] = span.parent_span_id.hex()
    return dumps(message)
