"""From an agent's spans to a message about them, with the shipped files and nothing faked."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.outside.dashboards import queries
from tests.outside.monitoring import (
    DEPLOY,
    Api,
    Webhook,
    alertmanager,
    open_metrics,
    prometheus,
    until,
    webhook,
)
from tests.sidecar import otlp
from tests.sidecar.processes import Process, process
from tests.sidecar.servers import ANY_PORT, Receiving, receiving
from tests.sidecar.targets import WRONG

PATIENCE = 90.0
BASELINE = "agent_rule_evaluator:otel_eval_score:mean_baseline"


@contextmanager
def agent(port: int, *, bad: int) -> Iterator[None]:
    """The demo agent, ten traces a second."""
    command = [sys.executable, DEPLOY / "demo" / "agent.py", "--every=0.1", f"--bad={bad}"]
    endpoint = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_INSECURE": "true",
    }
    running = subprocess.Popen(command, env={**os.environ, **endpoint})
    try:
        yield
    finally:
        running.terminate()
        running.wait(20)


@dataclass(frozen=True)
class Site:
    sidecar: Process
    target: Receiving
    prometheus: Api
    on_call: Webhook

    @property
    def port(self) -> int:
        assert self.sidecar.ports is not None
        return self.sidecar.ports.grpc


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with (
        receiving() as target,
        process(tmp_path, configuration(target)) as sidecar,
        webhook() as on_call,
        alertmanager(tmp_path, webhook=on_call.server_port) as alerts,
    ):
        assert sidecar.ports is not None
        with prometheus(tmp_path, scrape=[sidecar.ports.admin], alertmanager=alerts) as api:
            yield Site(sidecar, target, api, on_call)


def configuration(target: Receiving) -> dict[str, object]:
    return {
        "receivers": {"otlp": {"grpc": ANY_PORT, "http": ANY_PORT}},
        "admin": ANY_PORT,
        "grouping": {"settle": "100ms", "local_settle": "100ms", "idle": "1s"},
        "forward": {"endpoint": f"http://127.0.0.1:{target.ports.grpc}"},
        "rules": [
            {
                "name": "weather",
                "match": {"agent": "*"},
                "evaluators": [{"type": "tool-error-rate"}, {"type": "tool-args-schema"}],
            }
        ],
    }


@pytest.mark.outside
def test_a_drop_of_scores_reaches_whoever_is_on_call_and_ends(site: Site) -> None:
    lose_a_request(site)

    with agent(site.port, bad=0):
        until(lambda: site.prometheus.query(BASELINE))
    with agent(site.port, bad=1):
        told = site.on_call.wait("OtelEvalScoreDrop", "firing", PATIENCE)
        check_the_dashboard(site.prometheus)
    with agent(site.port, bad=0):
        site.on_call.wait("OtelEvalScoreDrop", "resolved", PATIENCE)

    assert told["labels"]["agent"] == "weather-agent"
    assert told["labels"]["rule"] == "weather"
    assert "baseline of 7 days is 1.00" in told["annotations"]["description"]
    check_the_exemplars(site)


def lose_a_request(site: Site) -> None:
    """A span of no agent, which the target does not take: for the panels about such spans."""
    assert site.sidecar.ports is not None
    site.target.recorder.refuse = lambda _signal: WRONG
    otlp.post(site.sidecar.ports.http, otlp.traces())
    until(lambda: "otel_eval_spans_dropped_total{" in site.sidecar.page())
    site.target.recorder.refuse = lambda _signal: None


def check_the_dashboard(api: Api) -> None:
    for query in queries():
        found = api.query(query.expression)
        assert found, query
        assert query.labels <= set(found[0]["metric"]), query


def check_the_exemplars(site: Site) -> None:
    """In the store of Prometheus and on the page: traces that the target was handed."""
    real = {span.trace_id for span in site.target.recorder.spans}
    stored = site.prometheus.exemplars("otel_eval_score_bucket")
    assert site.sidecar.ports is not None
    page = open_metrics(site.sidecar.ports.admin)
    families = text_string_to_metric_families(page)
    shown = [
        sample.exemplar.labels for each in families for sample in each.samples if sample.exemplar
    ]

    assert stored
    assert shown
    assert {labels["trace_id"] for labels in stored + shown} <= real
