"""The sidecar as a process, over gRPC on loopback, beside an OpenTelemetry Collector.

Spans per second on one core are spans per second of CPU: both processes may use one core at a time
(the Collector by GOMAXPROCS=1, the sidecar by the interpreter's lock), and CPU time leaves out what
else the machine does. The client is this process, and its time is nobody's.
"""

import os
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc
import yaml

from otel_eval.sidecar.signals import LOGS, TRACES
from tests.benchmarks.measure import best
from tests.benchmarks.pipeline import FLOOR
from tests.benchmarks.rows import Row
from tests.benchmarks.workload import RULE, SPANS_PER_REQUEST, Traces, floor
from tests.sidecar.processes import Process, process
from tests.sidecar.running import config_of

EXPORT: Final = TRACES.method
IN_FLIGHT: Final = 8
SETTLE_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 120.0
TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds, for all spans."""

    cpu: float
    acknowledged: float
    """By the clock, until the client had its last answer."""


Measure: TypeAlias = Callable[[list[bytes], int], Cost]


def rows(quick: bool) -> Iterator[Row]:
    requests, rounds = (20, 1) if quick else (500, 3)
    bodies = Traces().bodies(requests)
    costs: list[dict[str, Cost]] = []
    floors: list[float] = []
    with _target() as target:
        for _ in range(rounds):
            floors.append(_floor(bodies))
            costs.append({name: each(bodies, target) for name, each in _measures().items()})
    found = {name: _least([each[name] for each in costs]) for name in costs[0]}
    yield from _evaluated(found, min(floors), requests * SPANS_PER_REQUEST)
    yield from _journalled(found)


def _floor(bodies: list[bytes]) -> float:
    """Of a tenth of them, several times over."""
    some = bodies[: len(bodies) // 10]
    return 10 * best({"floor": lambda: floor(some)}, 10)["floor"]


def _least(costs: list[Cost]) -> Cost:
    return Cost(min(each.cpu for each in costs), min(each.acknowledged for each in costs))


def _evaluated(found: Mapping[str, Cost], least: float, spans: int) -> Iterator[Row]:
    sidecar, through = found["sidecar"].cpu, found["through"].cpu
    yield Row(
        what=f"sidecar over gRPC, {SPANS_PER_REQUEST} spans per request, CPU per span",
        against=FLOOR,
        value=sidecar / least,
        goal=2.5,
        note=f"{sidecar / spans * 1e6:.1f} µs a span",
    )
    if "collector" not in found:
        yield Row(what="sidecar beside a Collector", note="no Collector: .ci/programs builds one")
        return
    collector, relay = found["collector"].cpu, found["relay"].cpu
    yield Row(
        what="sidecar, spans per second of one core",
        against="Collector, otlp → groupbytrace → nop",
        value=collector / sidecar,
        goal=1.0,
        at_least=True,
        note=f"{spans / sidecar:,.0f}, Collector {spans / collector:,.0f}",
    )
    yield Row(
        what="forward `through` and evaluate, CPU per span",
        against="Collector, otlp → otlp",
        value=through / relay,
        note=f"{through / spans * 1e6:.1f} µs, Collector {relay / spans * 1e6:.1f}",
    )


def _journalled(found: Mapping[str, Cost]) -> Iterator[Row]:
    off = found["sidecar"]
    for sync in ("interval", "always"):
        cost = found[sync]
        note = f"CPU per span {cost.cpu / off.cpu:.2f} ×"
        slower = cost.acknowledged / off.acknowledged
        yield Row(
            what=f"journal, {sync}: until acknowledged", against="off", value=slower, note=note
        )


def _measures() -> dict[str, Measure]:
    own: dict[str, Measure] = {
        "sidecar": lambda bodies, _: _of_sidecar(bodies),
        "through": lambda bodies, target: _of_sidecar(bodies, forward=_forward(target)),
        "interval": lambda bodies, _: _with_journal(bodies, "interval"),
        "always": lambda bodies, _: _with_journal(bodies, "always"),
    }
    program = collector()
    if program is None:
        return own
    grouped = {"groupbytrace": {"wait_duration": f"{SETTLE_SECONDS}s", "num_traces": 100_000}}
    return {
        **own,
        "collector": lambda bodies, _: _of_collector(program, bodies, grouped, {"nop": {}}),
        "relay": lambda bodies, target: _of_collector(program, bodies, {}, _exporter(target)),
    }


def collector() -> Path | None:
    """Where `.ci/programs` puts it."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = Path(home) / "otel-eval-ci" / "collector" / "otelcol"
    return found if found.exists() else None


def _forward(target: int) -> dict[str, Any]:
    endpoint = f"http://127.0.0.1:{target}"
    return {"endpoint": endpoint, "protocol": "grpc", "compression": "none"}


def _exporter(target: int) -> dict[str, Any]:
    tls = {"insecure": True}
    return {"otlp": {"endpoint": f"127.0.0.1:{target}", "tls": tls, "compression": "none"}}


def _with_journal(bodies: list[bytes], sync: str) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        return _of_sidecar(bodies, journal={"path": folder, "sync": sync})


def _of_sidecar(bodies: list[bytes], **sections: Any) -> Cost:
    settle = f"{SETTLE_SECONDS}s"
    grouping = {"settle": settle, "local_settle": settle}
    config = config_of(rules=[RULE], grouping=grouping, **sections)
    with tempfile.TemporaryDirectory() as folder, process(Path(folder), config) as sidecar:
        assert sidecar.ports is not None
        before = cpu_seconds(sidecar.pid)
        took = send(sidecar.ports.grpc, bodies)
        _await_all(sidecar, len(bodies) * SPANS_PER_REQUEST, "forward" in sections)
        return Cost(cpu_seconds(sidecar.pid) - before, took)


def _await_all(sidecar: Process, spans: int, forwards: bool) -> None:
    """The page is read seldom: to write it is work too."""
    wanted = [f"otel_eval_spans_scored_total {float(spans)}"]
    wanted += [f"otel_eval_spans_forwarded_total {float(spans)}"] if forwards else []
    ends = time.monotonic() + PATIENCE_SECONDS
    while not all(line in sidecar.page() for line in wanted):
        assert time.monotonic() < ends, sidecar.page()
        time.sleep(SETTLE_SECONDS / 2)


def _of_collector(
    program: Path, bodies: list[bytes], processors: dict[str, Any], exporters: dict[str, Any]
) -> Cost:
    with _collector(program, processors, exporters) as (pid, port):
        before = cpu_seconds(pid)
        took = send(port, bodies)
        time.sleep(2 * SETTLE_SECONDS)
        return Cost(cpu_seconds(pid) - before, took)


@contextmanager
def _collector(
    program: Path, processors: dict[str, Any], exporters: dict[str, Any]
) -> Iterator[tuple[int, int]]:
    port = free_port()
    pipeline = {
        "receivers": ["otlp"],
        "processors": list(processors),
        "exporters": list(exporters),
    }
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{port}"}}}},
        "processors": processors,
        "exporters": exporters,
        "service": {
            "pipelines": {"traces": pipeline},
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
        },
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(config, file)
        file.flush()
        command = [str(program), "--config", file.name]
        running = subprocess.Popen(command, env={**os.environ, "GOMAXPROCS": "1"})
        try:
            await_port(port)
            yield running.pid, port
        finally:
            running.terminate()
            running.wait(20)


def send(port: int, bodies: list[bytes]) -> float:
    """As raw bytes, a few requests at a time; the seconds until all are acknowledged."""
    began = time.perf_counter()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        export = channel.unary_unary(EXPORT)
        waiting: deque[Any] = deque()
        for body in bodies:
            if len(waiting) >= IN_FLIGHT:
                waiting.popleft().result()
            waiting.append(export.future(body, wait_for_ready=True))
        for each in waiting:
            each.result()
    return time.perf_counter() - began


def await_port(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=30)


@contextmanager
def _target() -> Iterator[int]:
    """Takes what is forwarded, and forgets it."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    handler = grpc.unary_unary_rpc_method_handler(lambda _body, _context: b"")
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(signal.service, {"Export": handler})
            for signal in (TRACES, LOGS)
        ]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def cpu_seconds(pid: int) -> float:
    """User and system time so far, of all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
