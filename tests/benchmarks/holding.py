"""What open traces take: memory per span, and CPU per span however many are open."""

import tracemalloc
from collections.abc import Iterator
from typing import Final

from otel_eval.decode import decode_protobuf
from otel_eval.engine import Engine, Grouping
from otel_eval.sidecar.garbage import THRESHOLDS
from otel_eval.sinks.prometheus import PrometheusSink
from tests.benchmarks.measure import collecting_seldom, seconds
from tests.benchmarks.pipeline import RULES
from tests.benchmarks.rows import Row
from tests.benchmarks.workload import SPANS_PER_REQUEST, TRACES_PER_REQUEST, Traces

TOOLS: Final = 1
ROOM: Final = 1 << 40
PROBES: Final = 80


def rows(quick: bool) -> Iterator[Row]:
    yield _memory(5 if quick else 100)
    yield from _cost(*((100, 200) if quick else (1_000, 10_000, 100_000)))


def _memory(requests: int) -> Row:
    bodies = Traces().bodies(requests)
    engine = Engine(RULES, background=False, clock=lambda: 0.0)
    engine.feed(decode_protobuf(Traces(2).bodies(1)[0]))
    engine.step(0.0)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for body in bodies:
        engine.feed(decode_protobuf(body))
        engine.step(0.0)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    engine.close()
    wire, spans = sum(map(len, bodies)), requests * SPANS_PER_REQUEST
    return Row(
        what="memory per open span",
        against="size of its OTLP bytes",
        value=taken / wire,
        goal=2.5,
        note=f"{taken / spans:,.0f} bytes, OTLP {wire / spans:,.0f}",
    )


def _cost(fewest: int, *more: int) -> Iterator[Row]:
    """Traces come and close at the same rate, so that their number stays."""
    with collecting_seldom(*THRESHOLDS):
        least = _seconds_per_span(fewest)
        for number in more:
            took = _seconds_per_span(number)
            yield Row(
                what=f"CPU per span with {number:,} open traces",
                against=f"with {fewest:,}",
                value=took / least,
                goal=1.3,
                note=f"{took * 1e6:.1f} µs",
            )


def _seconds_per_span(open_traces: int) -> float:
    requests = open_traces // TRACES_PER_REQUEST
    grouping = Grouping(settle=requests - 0.5, max_open_traces=ROOM, max_buffer_bytes=ROOM)
    engine = Engine(
        RULES, [PrometheusSink()], grouping=grouping, background=False, clock=lambda: 0.0
    )
    traces = Traces()

    def take(first: int, bodies: list[bytes]) -> None:
        for now, body in enumerate(bodies, first):
            engine.feed(decode_protobuf(body))
            engine.step(now)

    for now in range(requests):
        take(now, traces.bodies(1, tools=TOOLS, models=0))
    rounds = [traces.bodies(PROBES, tools=TOOLS, models=0) for _ in range(5)]
    took = [
        seconds(lambda at=requests + PROBES * place, bodies=bodies: take(at, bodies))  # type: ignore[misc]
        for place, bodies in enumerate(rounds)
    ]
    return min(took) / (PROBES * TRACES_PER_REQUEST * (1 + TOOLS))
