"""Agents that keep sending whole traces, and what of it must be found at the target."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import count

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_eval.model import Span
from otel_eval.sidecar.intake import Arrival
from otel_eval.sidecar.signals import LOGS, TRACES
from tests.sidecar.otlp import request, tool_trace

OWN = "otel_eval"


def trace_id(number: int) -> str:
    return f"{number:032x}"


def requests_of(number: int) -> list[bytes]:
    """A trace in two requests, the root in the second."""
    first, *rest = tool_trace(trace_id(number), tools=["search", "answer"])
    return [request(first).SerializeToString(), request(*rest).SerializeToString()]


class Load:
    """Sends from threads of its own until it is stopped; a trace counts once all of it is taken."""

    def __init__(self, threads: int = 3) -> None:
        self._numbers = count(1)
        self._size = threads
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._some = threading.Condition()
        self.acknowledged: set[str] = set()
        self.codes: Counter[grpc.StatusCode] = Counter()

    def start(self, port: int) -> None:
        self._stop.clear()
        self._threads = [
            threading.Thread(target=self._send, args=(port,)) for _ in range(self._size)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, traces: int) -> None:
        """Until that many more are acknowledged."""
        with self._some:
            wanted = len(self.acknowledged) + traces
            assert self._some.wait_for(lambda: len(self.acknowledged) >= wanted, 20), self.codes

    def wait_for_refusals(self, requests: int) -> None:
        with self._some:
            wanted = self.codes.total() + requests
            assert self._some.wait_for(lambda: self.codes.total() >= wanted, 20)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(20)

    def _send(self, port: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_reconnect_backoff_ms", 100)]
        with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
            call = channel.unary_unary(TRACES.method)
            while not self._stop.is_set():
                self._send_trace(call, next(self._numbers))

    def _send_trace(self, call: Callable[..., bytes], number: int) -> None:
        for body in requests_of(number):
            try:
                call(body, timeout=5)
            except grpc.RpcError as error:
                with self._some:
                    self.codes[error.code()] += 1
                    self._some.notify_all()
                return
        with self._some:
            self.acknowledged.add(trace_id(number))
            self._some.notify_all()


def spans_by_trace(spans: Iterable[Span], *, own: bool = False) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for span in spans:
        if (span.scope.name == OWN) is own:
            found[span.trace_id].add(span.span_id)
    return found


def log_events(arrivals: Iterable[Arrival]) -> Counter[tuple[str, str, int]]:
    """Our log events by trace, evaluator and part."""
    found: Counter[tuple[str, str, int]] = Counter()
    for arrival in arrivals:
        if arrival.signal is not LOGS:
            continue
        for resource in ExportLogsServiceRequest.FromString(arrival.body).resource_logs:
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    values = {pair.key: pair.value for pair in record.attributes}
                    name = values["gen_ai.evaluation.name"].string_value
                    part = values["otel_eval.part"].int_value
                    found[record.trace_id.hex(), name, part] += 1
    return found
