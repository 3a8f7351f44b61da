"""Whole sidecars, with the official exporters in front and real receivers behind."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import orjson
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcExporter,
)
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpExporter,
)
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from otel_eval.config import Config
from otel_eval.errors import ConfigError
from otel_eval.sidecar.sidecar import Sidecar
from otel_eval.sidecar.signals import LOGS, METRICS, TRACES
from tests.sidecar import otlp
from tests.sidecar.agents import agent_run
from tests.sidecar.loops import loop_thread
from tests.sidecar.otlp import PROTOBUF, TRACE_ID, export, post, tool_trace, traces
from tests.sidecar.running import Running, config_of, forward_to, running
from tests.sidecar.servers import Receiving, receiving
from tests.sidecar.targets import DOWN, UNKNOWN, flapping

RULE = {
    "name": "flow",
    "evaluators": [{"type": "tool-call-order", "tool_calls_order": ["search", "answer"]}],
}
FROM_THE_FUTURE = b"\xfa\x3f\x02hi"
"""A field that OTLP does not have yet."""


@pytest.fixture(scope="module")
def _far() -> Iterator[Receiving]:
    with receiving() as server:
        yield server


@pytest.fixture
def far(_far: Receiving) -> Receiving:
    _far.recorder.reset()
    return _far


def clients(run: Running) -> dict[str, SpanExporter]:
    http = f"http://127.0.0.1:{run.ports.http}/v1/traces"
    near = {"endpoint": f"127.0.0.1:{run.ports.grpc}", "insecure": True}
    return {
        "grpc": GrpcExporter(**near),
        "grpc, gzip": GrpcExporter(**near, compression=grpc.Compression.Gzip),
        "http": HttpExporter(http),
        "http, gzip": HttpExporter(http, compression=Compression.Gzip),
        "http, deflate": HttpExporter(http, compression=Compression.Deflate),
    }


@pytest.mark.parametrize("client", ["grpc", "grpc, gzip", "http", "http, gzip", "http, deflate"])
def test_official_exporters_get_their_traces_scored(client: str) -> None:
    with running(rules=[RULE]) as run:
        exporter = clients(run)[client]

        result = exporter.export(agent_run(["search", "answer"]))
        run.wait("otel_eval_evaluations_total", 1, agent="shopper", rule="flow", verdict="pass")

        assert result is SpanExportResult.SUCCESS
        assert run.value("otel_eval_score_sum", agent="shopper") == 1.0
        assert run.value("otel_eval_spans_scored_total") == 3
        assert run.value("otel_eval_traces_total", closed_by="root") == 1
        exporter.shutdown()


def test_it_runs_without_a_configuration() -> None:
    with running() as run:
        post(run.ports.http, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_evaluations_total", 2, agent="shopper", rule="default")


def test_the_admin_port_tells_its_state_and_negotiates_the_page() -> None:
    with running() as run:
        post(run.ports.http, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_evaluations_total", 2)

        health, ready = run.get("/healthz"), run.get("/readyz")
        _, plain, plain_type = run.get("/metrics")
        _, page, page_type = run.get("/metrics", "application/openmetrics-text; version=1.0.0")

    assert (health[0], ready[0]) == (200, 200)
    assert plain_type.startswith("text/plain")
    assert page_type.startswith("application/openmetrics-text")
    assert "trace_id" not in plain
    assert f'trace_id="{TRACE_ID}"' in page
    assert page.endswith("# EOF\n")


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_through_forwards_the_bytes_and_sends_scores_beside_them(
    far: Receiving, protocol: str
) -> None:
    body = otlp.request(*tool_trace(tools=["search", "answer"])).SerializeToString()
    with running(rules=[RULE], forward=forward_to(far, protocol)) as run:
        export(run.ports.grpc, body)
        run.wait("otel_eval_forward_requests_total", 3, result="delivered")

    assert far.recorder.of(TRACES)[0].body == body
    evaluation = far.recorder.spans[-1]
    assert (evaluation.name, evaluation.trace_id) == ("evaluation flow", TRACE_ID)
    assert evaluation.parent_id == "00000000000000aa"
    assert evaluation.scope.name == "otel_eval"
    assert [event.name for event in evaluation.events] == ["gen_ai.evaluation.result"]
    record = _log_record(far)
    assert record.event_name == "gen_ai.evaluation.result"
    assert record.span_id.hex() == "00000000000000aa"


def _log_record(far: Receiving) -> Any:
    message = LOGS.request.FromString(far.recorder.of(LOGS)[0].body)
    return message.resource_logs[0].scope_logs[0].log_records[0]


def test_attach_puts_the_events_on_the_anchor_and_keeps_the_rest_of_it(far: Receiving) -> None:
    request = otlp.request(*tool_trace(tools=["search", "answer"]))
    group = request.resource_spans[0]
    scoped, root = group.scope_spans[0], group.scope_spans[0].spans[2]
    root.trace_state, root.flags = "vendor=1", 0x101
    root.links.add(trace_id=bytes(range(16)), span_id=bytes(range(8)))
    group.schema_url = "https://example.org/schema"
    for message in (root, root.links[0], scoped.scope, scoped, group.resource, group):
        message.MergeFromString(FROM_THE_FUTURE)
    with running(rules=[RULE], forward=forward_to(far, mode="attach")) as run:
        export(run.ports.grpc, request.SerializeToString())
        run.wait("otel_eval_spans_forwarded_total", 3)

    first, second = far.recorder.of(TRACES)
    assert [span.name for span in first.spans] == ["execute_tool search", "execute_tool answer"]
    data = trace_pb2.TracesData.FromString(second.body)
    got = data.resource_spans[0].scope_spans[0].spans[0]
    assert [event.name for event in got.events] == ["gen_ai.evaluation.result"]
    pairs = {each.key: each.value for each in got.events[0].attributes}
    assert pairs["gen_ai.evaluation.score.value"].double_value == 1.0
    assert pairs["otel_eval.rule"].string_value == "flow"
    del got.events[:]
    del scoped.spans[:2]
    assert data.resource_spans[0].SerializeToString() == group.SerializeToString()


def test_attach_lets_go_after_max_hold_and_then_sends_a_span_of_its_own(far: Receiving) -> None:
    rule = {"name": "flow", "evaluators": [{"type": "tool-error-rate"}]}
    forward = forward_to(far, mode="attach", max_hold="1ms")
    with running(rules=[rule], forward=forward, grouping={"settle": "1h"}) as run:
        export(run.ports.grpc, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_spans_forwarded_total", 2)
        queued = run.value("otel_eval_spans_queued")
        scored = run.value("otel_eval_spans_scored_total")
        assert run.drain()

    assert (queued, scored) == (0, 0)
    assert far.recorder.spans[-1].name == "evaluation flow"
    assert sum(span.name == "evaluation flow" for span in far.recorder.spans) == 1


def test_attach_holds_a_trace_until_shutdown_and_loses_nothing(far: Receiving) -> None:
    forward = forward_to(far, mode="attach")
    with running(rules=[RULE], forward=forward, grouping={"settle": "1h"}) as run:
        export(run.ports.grpc, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_spans_forwarded_total", 1)
        assert run.value("otel_eval_spans_queued") == 1
        assert run.drain()

    assert len(far.recorder.spans) == 2
    assert [event.name for event in far.recorder.spans[-1].events] == ["gen_ai.evaluation.result"]


def test_while_it_drains_it_is_not_ready_and_refuses_for_now(far: Receiving) -> None:
    gate = threading.Event()
    far.recorder.taking = lambda: gate.wait(10)
    with running(forward=forward_to(far), grouping={"settle": "1h"}) as run:
        send_spans(run, *tool_trace()[:-1])
        before = run.get("/readyz")[0]

        with ThreadPoolExecutor() as threads:
            draining = threads.submit(run.drain)
            run.loop.until(lambda: run.sidecar._pipeline.draining)
            ready, health = run.get("/readyz")[0], run.get("/healthz")[0]
            codes = post(run.ports.http, traces()).status, send_spans(run, *tool_trace())
            gate.set()
            everything_is_sent = draining.result()

        assert (before, ready, health) == (200, 503, 200)
        assert codes == (503, grpc.StatusCode.UNAVAILABLE)
        assert everything_is_sent
        assert run.value("otel_eval_traces_total", closed_by="shutdown") == 1
        assert run.value("otel_eval_spans_forwarded_total") == 1


def test_json_is_attached_to_as_well(far: Receiving) -> None:
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
        {"key": "gen_ai.agent.name", "value": {"stringValue": "shopper"}},
    ]
    body = orjson.dumps(otlp.json_request(attributes=attributes, endTimeUnixNano="7"))
    with running(rules=[RULE], forward=forward_to(far, "http", mode="attach")) as run:
        assert post(run.ports.http, body, otlp.JSON).status == 200
        run.wait("otel_eval_spans_forwarded_total", 1)

    assert [event.name for event in far.recorder.spans[0].events] == ["gen_ai.evaluation.result"]


@pytest.mark.parametrize("mode", ["through", "attach"])
@pytest.mark.parametrize("state", ["up", "flapping", "down", "slow"])
def test_both_identities_hold_whatever_the_target_does(
    far: Receiving, mode: str, state: str
) -> None:
    gate = threading.Event()
    if state == "flapping":
        far.recorder.refuse = flapping()
    elif state == "down":
        far.recorder.refuse = lambda _signal: DOWN
    elif state == "slow":
        far.recorder.taking = lambda: gate.wait(0.05)
    with running(forward=forward_to(far, mode=mode)) as run:
        for at in range(10):
            trace_id = f"{at + 1:032x}"
            body = otlp.request(*tool_trace(trace_id, tools=["a", "b"])).SerializeToString()
            assert export(run.ports.grpc, body).code is grpc.StatusCode.OK
            run.check_identities()
        run.wait("otel_eval_spans_scored_total", 30)
        run.check_identities()
        drained = run.drain(1.5 if state == "down" else 15)
        got = [span for span in far.recorder.spans if span.scope.name == "tests"]

        assert drained is (state != "down")
        if state == "down":
            assert run.value("otel_eval_spans_dropped_total", reason="shutdown") == 30
        else:
            assert len({(span.trace_id, span.span_id) for span in got}) == len(got) == 30


def test_a_full_forward_queue_refuses_and_nothing_acknowledged_is_lost(far: Receiving) -> None:
    far.recorder.refuse = lambda _signal: DOWN
    with running(forward=forward_to(far, queue_mib=0.01)) as run:
        codes = [export(run.ports.grpc, traces(5, first=at * 5 + 1)).code for at in range(60)]
        taken = codes.count(grpc.StatusCode.OK)
        far.recorder.refuse = lambda _signal: None
        run.drain(15)

        assert set(codes) == {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
        assert len(far.recorder.spans) == 5 * taken


@pytest.mark.parametrize("signal", [LOGS, METRICS], ids=lambda signal: signal.name)
def test_logs_and_metrics_need_a_target(signal: Any, far: Receiving) -> None:
    with running() as run:
        alone = post(run.ports.http, b"", PROTOBUF, path=signal.path).status
        alone_grpc = export(run.ports.grpc, b"", signal=signal).code
    body = b"\xfa\x3f\x02hi"
    with running(forward=forward_to(far)) as run:
        forwarded = post(run.ports.http, body, PROTOBUF, path=signal.path).status

    assert (alone, alone_grpc) == (404, grpc.StatusCode.UNIMPLEMENTED)
    assert forwarded == 200
    assert [each.body for each in far.recorder.of(signal)] == [body]


def test_a_target_without_logs_still_gets_spans(
    far: Receiving, caplog: pytest.LogCaptureFixture
) -> None:
    far.recorder.refuse = lambda signal: UNKNOWN if signal is LOGS else None
    with running(forward=forward_to(far)) as run:
        for at in range(3):
            body = otlp.request(*tool_trace(f"{at + 1:032x}")).SerializeToString()
            export(run.ports.grpc, body)
            run.wait("otel_eval_spans_scored_total", 2 * (at + 1))
        run.wait("otel_eval_forward_requests_total", 1, signal="logs", result="switched_off")
        answer = export(run.ports.grpc, b"", signal=LOGS)

    assert answer.code is grpc.StatusCode.UNIMPLEMENTED
    assert caplog.text.count("does not take logs") == 1
    assert sum(span.name == "evaluation default" for span in far.recorder.spans) == 3


def test_log_events_may_go_elsewhere(far: Receiving) -> None:
    with receiving() as other:
        emit = {"logs": forward_to(other, "http")}
        with running(forward=forward_to(far), emit=emit) as run:
            export(run.ports.grpc, otlp.request(*tool_trace()).SerializeToString())
            run.wait("otel_eval_forward_requests_total", 1, signal="logs", result="delivered")

        assert len(other.recorder.of(LOGS)) == 1
        assert not far.recorder.of(LOGS)


SEARCHED = {
    "name": "args",
    "evaluators": [
        {"type": "tool-call-args", "tool_calls": [{"name": "search", "args": {"q": "milk"}}]}
    ],
}
MODEL_CALL = {
    "trace_id": TRACE_ID,
    "span_id": "00000000000000bb",
    "parent_span_id": "00000000000000aa",
    "flags": 0x100,
    "name": "chat gpt",
    "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt"},
}


def send_messages_as_logs(run: Running) -> grpc.StatusCode:
    """A log record with what the model call put out: one call of a tool."""
    request = otlp.logs()
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    record.event_name = "gen_ai.client.inference.operation.details"
    record.trace_id, record.span_id = bytes.fromhex(TRACE_ID), bytes.fromhex("00000000000000bb")
    part = '{"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "milk"}}'
    messages = f'[{{"role": "assistant", "parts": [{part}]}}]'
    record.attributes.extend(otlp.attributes({"gen_ai.output.messages": messages}))
    return export(run.ports.grpc, request.SerializeToString(), signal=LOGS).code


def send_spans(run: Running, *spans: dict[str, Any]) -> grpc.StatusCode:
    return export(run.ports.grpc, otlp.request(*spans).SerializeToString()).code


@pytest.mark.parametrize("logs_first", [True, False], ids=["logs first", "spans first"])
def test_messages_in_log_records_feed_the_extraction(far: Receiving, logs_first: bool) -> None:
    steps = [send_messages_as_logs, lambda run: send_spans(run, MODEL_CALL)]
    with running(rules=[SEARCHED], forward=forward_to(far)) as run:
        for step in steps if logs_first else reversed(steps):
            assert step(run) is grpc.StatusCode.OK
        send_spans(run, *tool_trace(tools=[]))
        run.wait("otel_eval_evaluations_total", 1, rule="args", verdict="pass")


def test_they_do_so_where_the_target_does_not_take_logs(far: Receiving) -> None:
    far.recorder.refuse = lambda signal: UNKNOWN if signal is LOGS else None
    with running(rules=[SEARCHED], forward=forward_to(far)) as run:
        export(run.ports.grpc, otlp.logs().SerializeToString(), signal=LOGS)
        run.wait("otel_eval_forward_requests_total", 1, signal="logs", result="switched_off")

        code = send_messages_as_logs(run)
        send_spans(run, MODEL_CALL, *tool_trace(tools=[]))
        run.wait("otel_eval_evaluations_total", 1, rule="args", verdict="pass")

    assert code is grpc.StatusCode.UNIMPLEMENTED


def test_default_clients_lose_nothing_while_they_are_refused_for_3_s() -> None:
    with running() as run:
        run.sidecar._pipeline.draining = True
        again = threading.Timer(3, setattr, (run.sidecar._pipeline, "draining", False))
        providers = [_provider(GrpcExporter(f"127.0.0.1:{run.ports.grpc}", insecure=True))]
        providers += [_provider(HttpExporter(f"http://127.0.0.1:{run.ports.http}/v1/traces"))]

        for provider in providers:
            provider.get_tracer("tests").start_span("work").end()
        again.start()
        with ThreadPoolExecutor() as threads:
            flushed = list(threads.map(lambda each: each.force_flush(), providers))

        assert flushed == [True, True]
        assert run.value("otel_eval_requests_refused_total", protocol="grpc") > 0
        assert run.value("otel_eval_requests_refused_total", protocol="http") > 0
        assert run.value("otel_eval_spans_received_total") == 2
        for provider in providers:
            provider.shutdown()


def _provider(exporter: SpanExporter) -> TracerProvider:
    """As the SDK's documentation makes it."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def test_losses_are_counted_from_zero(far: Receiving) -> None:
    with running(forward=forward_to(far)) as run:
        page = run.page()

    wanted = {
        "otel_eval_spans_dropped_total": ("queue_full", "rejected", "expired", "shutdown"),
        "otel_eval_spans_unevaluated_total": ("not_agent", "shed", "trace_full", "error"),
        "otel_eval_traces_total": ("root", "idle", "age", "size", "capacity", "shutdown"),
        "otel_eval_sessions_total": ("idle", "age", "capacity", "shutdown"),
    }
    for name, values in wanted.items():
        label = "closed_by" if name.startswith(("otel_eval_t", "otel_eval_se")) else "reason"
        for value in values:
            assert f'{name}{{{label}="{value}"}} 0.0' in page


def test_without_a_target_nothing_is_dropped_on_the_way_to_it() -> None:
    with running() as run:
        assert "otel_eval_spans_dropped_total{" not in run.page()


def test_requests_that_must_come_again_are_counted() -> None:
    refused = "otel_eval_requests_refused_total"
    with running() as run:
        before = run.page()
        run.sidecar._pipeline.draining = True
        post(run.ports.http, traces())
        post(run.ports.http, b"", {"Content-Type": "text/plain"})
        export(run.ports.grpc, traces())

        assert f'{refused}{{protocol="grpc",reason="queue_full"}} 0.0' in before
        assert run.value(refused, protocol="http", reason="shutdown") == 1
        assert run.value(refused, protocol="grpc", reason="shutdown") == 1
        assert run.value(refused) == 2


def test_duplicates_are_counted_once() -> None:
    body = otlp.request(*tool_trace()).SerializeToString()
    with running() as run:
        export(run.ports.grpc, body)
        export(run.ports.grpc, body)
        run.wait("otel_eval_spans_duplicate_total", 2)
        run.wait("otel_eval_spans_scored_total", 2)


def test_metrics_are_pushed_where_that_is_asked_for(far: Receiving) -> None:
    metrics = {**forward_to(far), "interval": "1h"}
    with running(emit={"metrics": metrics}) as run:
        export(run.ports.grpc, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_evaluations_total", 2)

    message = METRICS.request.FromString(far.recorder.of(METRICS)[-1].body)
    names = {each.name for each in message.resource_metrics[0].scope_metrics[0].metrics}
    assert {"otel_eval.score", "otel_eval.spans.received"} <= names


def test_a_rule_that_judges_each_call_has_its_events_on_the_calls(far: Receiving) -> None:
    rule = {"name": "each", "evaluators": [{"type": "tests.sidecar.judges:EachCall"}]}
    with running(rules=[rule], forward=forward_to(far, mode="attach")) as run:
        body = otlp.request(*tool_trace(tools=["search", "answer"])).SerializeToString()
        export(run.ports.grpc, body)
        run.wait("otel_eval_spans_forwarded_total", 3)

    events = {span.name: [event.name for event in span.events] for span in far.recorder.spans}
    assert events["execute_tool search"] == ["gen_ai.evaluation.result"]
    assert events["execute_tool answer"] == ["gen_ai.evaluation.result"]
    assert not any(name.startswith("evaluation") for name in events)


def test_what_a_judge_says_later_is_a_span_of_its_own(far: Receiving) -> None:
    rule = {"name": "late", "evaluators": [{"type": "tests.sidecar.judges:Slow"}]}
    with running(rules=[RULE, rule], forward=forward_to(far, mode="attach")) as run:
        export(run.ports.grpc, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_evaluations_total", 1, rule="late")
        run.wait("otel_eval_spans_forwarded_total", 2)

    names = [span.name for span in far.recorder.spans if span.scope.name == "otel_eval"]
    assert names == ["evaluation late"]


def test_a_reload_changes_the_rules_and_says_what_it_does_not_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running(rules=[RULE]) as run:
        sections = {"rules": [{**RULE, "name": "new"}], "grouping": {"settle": "1ms"}}
        new = Config.parse(config_of(**sections))

        run.loop.call(lambda: run.sidecar.reload(lambda: new))
        export(run.ports.grpc, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_evaluations_total", 1, rule="new")

        assert run.value("otel_eval_evaluations_total", rule="flow") == 0
        assert run.value("otel_eval_config_reloads_total", result="success") == 1
    assert "changes of grouping need a restart" in caplog.text


def test_a_public_address_without_a_token_is_warned_of_also_when_a_reload_takes_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    public = {"grpc": {"endpoint": "0.0.0.0:0"}}
    warning = "0.0.0.0:0 is open to more than this machine, and needs no token"
    with running(receivers={**public, "auth": {"bearer_tokens": ["secret"]}}) as run:
        guarded = caplog.text
        run.loop.call(lambda: run.sidecar.reload(lambda: Config.parse(config_of())))
        reloaded = caplog.text
    caplog.clear()
    with running(receivers=public):
        pass

    assert warning not in guarded
    assert warning in reloaded
    assert warning in caplog.text


def test_a_reload_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Config:
        raise ConfigError("rules[0]: no good")

    with running(rules=[RULE]) as run:
        run.loop.call(lambda: run.sidecar.reload(broken))
        export(run.ports.grpc, otlp.request(*tool_trace()).SerializeToString())
        run.wait("otel_eval_evaluations_total", 1, rule="flow")

        assert run.value("otel_eval_config_reloads_total", result="failure") == 1
    assert "stays as it was: rules[0]: no good" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_forwarding_to_itself_is_refused(host: str) -> None:
    forward = {"endpoint": f"http://{host}:4318", "protocol": "http"}

    with loop_thread() as loop, pytest.raises(ConfigError, match="itself"):
        loop.call(lambda: Sidecar(Config.parse({"forward": forward})))
