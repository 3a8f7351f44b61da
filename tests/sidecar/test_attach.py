"""What is held leaves with its events: many traces in few requests."""

from collections.abc import Iterator

import pytest

from otel_eval.decode import decode_protobuf
from otel_eval.engine import ClosedTrace
from otel_eval.sidecar.attach import Holder
from otel_eval.sidecar.forward import Forwarder
from otel_eval.sinks.event import ResultEvent
from tests.conftest import trajectory
from tests.sidecar import otlp
from tests.sidecar.loops import LoopThread, loop_thread
from tests.sidecar.otlp import tool_trace
from tests.sidecar.targets import Scripted
from tests.sinks.builders import anchor, evaluation

ROOT = "00000000000000aa"
TRACES_HELD = [f"{number:032x}" for number in range(1, 9)]


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    with loop_thread() as loop:
        yield loop


def closed(trace_id: str) -> ClosedTrace:
    told = evaluation(
        trajectory=trajectory(trace_id=trace_id), anchor=anchor(trace_id=trace_id, span_id=ROOT)
    )
    return ClosedTrace(trace_id=trace_id, part=1, span_ids=[ROOT], evaluations=[told])


def test_anchors_of_traces_that_are_scored_at_a_time_leave_in_one_request(
    loop: LoopThread,
) -> None:
    target = Scripted()
    body = otlp.request(*(span for id in TRACES_HELD for span in tool_trace(id)))
    wire = body.SerializeToString()
    spans = decode_protobuf(wire)

    def release() -> tuple[Forwarder, list[int]]:
        forwarder = Forwarder(target, max_bytes=1_000_000)
        forwarder.start()
        holder = Holder(
            forwarder,
            ResultEvent(),
            max_hold=30.0,
            may_anchor=lambda span: span.parent_id is None,
        )
        holder.take(wire, spans, now=0.0)
        queued = [forwarder.queued_spans]
        for trace_id in TRACES_HELD:
            assert not holder.release(closed(trace_id))
            queued.append(forwarder.queued_spans)
        return forwarder, queued

    forwarder, queued = loop.call(release)
    assert loop.run(forwarder.drain(10))

    assert set(queued) == {len(spans)}
    assert (forwarder.forwarded_spans, forwarder.queued_spans, forwarder.bytes) == (16, 0, 0)
    rest, found = [decode_protobuf(parcel.body) for parcel in target.got]
    assert {span.span_id for span in rest} == {f"{1:016x}"}
    assert [span.trace_id for span in found] == TRACES_HELD
    assert [[event.name for event in span.events] for span in found] == [
        ["gen_ai.evaluation.result"]
    ] * len(TRACES_HELD)


def test_what_leaves_when_it_drains_leaves_at_once(loop: LoopThread) -> None:
    target = Scripted()
    wire = otlp.request(*tool_trace()).SerializeToString()

    def drain() -> tuple[Forwarder, int]:
        forwarder = Forwarder(target, max_bytes=1_000_000)
        holder = Holder(forwarder, ResultEvent(), max_hold=30.0, may_anchor=lambda _: True)
        holder.take(wire, decode_protobuf(wire), now=0.0)
        holder.drain()
        return forwarder, len(forwarder._waiting)

    forwarder, waiting = loop.call(drain)

    assert waiting == 1
    assert forwarder.queued_spans == 2
