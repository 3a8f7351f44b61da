"""The two budgets, with an engine that nobody steps: what is fed stays where it is."""

import asyncio
from collections.abc import Iterator

import pytest

from otel_eval.decode.otlp import decode_protobuf
from otel_eval.engine import Engine, Grouping
from otel_eval.sidecar.forward import Forwarder
from otel_eval.sidecar.intake import Arrival
from otel_eval.sidecar.pipeline import Pipeline
from otel_eval.sidecar.signals import LOGS, TRACES
from tests.sidecar.loops import LoopThread, loop_thread
from tests.sidecar.otlp import traces
from tests.sidecar.targets import Scripted

BUFFER = 100_000


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    with loop_thread() as loop:
        yield loop


def idle_engine() -> Engine:
    grouping = Grouping(max_buffer_bytes=BUFFER, max_trace_bytes=BUFFER)
    return Engine(grouping=grouping, background=False)


def arrival(count: int = 50) -> Arrival:
    body = traces(count)
    return Arrival(signal=TRACES, body=body, spans=decode_protobuf(body))


def holds(pipeline: Pipeline) -> dict[str, float]:
    values = pipeline.snapshot()
    return {
        name.rpartition(".")[2]: sum(each.values())
        for name, each in values.items()
        if name.startswith("otel_eval.spans.")
    }


def test_without_a_target_a_full_evaluation_buffer_refuses() -> None:
    pipeline = Pipeline(idle_engine(), None, max_buffer=BUFFER)

    answers = [asyncio.run(pipeline.take(arrival())) for _ in range(10)]

    refusals = [each for each in answers if each is not None]
    assert {each.http for each in refusals} == {503}
    spans = holds(pipeline)
    assert spans["received"] == spans["open"] == 50 * (10 - len(refusals))
    assert spans["unevaluated"] == 0


def test_a_request_larger_than_the_buffer_is_not_refused_for_ever() -> None:
    pipeline = Pipeline(idle_engine(), None, max_buffer=BUFFER)

    assert asyncio.run(pipeline.take(arrival(5000))) is None
    spans = holds(pipeline)
    assert spans["received"] == spans["open"] == 5000


def test_with_a_target_a_full_evaluation_buffer_forwards_all_the_same(loop: LoopThread) -> None:
    forwarder = loop.call(lambda: Forwarder(Scripted(), max_bytes=10_000_000))
    pipeline = Pipeline(idle_engine(), forwarder, max_buffer=BUFFER)

    answers = {loop.run(pipeline.take(arrival())) for _ in range(10)}

    assert answers == {None}
    spans = holds(pipeline)
    assert spans["received"] == spans["queued"] == 500
    assert spans["unevaluated"] > 0
    assert spans["received"] == spans["open"] + spans["unevaluated"]


def test_a_full_forward_queue_refuses_before_and_after_decoding(loop: LoopThread) -> None:
    forwarder = loop.call(lambda: Forwarder(Scripted(), max_bytes=5_000))
    pipeline = Pipeline(idle_engine(), forwarder, max_buffer=BUFFER)

    first = loop.run(pipeline.take(arrival()))
    second = loop.run(pipeline.take(arrival()))
    before = pipeline.refusal(TRACES, 5_000)

    assert first is None
    assert second is not None
    assert before is not None
    assert {second.http, before.http} == {503}
    assert holds(pipeline)["received"] == 50


def test_while_draining_everything_is_refused_for_now(loop: LoopThread) -> None:
    forwarder = loop.call(lambda: Forwarder(Scripted(), max_bytes=5_000))
    pipeline = Pipeline(idle_engine(), forwarder, max_buffer=BUFFER)
    pipeline.draining = True

    refusals = [pipeline.refusal(signal, 1) for signal in (TRACES, LOGS)]

    assert [each and each.http for each in refusals] == [503, 503]
