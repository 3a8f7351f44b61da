import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as service
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from otel_eval import config
from otel_eval.config import Config
from otel_eval.sinks.pushed import http_endpoint
from tests.conftest import TRACE_ID
from tests.sinks.builders import evaluation

Received = Queue[tuple[dict[str, str], ExportMetricsServiceRequest]]


class GrpcReceiver(service.MetricsServiceServicer):
    def __init__(self, received: Received) -> None:
        self._received = received

    def Export(self, request: Any, context: Any) -> ExportMetricsServiceResponse:  # noqa: N802  # the protocol's name
        self._received.put((dict(context.invocation_metadata()), request))
        return ExportMetricsServiceResponse()


@pytest.fixture
def received() -> Received:
    return Queue()


@pytest.fixture
def over_grpc(received: Received) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    service.add_MetricsServiceServicer_to_server(GrpcReceiver(received), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop(0).wait()


@pytest.fixture
def over_http(received: Received) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = gzip.decompress(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = ExportMetricsServiceRequest.FromString(body)
            received.put(({**headers, "path": self.path}, request))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Not in the output of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_metrics_are_pushed_with_the_last_values_when_closed(
    protocol: str, received: Received, request: pytest.FixtureRequest
) -> None:
    endpoint = request.getfixturevalue(f"over_{protocol}")
    metrics = {"endpoint": endpoint, "protocol": protocol, "headers": {"X-Team": "agents"}}
    sink = config.pushed_metrics(
        Config.parse({"emit": {"metrics": {**metrics, "interval": "1h"}}}),
        lambda: {"otel_eval.spans.received": {(): 7}},
    )
    assert sink is not None

    sink.emit([evaluation()])
    sink.close()

    headers, pushed = received.get(timeout=10)
    found = {metric.name: metric for metric in pushed.resource_metrics[0].scope_metrics[0].metrics}
    (point,) = found["otel_eval.score"].histogram.data_points
    assert headers["x-team"] == "agents"
    assert found["otel_eval.spans.received"].sum.data_points[0].as_int == 7
    assert point.exemplars[0].trace_id.hex() == TRACE_ID


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://collector:4318", "http://collector:4318/v1/metrics"),
        ("https://host/otlp/", "https://host/otlp/v1/metrics"),
        ("collector:4318", "http://collector:4318/v1/metrics"),
        ("http://collector:4318/v1/metrics", "http://collector:4318/v1/metrics"),
    ],
)
def test_an_http_endpoint_gets_the_path_of_otlp(endpoint: str, url: str) -> None:
    assert http_endpoint(endpoint) == url
