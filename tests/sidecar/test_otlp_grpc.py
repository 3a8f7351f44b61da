import gzip
import zlib

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otel_eval.sidecar import answers, otlp_grpc
from otel_eval.sidecar.compression import pack
from otel_eval.sidecar.signals import LOGS, METRICS, SIGNALS, TRACES, Signal
from otel_eval.sidecar.tokens import Tokens
from tests.sidecar.http2 import go_away_of, grpc_status
from tests.sidecar.otlp import export, traces
from tests.sidecar.servers import Receiving, receiving

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def _shared():
    with receiving(grpc={"max_message_mib": 1}) as server:
        yield server


@pytest.fixture
def server(_shared: Receiving) -> Receiving:
    _shared.recorder.arrivals.clear()
    _shared.recorder.refuse = lambda _signal: None
    return _shared


@pytest.mark.parametrize(
    "compression",
    [None, grpc.Compression.Gzip, grpc.Compression.Deflate],
    ids=["none", "gzip", "deflate"],
)
def test_spans_come_in(server: Receiving, compression: grpc.Compression | None) -> None:
    answer = export(server.ports.grpc, traces(3), compression=compression)

    assert (answer.code, answer.body) == (grpc.StatusCode.OK, b"")
    assert len(server.recorder.spans) == 3


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda signal: signal.name)
def test_an_empty_request_is_a_success(server: Receiving, signal: Signal) -> None:
    answer = export(server.ports.grpc, b"", signal=signal)

    assert answer.code is grpc.StatusCode.OK
    assert [each.signal for each in server.recorder.arrivals] == [signal]


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda signal: signal.name)
@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\xff\xff",
        gzip.compress(traces())[:-9],
        b"\x1f\x8b nothing",
        zlib.compress(traces())[:-5],
        b"\x78\x9c nothing",
        gzip.compress(b"\x0a\xff\xff"),
    ],
    ids=["cut", "gzip cut", "no gzip", "deflate cut", "no deflate", "packed well"],
)
def test_what_is_no_protobuf_is_an_invalid_argument(
    server: Receiving, signal: Signal, body: bytes
) -> None:
    answer = export(server.ports.grpc, body, signal=signal)

    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    details = Status.FromString(answer.trailers["grpc-status-details-bin"])
    assert (details.code, details.message) == (3, answer.message)
    assert "google.rpc.retryinfo-bin" not in answer.trailers


def test_overload_carries_the_delay_in_both_trailers(server: Receiving) -> None:
    server.recorder.refuse = lambda _signal: answers.busy("full")

    answer = export(server.ports.grpc, traces())

    assert (answer.code, answer.message) == (grpc.StatusCode.UNAVAILABLE, "full")
    packed = RetryInfo()
    assert Status.FromString(answer.trailers["grpc-status-details-bin"]).details[0].Unpack(packed)
    assert RetryInfo.FromString(answer.trailers["google.rpc.retryinfo-bin"]) == packed
    assert 1 <= packed.retry_delay.seconds <= 5


def test_a_bug_of_ours_is_no_reason_to_drop_spans(server: Receiving) -> None:
    def explode() -> None:
        raise ZeroDivisionError

    server.recorder.taking = explode
    answer = export(server.ports.grpc, traces())
    server.recorder.taking = lambda: None

    assert answer.code is grpc.StatusCode.UNAVAILABLE
    assert "google.rpc.retryinfo-bin" in answer.trailers


@pytest.mark.parametrize("signal", [LOGS, METRICS], ids=lambda signal: signal.name)
def test_what_is_not_offered_is_unimplemented(server: Receiving, signal: Signal) -> None:
    server.recorder.refuse = lambda _signal: answers.unimplemented("not here")

    assert export(server.ports.grpc, b"", signal=signal).code is grpc.StatusCode.UNIMPLEMENTED


def test_an_unknown_service_is_unimplemented(server: Receiving) -> None:
    answer = export(server.ports.grpc, b"", method="/some.Other/Export")

    assert answer.code is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("size", "compression"),
    [
        pytest.param(MIB + 1, None, id="one byte more"),
        pytest.param(MIB + 1, grpc.Compression.Gzip, id="one byte more, gzip"),
        pytest.param(50 * MIB, grpc.Compression.Gzip, id="gzip bomb"),
        pytest.param(50 * MIB, grpc.Compression.Deflate, id="deflate bomb"),
    ],
)
def test_too_large_is_refused_for_good(
    server: Receiving, size: int, compression: grpc.Compression | None
) -> None:
    answer = export(server.ports.grpc, bytes(size), compression=compression)

    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in answer.trailers
    assert not Status.FromString(answer.trailers.get("grpc-status-details-bin", b"")).details


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("left", [4, -5], ids=["head only", "tail cut"])
def test_a_compressed_message_that_was_cut_is_an_invalid_argument(
    server: Receiving, encoding: str, left: int
) -> None:
    body = pack(traces(9), encoding)

    assert grpc_status(server.ports.grpc, TRACES.method, body[:left], encoding) == 3
    assert grpc_status(server.ports.grpc, TRACES.method, body, encoding) == 0


def test_a_packed_message_needs_its_token_too() -> None:
    with receiving(tokens=Tokens(["right"])) as server:
        answers_ = [
            export(server.ports.grpc, traces(9), token=token, compression=grpc.Compression.Gzip)
            for token in ("wrong", "right")
        ]

    codes = [each.code for each in answers_]
    assert codes == [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.OK]


@pytest.mark.parametrize(
    "compression", [grpc.Compression.Gzip, grpc.Compression.Deflate], ids=["gzip", "deflate"]
)
def test_the_official_exporter_compresses(server: Receiving, compression: grpc.Compression) -> None:
    endpoint = f"http://127.0.0.1:{server.ports.grpc}"
    provider = TracerProvider()
    provider.add_span_processor(
        SimpleSpanProcessor(OTLPSpanExporter(endpoint, compression=compression))
    )

    provider.get_tracer("tests").start_span("work", attributes={"text": "x" * 5000}).end()
    provider.shutdown()

    assert [span.name for span in server.recorder.spans] == ["work"]


def test_a_connection_that_has_lasted_long_is_asked_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_grpc, "MINUTE_MS", 5)

    with receiving() as server:
        assert go_away_of(server.ports.grpc).endswith(b"max_age")


def test_a_large_request_is_decoded_beside_the_loop(server: Receiving) -> None:
    answer = export(server.ports.grpc, traces(6000))

    assert answer.code is grpc.StatusCode.OK
    assert len(server.recorder.spans) == 6000
