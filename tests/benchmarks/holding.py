"""What open traces take: memory per span, and CPU per span however many are open."""

import tracemalloc
from collections.abc import Iterator, Sequence
from functools import partial
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


def rows(quick: bool) -> Iterator[Row]:
    yield _memory(5 if quick else 100)
    if quick:
        yield from _cost((100, 200), probes=4, rounds=1)
    else:
        yield from _cost((1_000, 10_000, 100_000), probes=80, rounds=7)


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


def _cost(numbers: Sequence[int], *, probes: int, rounds: int) -> Iterator[Row]:
    with collecting_seldom(*THRESHOLDS):
        found = _seconds_per_span(numbers, probes, rounds)
    fewest, *more = numbers
    for number in more:
        yield Row(
            what=f"CPU per span with {number:,} open traces",
            against=f"with {fewest:,}",
            value=found[number] / found[fewest],
            goal=1.3,
            note=f"{found[number] * 1e6:.1f} µs",
        )


def _seconds_per_span(numbers: Sequence[int], probes: int, rounds: int) -> dict[int, float]:
    """The least of some rounds, each of them with every number of open traces."""
    engines = {number: _Filled(number) for number in numbers}
    least = dict.fromkeys(numbers, float("inf"))
    for _ in range(rounds):
        for number, engine in engines.items():
            bodies = engine.bodies(probes)
            least[number] = min(least[number], seconds(partial(engine.take, bodies)))
    spans = probes * TRACES_PER_REQUEST * (1 + TOOLS)
    return {number: each / spans for number, each in least.items()}


class _Filled:
    """An engine with so many open traces: they come and close at the same rate."""

    def __init__(self, open_traces: int) -> None:
        requests = open_traces // TRACES_PER_REQUEST
        grouping = Grouping(settle=requests - 0.5, max_open_traces=ROOM, max_buffer_bytes=ROOM)
        self._engine = Engine(
            RULES, [PrometheusSink()], grouping=grouping, background=False, clock=lambda: 0.0
        )
        self._traces = Traces()
        self._now = 0
        for _ in range(requests):
            self.take(self.bodies(1))

    def bodies(self, count: int) -> list[bytes]:
        return self._traces.bodies(count, tools=TOOLS, models=0)

    def take(self, bodies: list[bytes]) -> None:
        for body in bodies:
            self._engine.feed(decode_protobuf(body))
            self._engine.step(self._now)
            self._now += 1
