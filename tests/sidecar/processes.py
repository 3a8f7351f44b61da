"""The sidecar as a process of its own, as an operator runs it."""

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from otel_eval.sidecar.ports import Ports
from tests.sidecar.identities import check_identities

_PROGRAM = """
import sys
from otel_eval.config import load
from otel_eval.sidecar.app import serve
path = sys.argv[1]
sys.exit(serve(load(path), banner=lambda text: print(text, flush=True), reload=lambda: load(path)))
"""
_PORT = re.compile(r"(?:http|https)://127\.0\.0\.1:(\d+)")


class Process:
    """Its stderr is read as it comes, so that tests can wait for a line of it."""

    def __init__(self, config: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        self.log: list[str] = []
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.banner = self._read_banner()
        found = [int(port) for port in _PORT.findall("\n".join(self.banner))]
        self.ports = Ports(grpc=found[0], http=found[1], admin=found[2]) if found else None

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read_banner(self) -> list[str]:
        lines: list[str] = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            lines.append(line.rstrip())
            if "/metrics" in line:
                break
        return lines

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._said:
                self.log.append(line.rstrip())
                self._said.notify_all()

    def wait_for_log(self, text: str) -> str:
        def found() -> str | None:
            return next((line for line in self.log if text in line), None)

        with self._said:
            assert self._said.wait_for(found, 15), self.log
        return found() or ""

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def page(self) -> str:
        assert self.ports is not None
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.admin, timeout=10)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def check_identities(self) -> None:
        check_identities(self.page())

    def exit_code(self) -> int:
        code = self._process.wait(20)
        self._reader.join(5)
        return code

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)
        self._reader.join(5)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def process(folder: Path, config: dict[str, object]) -> Iterator[Process]:
    file = folder / "otel-eval.yaml"
    file.write_bytes(orjson.dumps(config))
    started = Process(file)
    try:
        yield started
    finally:
        started.close()
