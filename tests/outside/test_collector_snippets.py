"""The Collector configurations of `deploy/`, run by a real Collector."""

import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.outside import programs
from tests.outside.monitoring import DEPLOY, free_port, started, until
from tests.sidecar import otlp
from tests.sidecar.processes import Process, process
from tests.sidecar.servers import ANY_PORT, Receiving, receiving

SNIPPETS = sorted((DEPLOY / "collector").glob("*.yaml"))
TRACES = 40
SPANS = 3
SESSIONS = 10


@pytest.mark.outside
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda path: path.stem)
def test_a_snippet_is_valid(snippet: Path) -> None:
    command = [programs.collector(), "validate", "--config", snippet]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


@pytest.mark.outside
def test_fan_out_reaches_the_backend_and_otel_eval(tmp_path: Path) -> None:
    with receiving() as backend, receiving() as judge:
        snippet = load("fan-out")
        reach(snippet, "otlp/backend", backend)
        reach(snippet, "otlp/otel-eval", judge)
        with collector(tmp_path, snippet) as port:
            otlp.post(port, otlp.request(*otlp.tool_trace()).SerializeToString())

            until(lambda: backend.recorder.spans and judge.recorder.spans)

    assert len(backend.recorder.spans) == len(judge.recorder.spans) == 2


@pytest.mark.outside
def test_two_replicas_score_each_trace_exactly_once(tmp_path: Path) -> None:
    rule = {"name": "errors", "evaluators": [{"type": "tool-error-rate"}]}

    with replicas(tmp_path, rule) as judges, receiving() as backend:
        with balancing(tmp_path, "loadbalancing-trace", judges, backend) as port:
            send_span_by_span(port)
            until(lambda: scores(judges) >= TRACES)

        spread = [total(judge, "otel_eval_score_count") for judge in judges]
        assert sum(spread) == TRACES
        assert all(spread)
        assert (
            sum(total(each, "otel_eval_traces_total", 'closed_by="root"') for each in judges)
            == TRACES
        )
        assert not sum(total(each, "otel_eval_spans_late_total") for each in judges)
        assert sum(total(each, "otel_eval_spans_scored_total") for each in judges) == TRACES * SPANS


@pytest.mark.outside
def test_two_replicas_score_each_session_exactly_once(tmp_path: Path) -> None:
    rule = {"name": "errors", "per": "session", "evaluators": [{"type": "tool-error-rate"}]}

    with replicas(tmp_path, rule) as judges, receiving() as backend:
        with balancing(tmp_path, "loadbalancing-session", judges, backend) as port:
            send_span_by_span(port)
            until(lambda: scores(judges) >= SESSIONS)

        spread = [total(judge, "otel_eval_score_count") for judge in judges]
        assert sum(spread) == SESSIONS
        assert all(spread)
        assert sum(total(each, "otel_eval_spans_scored_total") for each in judges) == TRACES * SPANS


@contextmanager
def replicas(folder: Path, rule: dict[str, Any]) -> Iterator[list[Process]]:
    config = {
        "receivers": {"otlp": {"grpc": ANY_PORT, "http": ANY_PORT}},
        "admin": ANY_PORT,
        "grouping": {"settle": "3s", "local_settle": "3s", "session_idle": "4s"},
        "rules": [rule],
    }
    with ExitStack() as stack:
        yield [stack.enter_context(process(folder, config)) for _ in range(2)]


@contextmanager
def balancing(folder: Path, name: str, judges: list[Process], backend: Receiving) -> Iterator[int]:
    """The shipped snippet with fixed addresses: there is no name server to ask for replicas."""
    snippet = load(name)
    reach(snippet, "otlp/backend", backend)
    addresses = [f"127.0.0.1:{judge.ports.grpc}" for judge in judges if judge.ports]
    snippet["exporters"]["loadbalancing"]["resolver"] = {"static": {"hostnames": addresses}}
    with collector(folder, snippet) as port:
        yield port


@contextmanager
def collector(folder: Path, config: dict[str, Any]) -> Iterator[int]:
    """Its OTLP/HTTP port."""
    port = free_port()
    protocols = config["receivers"]["otlp"]["protocols"]
    protocols["grpc"]["endpoint"] = "127.0.0.1:0"
    protocols["http"]["endpoint"] = f"127.0.0.1:{port}"
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    file = folder / "collector.yaml"
    file.write_bytes(orjson.dumps(config))
    with started([programs.collector(), "--config", file], "Everything is ready"):
        yield port


def load(name: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((DEPLOY / "collector" / f"{name}.yaml").read_text())
    return config


def reach(config: dict[str, Any], exporter: str, server: Receiving) -> None:
    config["exporters"][exporter]["endpoint"] = f"127.0.0.1:{server.ports.grpc}"


def send_span_by_span(port: int) -> None:
    """Every span in a request of its own, the spans of all traces mixed."""
    spans = [span for number in range(TRACES) for span in trace(number)]
    random.Random(7).shuffle(spans)
    for span in spans:
        assert otlp.post(port, otlp.request(span).SerializeToString()).status == 200


def trace(number: int) -> list[dict[str, Any]]:
    spans = otlp.tool_trace(f"{number + 1:032x}", tools=["search", "buy"])
    for span in spans:
        span["attributes"] = {**span["attributes"], "session.id": f"chat-{number % SESSIONS}"}
    return spans


def scores(judges: list[Process]) -> float:
    return sum(total(judge, "otel_eval_score_count") for judge in judges)


def total(judge: Process, metric: str, label: str = "") -> float:
    lines = re.findall(rf"^{metric}(?:{{(.*)}})? (\S+)$", judge.page(), re.MULTILINE)
    return sum(float(value) for labels, value in lines if label in labels)
