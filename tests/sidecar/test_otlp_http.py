import gzip
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection

import grpc
import orjson
import pytest
import zstandard
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from starlette.requests import Request

from otel_eval.sidecar import answers, listeners, otlp_http
from otel_eval.sidecar.otlp_http import ConnectionAges
from otel_eval.sidecar.signals import LOGS, METRICS
from otel_eval.sidecar.tokens import Tokens
from tests.sidecar import otlp
from tests.sidecar.otlp import JSON, PROTOBUF, TRACE_ID, Answer, export, json_request, post, traces
from tests.sidecar.servers import Receiving, receiving

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def _shared():
    with receiving() as server:
        yield server


@pytest.fixture
def server(_shared: Receiving) -> Receiving:
    _shared.recorder.arrivals.clear()
    _shared.recorder.refuse = lambda _signal: None
    return _shared


CODINGS = {
    "none": ({}, lambda body: body),
    "identity": ({"Content-Encoding": "identity"}, lambda body: body),
    "gzip": ({"Content-Encoding": "gzip"}, gzip.compress),
    "gzip of two members": (
        {"Content-Encoding": "gzip"},
        lambda body: gzip.compress(body[:7]) + gzip.compress(body[7:]),
    ),
    "deflate": ({"Content-Encoding": "deflate"}, zlib.compress),
    "bare deflate": ({"Content-Encoding": "deflate"}, lambda body: zlib.compress(body, wbits=-15)),
    "zstd": ({"Content-Encoding": "zstd"}, zstandard.compress),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_every_content_coding_is_read_back(server: Receiving, coding: str) -> None:
    headers, pack = CODINGS[coding]

    answer = post(server.ports.http, pack(traces(3)), {**PROTOBUF, **headers})

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"] == "application/x-protobuf"
    assert [span.span_id for span in server.recorder.spans] == [f"{n:016x}" for n in (1, 2, 3)]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_json_is_taken_compressed_too(server: Receiving, coding: str) -> None:
    headers, pack = CODINGS[coding]

    answer = post(server.ports.http, pack(orjson.dumps(json_request())), {**JSON, **headers})

    assert (answer.status, answer.body) == (200, b"{}")
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"traceId": TRACE_ID.upper(), "spanId": "00F067AA0BA902B7"}, id="upper case"),
        pytest.param({"startTimeUnixNano": "1", "endTimeUnixNano": "2"}, id="ints as text"),
        pytest.param({"startTimeUnixNano": 1, "endTimeUnixNano": 2}, id="ints as numbers"),
        pytest.param({"fromTheFuture": {"a": [1]}}, id="unknown fields"),
        pytest.param(
            {"attributes": [{"key": "k", "value": {"stringValue": "x" * 10_240}}]}, id="10 KiB"
        ),
    ],
)
def test_json_of_all_writers_is_read(server: Receiving, fields: dict[str, object]) -> None:
    body = orjson.dumps(json_request(**fields))

    answer = post(server.ports.http, body, {"Content-Type": "application/json; charset=utf-8"})

    assert answer.status == 200
    assert [(each.trace_id, each.span_id) for each in server.recorder.spans] == [
        (TRACE_ID, "00f067aa0ba902b7")
    ]


def test_json_becomes_protobuf_where_that_is_wanted(server: Receiving) -> None:
    server.recorder.protobuf = True
    body = orjson.dumps(json_request(startTimeUnixNano="5", unknownField=1))

    answer = post(server.ports.http, body, JSON)
    server.recorder.protobuf = False

    assert answer.status == 200
    wanted = otlp.request({"trace_id": TRACE_ID, "span_id": "00f067aa0ba902b7", "name": "work"})
    span = wanted.resource_spans[0].scope_spans[0].spans[0]
    span.start_time_unix_nano, span.end_time_unix_nano = 5, 0
    got = type(wanted).FromString(server.recorder.arrivals[0].body)
    assert got.resource_spans[0].scope_spans[0].spans[0] == span


@pytest.mark.parametrize(("headers", "body"), [(PROTOBUF, b""), (JSON, b"{}")])
def test_an_empty_request_is_a_success(
    server: Receiving, headers: dict[str, str], body: bytes
) -> None:
    assert post(server.ports.http, body, headers).status == 200


REFUSALS = {
    "broken protobuf": (PROTOBUF, b"\x0a\xff\xff", 400, code_pb2.INVALID_ARGUMENT),
    "broken JSON": (JSON, b"{", 400, code_pb2.INVALID_ARGUMENT),
    "JSON of another shape": (JSON, b"[1]", 400, code_pb2.INVALID_ARGUMENT),
    "broken gzip": (
        {**PROTOBUF, "Content-Encoding": "gzip"},
        b"\x1f\x8b nothing",
        400,
        code_pb2.INVALID_ARGUMENT,
    ),
    "gzip cut off": (
        {**PROTOBUF, "Content-Encoding": "gzip"},
        gzip.compress(traces(9))[:-9],
        400,
        code_pb2.INVALID_ARGUMENT,
    ),
    "zstd cut off": (
        {**JSON, "Content-Encoding": "zstd"},
        zstandard.compress(b"{}" * 9)[:-3],
        400,
        code_pb2.INVALID_ARGUMENT,
    ),
    "broken zstd": (
        {**JSON, "Content-Encoding": "zstd"},
        b"nothing of that kind",
        400,
        code_pb2.INVALID_ARGUMENT,
    ),
    "unknown coding": (
        {**PROTOBUF, "Content-Encoding": "br"},
        b"x",
        415,
        code_pb2.INVALID_ARGUMENT,
    ),
    "another type": ({"Content-Type": "text/plain"}, b"x", 415, code_pb2.INVALID_ARGUMENT),
    "no type": ({}, b"x", 415, code_pb2.INVALID_ARGUMENT),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_read_is_refused_for_good(server: Receiving, case: str) -> None:
    headers, body, status, code = REFUSALS[case]

    answer = post(server.ports.http, body, headers)

    assert answer.status == status
    in_protobuf = headers.get("Content-Type") == "application/x-protobuf"
    wanted = "application/x-protobuf" if in_protobuf else "application/json"
    assert answer.headers["content-type"] == wanted
    assert answer.error().code == code
    assert answer.error().message
    assert "retry-after" not in answer.headers
    assert not server.recorder.arrivals


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_another_method_is_told_which_to_use(server: Receiving, method: str) -> None:
    answer = post(server.ports.http, b"", PROTOBUF, method=method)

    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_an_unknown_path_names_those_there_are(server: Receiving) -> None:
    answer = post(server.ports.http, traces(), PROTOBUF, path="/v1/profiles")

    assert answer.status == 404
    assert answer.error().code == code_pb2.UNIMPLEMENTED
    assert "/v1/traces" in answer.error().message


def test_a_slash_at_the_end_is_another_path(server: Receiving) -> None:
    answer = post(server.ports.http, traces(), PROTOBUF, path="/v1/traces/")

    assert (answer.status, answer.error().code) == (404, code_pb2.UNIMPLEMENTED)


@pytest.mark.parametrize("headers", [PROTOBUF, JSON], ids=["protobuf", "json"])
def test_overload_asks_to_come_again(server: Receiving, headers: dict[str, str]) -> None:
    server.recorder.refuse = lambda _signal: answers.busy("full")

    answer = post(server.ports.http, b"" if headers == PROTOBUF else b"{}", headers)

    assert answer.status == 503
    assert 1 <= int(answer.headers["retry-after"]) <= 5
    assert answer.error().code == code_pb2.UNAVAILABLE
    assert answer.headers["content-type"] == headers["Content-Type"]


def test_the_body_of_a_refusal_carries_the_same_delay(server: Receiving) -> None:
    server.recorder.refuse = lambda _signal: answers.busy("full")

    answer = post(server.ports.http, traces())

    info = RetryInfo()
    assert Status.FromString(answer.body).details[0].Unpack(info)
    assert info.retry_delay.seconds == int(answer.headers["retry-after"])


def test_a_bug_of_ours_is_no_reason_to_drop_spans(
    server: Receiving, caplog: pytest.LogCaptureFixture
) -> None:
    def explode() -> None:
        raise ZeroDivisionError

    server.recorder.taking = explode
    answer = post(server.ports.http, traces())
    server.recorder.taking = lambda: None

    assert answer.status == 503
    assert "retry-after" in answer.headers
    assert "ZeroDivisionError at test_otlp_http.py" in caplog.text


def test_a_client_that_offers_http_2_is_served_without_a_word(
    server: Receiving, caplog: pytest.LogCaptureFixture
) -> None:
    """As Java's does."""
    upgrade = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": ""}

    answer = post(server.ports.http, traces(), {**PROTOBUF, **upgrade})

    assert answer.status == 200
    assert not caplog.text


@pytest.mark.parametrize("signal", [LOGS, METRICS], ids=lambda signal: signal.name)
@pytest.mark.parametrize("headers", [PROTOBUF, JSON], ids=["protobuf", "json"])
def test_logs_and_metrics_come_in_as_they_are(
    server: Receiving, signal: object, headers: dict[str, str]
) -> None:
    body = b"" if headers == PROTOBUF else b"{}"

    answer = post(server.ports.http, body, headers, path=signal.path)

    assert answer.status == 200
    assert [each.signal for each in server.recorder.arrivals] == [signal]
    assert server.recorder.arrivals[0].body == body


def test_broken_logs_are_refused_here(server: Receiving) -> None:
    answer = post(server.ports.http, b"\x0a\xff\xff", PROTOBUF, path=LOGS.path)

    assert answer.status == 400


@pytest.fixture(scope="module")
def small():
    with receiving(http={"max_message_mib": 1}, grpc={"max_message_mib": 1}) as server:
        yield server


def of_size(size: int) -> bytes:
    """A request of exactly that many bytes."""
    made = otlp.request({"trace_id": TRACE_ID, "span_id": "00f067aa0ba902b7", "name": "x" * size})
    span = made.resource_spans[0].scope_spans[0].spans[0]
    span.name = "x" * (size - (made.ByteSize() - size))
    return made.SerializeToString()


def test_exactly_the_limit_is_taken(small: Receiving) -> None:
    body = of_size(MIB)

    assert len(body) == MIB
    assert post(small.ports.http, body).status == 200


@pytest.mark.parametrize("coding", CODINGS)
def test_one_byte_more_is_too_large(small: Receiving, coding: str) -> None:
    headers, pack = CODINGS[coding]

    answer = post(small.ports.http, pack(of_size(MIB + 1)), {**PROTOBUF, **headers})

    assert answer.status == 413
    assert answer.error().code == code_pb2.RESOURCE_EXHAUSTED
    assert not answer.error().details
    assert "retry-after" not in answer.headers


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_a_bomb_is_stopped_at_the_limit(small: Receiving, coding: str) -> None:
    headers, pack = CODINGS[coding]
    bomb = pack(bytes(200 * MIB))

    answer = post(small.ports.http, bomb, {**PROTOBUF, **headers})

    assert len(bomb) < MIB
    assert answer.status == 413


def test_64_mib_and_one_byte_is_too_large_by_default(server: Receiving) -> None:
    answer = post(server.ports.http, bytes(64 * MIB + 1))

    assert answer.status == 413
    assert answer.error().code == code_pb2.RESOURCE_EXHAUSTED


def test_an_old_connection_is_told_to_close() -> None:
    now = [0.0]
    ages = ConnectionAges(max_age=600, clock=lambda: now[0])
    request = Request({"type": "http", "headers": [], "client": ("10.0.0.1", 4711)})

    young = ages.headers(request)
    now[0] = 601.0

    assert (young, ages.headers(request)) == ({}, {"Connection": "close"})


def test_it_is_answered_before_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, "MAX_AGE_SECONDS", 0.0)

    with receiving() as server:
        answer = post(server.ports.http, traces())

    assert (answer.status, answer.headers["connection"]) == (200, "close")


@contextmanager
def two_that_stop_within_a_body(port: int) -> Iterator[None]:
    """Of the largest size, both."""
    with ExitStack() as opened:
        for _ in range(2):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: {MIB}\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
            connection.sendall(bytes(MIB - 1))
        yield


def test_bodies_that_are_too_much_together_are_refused_for_now(small: Receiving) -> None:
    """Who comes third is up to the server: where it is one of the two, they are sent again."""
    statuses: set[int] = set()
    ends = time.monotonic() + 20
    while 503 not in statuses and time.monotonic() < ends:
        with two_that_stop_within_a_body(small.ports.http):
            statuses |= {post(small.ports.http, of_size(MIB)).status for _ in range(3)}

    assert 503 in statuses
    assert statuses <= {200, 503}


def begin(port: int, path: str = "/v1/traces", **headers: str) -> HTTPConnection:
    """A request of which the first 3 bytes of 100 come."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("POST", path)
    given = {"Content-Type": "application/x-protobuf", "Content-Length": "100", **headers}
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    if "Expect" not in given:
        connection.send(b"abc")
    return connection


def answered(connection: HTTPConnection) -> Answer:
    response = connection.getresponse()
    found = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, b"")
    connection.close()
    return found


def test_a_body_that_does_not_come_may_come_again(
    server: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_http, "BODY_SECONDS", 0.05)

    answer = answered(begin(server.ports.http))

    assert (answer.status, answer.headers["connection"]) == (503, "close")
    assert "retry-after" in answer.headers


REFUSED = {
    "unknown path": ("/v1/nothing", {}, 404),
    "too large": ("/v1/traces", {"Content-Length": "999999999"}, 413),
    "another type": ("/v1/traces", {"Content-Type": "text/plain"}, 415),
    "another coding": ("/v1/traces", {"Content-Encoding": "br"}, 415),
    "broken coding": ("/v1/traces", {"Content-Encoding": "gzip"}, 400),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_does_not_wait_for_its_body_for_ever(
    server: Receiving, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_http, "DRAINED_SECONDS", 0.05)
    path, headers, status = REFUSED[case]

    answer = answered(begin(server.ports.http, path, **headers))

    assert (answer.status, answer.headers["connection"]) == (status, "close")


def test_a_refused_sender_that_asks_first_is_told_at_once(
    server: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_http, "DRAINED_SECONDS", 3600.0)
    server.recorder.refuse = lambda _signal: answers.busy("full")

    answer = answered(begin(server.ports.http, Expect="100-continue"))

    assert (answer.status, answer.headers["connection"]) == (503, "close")


def test_a_refusal_whose_body_came_leaves_the_connection_open(server: Receiving) -> None:
    server.recorder.refuse = lambda _signal: answers.busy("full")

    assert "connection" not in post(server.ports.http, traces()).headers


@pytest.mark.parametrize(("path", "status"), [("/v1/traces", 503), ("/v1/nothing", 404)])
def test_a_slow_upload_is_answered_when_the_server_stops(
    path: str, status: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "GRACE_SECONDS", 0)
    monkeypatch.setattr(otlp_http, "DRAINED_SECONDS", 3600.0)
    with receiving() as server:
        connection = begin(server.ports.http, path, Connection="keep-alive")
        assert post(server.ports.http, traces()).status == 200  # so the other has come in

    answer = answered(connection)

    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert "Exception in ASGI" not in caplog.text


def test_a_bug_in_the_endpoint_itself_is_answered_the_same_way() -> None:
    class Broken(Tokens):
        def accept(self, _authorization: str | None) -> bool:
            raise ZeroDivisionError

    with receiving(tokens=Broken()) as server:
        assert post(server.ports.http, traces()).status == 503
        assert export(server.ports.grpc, traces()).code is grpc.StatusCode.UNAVAILABLE
