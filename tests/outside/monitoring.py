"""Prometheus, Alertmanager and who they call, on loopback, with the files of `deploy/`."""

import json
import re
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

from tests.outside import programs

DEPLOY = Path(__file__).parents[2] / "deploy"
SHORT = {
    "1m": "1s",
    "2m": "1s",
    "5m": "5s",
    "10m": "3s",
    "15m": "5s",
    "30m": "8s",
    "1h": "10s",
    "6h": "20s",
    "1d": "20s",
    "50h": "40s",
    "7d": "1m",
}
"""The windows of the shipped rules, so that a week passes in a minute."""


def shortened(rules: str) -> str:
    """Every duration of a rule file; those inside the names of recorded series stay."""
    return re.sub(r"\b\d+[mhd]\b", lambda found: SHORT[found[0]], rules)


def until(holds: Callable[[], object], seconds: float = 90.0) -> None:
    """Looks again and again: neither Prometheus nor a scrape page tells when it has something."""
    ends = monotonic() + seconds
    pause = threading.Event()
    while not holds():
        assert monotonic() < ends
        pause.wait(0.3)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@contextmanager
def started(command: Sequence[str | Path], ready: str) -> Iterator[None]:
    """A program that has said, on stderr, that it is ready."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said: list[str] = []
    reading: list[threading.Thread] = []
    try:
        for line in process.stderr:
            said.append(line)
            if ready in line:
                break
        else:
            raise AssertionError("".join(said))
        reading.append(threading.Thread(target=process.stderr.read, daemon=True))
        reading[0].start()
        yield
    finally:
        process.terminate()
        process.wait(20)
        for thread in reading:
            thread.join(5)
        process.stderr.close()


class Api:
    """What Prometheus answers."""

    def __init__(self, port: int) -> None:
        self._root = f"http://127.0.0.1:{port}/api/v1"

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return found

    def exemplars(self, expression: str) -> list[dict[str, str]]:
        span = {"start": "2020-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
        found = self._get("query_exemplars", query=expression, **span)
        return [each["labels"] for series in found for each in series["exemplars"]]

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"{self._root}/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]


def open_metrics(port: int) -> str:
    """A scrape page as Prometheus asks for it, with exemplars."""
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=accept)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text: str = answer.read().decode()
        return text


@contextmanager
def prometheus(folder: Path, *, scrape: Sequence[int], alertmanager: int) -> Iterator[Api]:
    config = (DEPLOY / "prometheus" / "prometheus.yaml").read_text()
    targets = ", ".join(f'"127.0.0.1:{port}"' for port in scrape)
    changes = {
        '"otel-eval:9464"': targets,
        "alertmanager:9093": f"127.0.0.1:{alertmanager}",
        "15s": "1s",
        "1m": "1s",
    }
    (folder / "prometheus.yaml").write_text(replaced(config, changes))
    rules = (DEPLOY / "prometheus" / "otel-eval.rules.yaml").read_text()
    (folder / "otel-eval.rules.yaml").write_text(shortened(rules))
    port = free_port()
    command = [
        programs.prometheus(),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
    ]
    with started(command, "Server is ready to receive web requests"):
        yield Api(port)


@contextmanager
def alertmanager(folder: Path, *, webhook: int) -> Iterator[int]:
    config = (DEPLOY / "prometheus" / "alertmanager.yaml").read_text()
    changes = {
        "on-call:8080": f"127.0.0.1:{webhook}",
        "group_wait: 30s": "group_wait: 1s",
        "group_interval: 5m": "group_interval: 1s",
    }
    (folder / "alertmanager.yaml").write_text(replaced(config, changes))
    port = free_port()
    command = [
        programs.alertmanager(),
        f"--config.file={folder / 'alertmanager.yaml'}",
        f"--storage.path={folder / 'alerts'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with started(command, "Listening"):
        yield port


def replaced(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, f"{old!r} is no longer in the shipped file"
        text = text.replace(old, new)
    return text


class Webhook(ThreadingHTTPServer):
    """Remembers the alerts that Alertmanager sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.alerts: list[dict[str, Any]] = []
        self.came = threading.Condition()

    def take(self, alerts: list[dict[str, Any]]) -> None:
        with self.came:
            self.alerts += alerts
            self.came.notify_all()

    def wait(self, alertname: str, status: str, seconds: float) -> dict[str, Any]:
        """The first alert of that name and status, however long ago it came."""

        def found() -> dict[str, Any] | None:
            told = (each for each in self.alerts if each["labels"]["alertname"] == alertname)
            return next((each for each in told if each["status"] == status), None)

        with self.came:
            assert self.came.wait_for(found, seconds), [each["labels"] for each in self.alerts]
        return found() or {}


class _Handler(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.take(json.loads(body)["alerts"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def webhook() -> Iterator[Webhook]:
    with Webhook() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
