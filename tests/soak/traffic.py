"""Agents' traces at a steady rate, and how long each request waited for its acknowledgement."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from threading import Semaphore
from typing import Any, Final

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_eval.sidecar.signals import TRACES
from tests.benchmarks.workload import SPANS_PER_REQUEST, SPANS_PER_TRACE, Traces

IN_FLIGHT: Final = 32
TIMEOUT_SECONDS: Final = 30.0
BREATH_SECONDS: Final = 0.1
ROOT: Final = b"agent_run"
"""In every trace once, and in nothing that we make."""


class Template:
    """One request, over and over, with other ids and the time as it is."""

    def __init__(self) -> None:
        (self._body,) = Traces().bodies(1)
        spans = _spans(self._body)
        self._trace_ids = sorted({span.trace_id for span in spans})
        times = {
            time for span in spans for time in (span.start_time_unix_nano, span.end_time_unix_nano)
        }
        self._times = sorted(times)
        self._random = Random(1)

    def fresh(self) -> bytes:
        """Its last span has just ended."""
        body, now = self._body, time.time_ns()
        for each in self._trace_ids:
            body = body.replace(each, self._random.randbytes(16))
        for each in self._times:
            moved = each - self._times[-1] + now
            body = body.replace(each.to_bytes(8, "little"), moved.to_bytes(8, "little"))
        return body


def _spans(body: bytes) -> Sequence[Any]:
    groups = ExportTraceServiceRequest.FromString(body).resource_spans
    return [span for group in groups for scoped in group.scope_spans for span in scoped.spans]


class Sender:
    """Sends as the clock says; what is refused is counted, and not sent again."""

    behind: Callable[[], bool]
    """While the sidecar is behind, nothing is sent: then the rate is what the machine can."""

    def __init__(self, port: int, *, rate: float) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._export = self._channel.unary_unary(TRACES.method)
        self._pause = SPANS_PER_REQUEST / rate
        self._slots = Semaphore(IN_FLIGHT)
        self._template = Template()
        self.latencies: list[float] = []
        self.refused: Counter[str] = Counter()
        self._began = time.monotonic()
        self.took = 0.0

    @property
    def spans(self) -> int:
        """How many were acknowledged."""
        return len(self.latencies) * SPANS_PER_REQUEST

    @property
    def rate(self) -> float:
        """Of acknowledged spans per second, so far or in the end."""
        return self.spans / (self.took or max(time.monotonic() - self._began, 1.0))

    def send(self, seconds: float) -> None:
        self._began = began = due = time.monotonic()
        while due < began + seconds and time.monotonic() < began + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            if self.behind():
                due = time.monotonic() + BREATH_SECONDS
                continue
            self._send_one()
            due += self._pause
        for _ in range(IN_FLIGHT):
            self._slots.acquire()
        self.took = time.monotonic() - began
        self._channel.close()

    def _send_one(self) -> None:
        self._slots.acquire()
        body, began = self._template.fresh(), time.monotonic()
        answer = self._export.future(body, timeout=TIMEOUT_SECONDS)

        def done(future: Any) -> None:
            if future.code() is grpc.StatusCode.OK:
                self.latencies.append(time.monotonic() - began)
            else:
                self.refused[future.code().name] += 1
            self._slots.release()

        answer.add_done_callback(done)


class Target:
    """Where spans are forwarded to: counts those that agents sent."""

    def __init__(self) -> None:
        self.traces = 0

    @property
    def spans(self) -> int:
        return self.traces * SPANS_PER_TRACE

    def take(self, body: bytes, _context: object) -> bytes:
        self.traces += body.count(ROOT)
        return b""


@contextmanager
def target() -> Iterator[tuple[Target, int]]:
    """Takes traces and logs, one request at a time."""
    found, server = Target(), grpc.server(ThreadPoolExecutor(1))
    handler = grpc.unary_unary_rpc_method_handler(found.take)
    for service in ("trace.v1.TraceService", "logs.v1.LogsService"):
        name = f"opentelemetry.proto.collector.{service}"
        handlers = grpc.method_handlers_generic_handler(name, {"Export": handler})
        server.add_generic_rpc_handlers([handlers])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield found, port
    finally:
        server.stop(0).wait()
