import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_eval.settings import OtlpTarget
from otel_eval.sidecar import answers
from otel_eval.sidecar.forward import Backoff, Forwarder, Target, connect
from otel_eval.sidecar.parcels import Delivered, Parcel, Rejected, Retry, Unknown
from otel_eval.sidecar.partial import rejected_items
from otel_eval.sidecar.signals import LOGS, TRACES
from otel_eval.sidecar.target_http import _retry_after
from otel_eval.sidecar.tokens import Tokens
from tests.sidecar.certificates import Authority
from tests.sidecar.loops import LoopThread, loop_thread
from tests.sidecar.otlp import json_request, logs, traces
from tests.sidecar.servers import Receiving, receiving
from tests.sidecar.targets import DOWN, UNKNOWN, WRONG, Scripted, flapping, parcel

Protocol = Literal["grpc", "http"]
both = pytest.mark.parametrize("protocol", ["grpc", "http"])


def quick() -> Backoff:
    return Backoff(first=0.01, most=0.02)


def target(port: int, protocol: Protocol, *, scheme: str = "http", **settings: Any) -> Target:
    host = "localhost" if scheme == "https" else "127.0.0.1"
    made = OtlpTarget.model_validate({"protocol": protocol, **settings})
    return connect(f"{scheme}://{host}:{port}", made)


def port_of(server: Receiving, protocol: Protocol) -> int:
    return server.ports.grpc if protocol == "grpc" else server.ports.http


def identity(forwarder: Forwarder, received: int) -> None:
    dropped = sum(forwarder.dropped_spans.values())
    assert received == forwarder.forwarded_spans + dropped + forwarder.queued_spans


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    with loop_thread() as loop:
        yield loop


@pytest.fixture(scope="module")
def _far() -> Iterator[Receiving]:
    with receiving() as server:
        yield server


@pytest.fixture
def far(_far: Receiving) -> Receiving:
    _far.recorder.reset()
    return _far


def forwarding(loop: LoopThread, to: Any, **options: Any) -> Forwarder:
    def make() -> Forwarder:
        made = Forwarder(to(), **{"max_bytes": 1_000_000, "backoff": quick, **options})
        made.start()
        return made

    return loop.call(make)


@both
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_bytes_arrive_as_they_came(
    loop: LoopThread, far: Receiving, protocol: Protocol, compression: str
) -> None:
    body = traces(3) + b"\xfa\x3f\x02hi"
    forwarder = forwarding(
        loop, lambda: target(port_of(far, protocol), protocol, compression=compression)
    )

    loop.call(lambda: forwarder.put(parcel(body, spans=3)))
    drained = loop.run(forwarder.drain(10))

    assert drained
    assert [each.body for each in far.recorder.arrivals] == [body]
    assert (forwarder.forwarded_spans, forwarder.queued_spans, forwarder.bytes) == (3, 0, 0)


def test_json_goes_to_http_as_json(loop: LoopThread, far: Receiving) -> None:
    body = orjson.dumps(json_request())
    forwarder = forwarding(loop, lambda: target(far.ports.http, "http"))

    loop.call(lambda: forwarder.put(Parcel(signal=TRACES, body=body, form="json", spans=1)))
    loop.run(forwarder.drain(10))

    assert [(each.form, each.body) for each in far.recorder.arrivals] == [("json", body)]


@both
def test_headers_are_sent(loop: LoopThread, protocol: Protocol) -> None:
    with receiving(tokens=Tokens(["secret"])) as far:
        headers = {"Authorization": "Bearer secret"}
        forwarder = forwarding(
            loop, lambda: target(port_of(far, protocol), protocol, headers=headers)
        )

        loop.call(lambda: forwarder.put(parcel(traces())))
        loop.run(forwarder.drain(10))

        assert len(far.recorder.spans) == 1


@both
def test_tls_with_a_certificate_of_our_own(
    loop: LoopThread, protocol: Protocol, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    server = {"tls": {**authority.issue(), "client_ca_file": authority.file}}
    ours = {"ca_file": authority.file, **authority.issue("client")}
    with receiving(http=server, grpc=server) as far:
        port = port_of(far, protocol)
        forwarder = forwarding(loop, lambda: target(port, protocol, scheme="https", tls=ours))

        loop.call(lambda: forwarder.put(parcel(traces())))
        loop.run(forwarder.drain(10))

        assert len(far.recorder.spans) == 1


@both
def test_new_certificates_are_shown_from_the_next_connection_on(
    loop: LoopThread, protocol: Protocol, tmp_path: Path
) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    server = {"tls": {**authority.issue(), "client_ca_file": authority.file}}
    ours = {"ca_file": authority.file, **stranger.issue("client")}
    with receiving(http=server, grpc=server) as far:
        port = port_of(far, protocol)
        to = loop.call(lambda: target(port, protocol, scheme="https", tls=ours))
        before = loop.run(to.send(parcel(traces())))

        authority.issue("client")
        after = loop.run(to.send(parcel(traces())))
        loop.run(to.close())

    assert isinstance(before, Retry)
    assert after == Delivered()


@both
def test_a_target_that_flaps_gets_everything_once(
    loop: LoopThread, far: Receiving, protocol: Protocol
) -> None:
    far.recorder.refuse = flapping()
    forwarder = forwarding(loop, lambda: target(port_of(far, protocol), protocol))

    for at in range(20):
        loop.call(lambda at=at: forwarder.put(parcel(traces(first=at + 1))))
    loop.run(forwarder.drain(15))

    arrived = sorted(span.span_id for span in far.recorder.spans)
    assert arrived == [f"{at + 1:016x}" for at in range(20)]
    identity(forwarder, 20)


@both
def test_a_target_that_is_down_gets_everything_when_it_is_back(
    loop: LoopThread, protocol: Protocol
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forwarder = forwarding(loop, lambda: target(port, protocol))
    for at in range(5):
        loop.call(lambda at=at: forwarder.put(parcel(traces(first=at + 1))))
    loop.until(lambda: forwarder.requests["traces", "retried"] >= 4)
    identity(forwarder, 5)

    with receiving(**{protocol: {"endpoint": f"127.0.0.1:{port}"}}) as far:
        loop.until(lambda: forwarder.forwarded_spans == 5)

        assert len(far.recorder.spans) == 5
        loop.run(forwarder.drain(5))


def test_a_slow_target_holds_up_nobody_but_itself(loop: LoopThread, far: Receiving) -> None:
    gate = threading.Event()
    far.recorder.taking = lambda: gate.wait(10)
    forwarder = forwarding(loop, lambda: target(far.ports.http, "http"))

    for at in range(8):
        loop.call(lambda at=at: forwarder.put(parcel(traces(first=at + 1))))
    identity(forwarder, 8)
    waiting = forwarder.queued_spans
    gate.set()
    loop.run(forwarder.drain(10))

    assert waiting == 8
    assert forwarder.forwarded_spans == 8


@both
@pytest.mark.parametrize(
    ("refusal", "kind"), [(DOWN, Retry), (WRONG, Rejected), (UNKNOWN, Unknown)]
)
def test_replies_are_told_apart(
    loop: LoopThread, far: Receiving, protocol: Protocol, refusal: answers.Refusal, kind: type
) -> None:
    far.recorder.refuse = lambda _signal: refusal
    to = loop.call(lambda: target(port_of(far, protocol), protocol))

    reply = loop.run(to.send(parcel(traces())))

    assert isinstance(reply, kind)
    loop.run(to.close())


@both
def test_the_delay_that_a_target_asks_for_is_read(
    loop: LoopThread, far: Receiving, protocol: Protocol
) -> None:
    far.recorder.refuse = lambda _signal: answers.busy("full")
    to = loop.call(lambda: target(port_of(far, protocol), protocol))

    reply = loop.run(to.send(parcel(traces())))

    assert isinstance(reply, Retry)
    assert reply.after in (1.0, 2.0, 3.0)
    loop.run(to.close())


@both
def test_a_connection_that_the_target_closed_is_opened_again(
    loop: LoopThread, protocol: Protocol
) -> None:
    with receiving() as far:
        port = port_of(far, protocol)
        to = loop.call(lambda: target(port, protocol))
        first = loop.run(to.send(parcel(traces())))
    with receiving(**{protocol: {"endpoint": f"127.0.0.1:{port}"}}):
        second = first
        for _ in range(20):
            second = loop.run(to.send(parcel(traces())))
            if isinstance(second, Delivered):
                break
            loop.run(asyncio.sleep(0.1))
        loop.run(to.close())

    assert (first, second) == (Delivered(), Delivered())


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("soon", None), (None, None)],
)
def test_retry_after_in_seconds(header: str | None, seconds: float | None) -> None:
    assert _retry_after(header) == seconds


def test_retry_after_as_a_date_in_the_past_is_now() -> None:
    assert _retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


def test_pauses_double_up_to_a_bound_and_honour_what_is_asked() -> None:
    backoff = Backoff(first=1, most=4)

    pauses = [backoff.next(None) for _ in range(5)]
    asked, capped = backoff.next(10.0), backoff.next(86400.0)

    for pause, top in zip(pauses, [1, 2, 4, 4, 4], strict=True):
        assert top / 2 <= pause <= top
    assert 10.0 <= asked <= 10.5
    assert capped < 61


def test_a_target_that_asks_for_no_pause_is_still_given_one() -> None:
    backoff = Backoff(first=1, most=4)

    pauses = [backoff.next(0.0) for _ in range(4)]

    for pause, top in zip(pauses, [1, 2, 4, 4], strict=True):
        assert top / 2 <= pause <= top


def test_what_a_target_rejects_is_dropped_and_counted(
    loop: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    forwarder = forwarding(loop, lambda: Scripted(Rejected("400 Bad Request")))

    loop.call(lambda: forwarder.put(parcel(spans=4)))
    loop.run(forwarder.drain(5))

    assert dict(forwarder.dropped_spans) == {"rejected": 4}
    assert "400 Bad Request" in caplog.text
    identity(forwarder, 4)


def test_spans_that_a_partial_success_names_are_dropped(loop: LoopThread) -> None:
    forwarder = forwarding(loop, lambda: Scripted(Delivered(rejected=3)))

    loop.call(lambda: forwarder.put(parcel(spans=10)))
    loop.run(forwarder.drain(5))

    assert (forwarder.forwarded_spans, dict(forwarder.dropped_spans)) == (7, {"rejected": 3})


def test_partial_success_is_read_in_both_encodings() -> None:
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 3

    in_protobuf = rejected_items(TRACES, answer.SerializeToString(), "protobuf")
    in_json = rejected_items(TRACES, b'{"partialSuccess": {"rejectedSpans": "3"}}', "json")

    assert (in_protobuf, in_json) == (3, 3)
    assert rejected_items(TRACES, b"", "json") == rejected_items(TRACES, b"<html>", "json") == 0


def test_what_is_never_taken_expires(loop: LoopThread) -> None:
    forwarder = forwarding(loop, lambda: Scripted(*[Retry("down")] * 100), expires=0.03)

    loop.call(lambda: forwarder.put(parcel(spans=2)))
    loop.until(lambda: not forwarder.queued_spans)

    assert dict(forwarder.dropped_spans) == {"expired": 2}
    loop.run(forwarder.drain(1))


def test_what_is_left_when_time_runs_out_is_dropped_by_shutdown(loop: LoopThread) -> None:
    def closed() -> Scripted:
        made = Scripted()
        made.open.clear()
        return made

    forwarder = forwarding(loop, closed)
    for _ in range(9):
        loop.call(lambda: forwarder.put(parcel(spans=1)))
    drained = loop.run(forwarder.drain(0.05))

    assert not drained
    assert dict(forwarder.dropped_spans) == {"shutdown": 9}
    identity(forwarder, 9)
    assert forwarder.bytes == 0


def test_the_queue_is_bounded_in_bytes(loop: LoopThread) -> None:
    def closed() -> Scripted:
        made = Scripted()
        made.open.clear()
        return made

    forwarder = forwarding(loop, closed, max_bytes=100)

    alone = forwarder.fits(1000)
    loop.call(lambda: forwarder.put(parcel(b"x" * 60)))
    fits = forwarder.fits(40), forwarder.fits(41)
    forwarder.put_soon(Parcel(signal=TRACES, body=b"x" * 41))
    loop.until(lambda: forwarder.requests["traces", "queue_full"] == 1)

    assert alone
    assert fits == (True, False)
    loop.run(forwarder.drain(0))


@both
def test_a_target_without_logs_switches_them_off_with_one_warning(
    loop: LoopThread, far: Receiving, protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    far.recorder.refuse = lambda signal: UNKNOWN if signal is LOGS else None
    forwarder = forwarding(loop, lambda: target(port_of(far, protocol), protocol))
    record = Parcel(signal=LOGS, body=logs().SerializeToString())

    for _ in range(3):
        loop.call(lambda: forwarder.put(record))
    forwarder.put_soon(record)
    loop.call(lambda: forwarder.put(parcel(traces())))
    loop.run(forwarder.drain(10))

    assert forwarder.is_off(LOGS)
    assert forwarder.requests["logs", "switched_off"] == 4
    assert caplog.text.count("does not take logs") == 1
    assert len(far.recorder.spans) == 1


def test_traces_are_never_switched_off(loop: LoopThread) -> None:
    forwarder = forwarding(loop, lambda: Scripted(Unknown("404 Not Found")))

    loop.call(lambda: forwarder.put(parcel()))
    loop.until(lambda: not forwarder.queued_spans)
    loop.call(lambda: forwarder.put(parcel()))
    loop.run(forwarder.drain(5))

    assert (forwarder.forwarded_spans, dict(forwarder.dropped_spans)) == (1, {"rejected": 1})


def test_a_bug_in_a_client_does_not_end_a_sender(loop: LoopThread) -> None:
    class Broken(Scripted):
        async def send(self, parcel: Parcel) -> Any:
            if not self.got:
                self.got.append(parcel)
                raise ZeroDivisionError
            return await super().send(parcel)

    forwarder = forwarding(loop, Broken)

    loop.call(lambda: forwarder.put(parcel()))
    loop.run(forwarder.drain(5))

    assert forwarder.forwarded_spans == 1
