"""What the processor costs the agent's own thread, in one run against BatchSpanProcessor.

Both are timed while their threads are running and their queues are far from full; what
the threads do then is not the agent's time, and is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import thread_time_ns
from typing import Final, TypeAlias

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from otel_eval import EvalSpanProcessor
from tests.benchmarks.rows import Row

ROUNDS: Final = 20
TIMES: Final = 20
AT_A_TIME: Final = 50
QUEUE: Final = 65_536
MOST_ON_END: Final = 0.5
MOST_TOGETHER: Final = 1.0

Spans: TypeAlias = tuple[Span, ReadableSpan]
"""A span as on_start gets it, and as on_end does."""


class Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS


@dataclass(slots=True)
class Cost:
    """What some spans at a time took, in ns."""

    on_starts: list[int] = field(default_factory=list)
    on_ends: list[int] = field(default_factory=list)

    @property
    def on_start(self) -> float:
        return median(self.on_starts) / AT_A_TIME

    @property
    def on_end(self) -> float:
        return median(self.on_ends) / AT_A_TIME

    @property
    def together(self) -> float:
        return self.on_start + self.on_end


def time_some(processor: SpanProcessor, spans: Sequence[Spans], cost: Cost) -> None:
    began = thread_time_ns()
    for span, _ in spans:
        processor.on_start(span)
    started = thread_time_ns()
    for _, ended in spans:
        processor.on_end(ended)
    cost.on_ends.append(thread_time_ns() - started)
    cost.on_starts.append(started - began)


def make_spans(tracer: Tracer, count: int) -> list[Spans]:
    """Spans that were started and ended, as a provider hands them to its processors."""
    spans = [tracer.start_span("work") for _ in range(count)]
    for span in spans:
        span.end()
    return [(span, span._readable_span()) for span in spans if isinstance(span, Span)]


def batching() -> SpanProcessor:
    return BatchSpanProcessor(Nowhere(), max_queue_size=QUEUE, max_export_batch_size=QUEUE // 2)


def scoring() -> SpanProcessor:
    return EvalSpanProcessor(meter_provider=MeterProvider(shutdown_on_exit=False))


def compare(rounds: int = ROUNDS) -> tuple[Cost, Cost]:
    """Ours and theirs on the same spans, each first in turn, so that load and cache hit both.

    A few spans at a time: one that starts or ends was just in use, so it is in the cache.
    """
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("benchmark")
    ours, theirs = Cost(), Cost()
    for _ in range(rounds):
        pair = [(scoring(), ours), (batching(), theirs)]
        for processor, _ in pair:
            time_some(processor, make_spans(tracer, 1), Cost())
        for turn in range(TIMES):
            spans = make_spans(tracer, AT_A_TIME)
            for processor, cost in pair if turn % 2 else reversed(pair):
                time_some(processor, spans, cost)
        for processor, _ in pair:
            processor.shutdown()
    return ours, theirs


def rows(quick: bool) -> Iterator[Row]:
    ours, theirs = compare(1 if quick else ROUNDS)
    peer = "BatchSpanProcessor's on_end"
    for what, own, goal in (
        ("on_end of EvalSpanProcessor", ours.on_end, MOST_ON_END),
        ("on_start + on_end of EvalSpanProcessor", ours.together, MOST_TOGETHER),
    ):
        note = f"{own:.0f} ns, {theirs.on_end:.0f}"
        yield Row(what=what, against=peer, value=own / theirs.on_end, goal=goal, note=note)
