"""OpenTelemetry Collectors as processes: in front of a sidecar, and behind it."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from otel_eval.decode.otlp_json import decode_json
from otel_eval.model import Span


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def collector(program: Path, folder: Path, exporters: dict[str, Any]) -> Iterator[dict[str, int]]:
    """Gives the ports by protocol. When it ends, what the collector holds has been sent."""
    ports = {"grpc": free_port(), "http": free_port()}
    config = folder / "collector.json"
    config.write_bytes(orjson.dumps(_config(ports, exporters)))
    with (folder / "collector.log").open("w") as log:
        started = subprocess.Popen([program, "--config", config], stdout=log, stderr=log)
    try:
        _wait_for(ports["http"])
        yield ports
    finally:
        started.terminate()
        started.wait(20)


def _config(ports: dict[str, int], exporters: dict[str, Any]) -> dict[str, Any]:
    protocols = {name: {"endpoint": f"127.0.0.1:{port}"} for name, port in ports.items()}
    pipeline = {"receivers": ["otlp"], "exporters": list(exporters)}
    return {
        "receivers": {"otlp": {"protocols": protocols}},
        "exporters": exporters,
        "service": {
            "pipelines": {"traces": pipeline, "logs": pipeline},
            "telemetry": {"metrics": {"level": "none"}},
        },
    }


def _wait_for(port: int) -> None:
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"no collector at {port}")


def spans_in(file: Path) -> list[Span]:
    lines = [line for line in file.read_bytes().splitlines() if b"resourceSpans" in line]
    return [span for line in lines for span in decode_json(line)]
