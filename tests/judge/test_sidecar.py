"""A judge that does not answer, in a sidecar as an operator runs it."""

import gzip
import http.client
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.extract.captures import CAPTURES
from tests.judge import server
from tests.judge.server import serving
from tests.sidecar.processes import Process, process
from tests.sidecar.running import config_of

LIMIT_SECONDS = 15
SCORED = 'otel_eval_evaluations_total{agent="travel_agent",evaluator="tool-call-count"'


def test_a_stuck_judge_delays_neither_the_other_scores_nor_the_end(tmp_path: Path) -> None:
    asked, released = Event(), Event()

    def think() -> None:
        asked.set()
        released.wait(60)

    evaluators = [
        {"type": "tool-selection-accuracy"},
        {"type": "tool-call-count", "tool_calls_count": {"geocode": ["=", 1]}},
    ]
    with serving(server.first(think, server.says())) as chat, receiving_logs() as logs:
        settings = config_of(
            judge={"model": "openai:local", "base_url": chat.base_url},
            rules=[{"name": "r", "evaluators": evaluators}],
            emit={"logs": {"endpoint": f"http://127.0.0.1:{logs.server_port}", "protocol": "http"}},
        )
        with process(tmp_path, settings) as sidecar:
            send(sidecar, "strands_legacy_seq")
            assert asked.wait(10)
            ends = time.monotonic() + 10
            while SCORED not in sidecar.page():
                assert time.monotonic() < ends

            began = time.monotonic()
            sidecar.signal(signal.SIGTERM)
            sidecar.exit_code()
            took = time.monotonic() - began
        released.set()

    assert took < LIMIT_SECONDS
    assert logs.told("tool-selection-accuracy", "otel_eval.skip.code") == ["timeout"] * 4
    assert logs.told("tool-call-count", "otel_eval.verdict") == ["pass"]


class LogServer(ThreadingHTTPServer):
    """Where log events go."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _LogHandler)
        self.events: list[dict[str, str]] = []

    def told(self, evaluator: str, key: str) -> list[str]:
        """What the events of one evaluator say under this key."""
        name = "gen_ai.evaluation.name"
        return [event[key] for event in self.events if event[name] == evaluator]


class _LogHandler(BaseHTTPRequestHandler):
    server: LogServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
            for record in (each for scope in resource.scope_logs for each in scope.log_records):
                said = {each.key: each.value.string_value for each in record.attributes}
                self.server.events.append(said)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Silence."""


@contextmanager
def receiving_logs() -> Iterator[LogServer]:
    receiver = LogServer()
    thread = Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield receiver
    receiver.shutdown()
    receiver.server_close()
    thread.join(5)


def send(sidecar: Process, capture: str) -> None:
    assert sidecar.ports is not None
    for line in (CAPTURES / f"{capture}.otlp.jsonl").read_bytes().splitlines():
        connection = http.client.HTTPConnection("127.0.0.1", sidecar.ports.http, timeout=10)
        connection.request("POST", "/v1/traces", line, {"content-type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()
