"""A judge that does not answer, in a sidecar as an operator runs it."""

import http.client
import signal
import time
from pathlib import Path
from threading import Event

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
    with serving(server.first(think, server.says())) as chat:
        judge = {"model": "openai:local", "base_url": chat.base_url}
        rules = [{"name": "r", "evaluators": evaluators}]
        with process(tmp_path, config_of(judge=judge, rules=rules)) as sidecar:
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


def send(sidecar: Process, capture: str) -> None:
    assert sidecar.ports is not None
    for line in (CAPTURES / f"{capture}.otlp.jsonl").read_bytes().splitlines():
        connection = http.client.HTTPConnection("127.0.0.1", sidecar.ports.http, timeout=10)
        connection.request("POST", "/v1/traces", line, {"content-type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()
