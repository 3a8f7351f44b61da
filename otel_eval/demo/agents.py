"""The sample agents at work: threads that follow their scripts and make spans with the SDK."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import cycle
from threading import Event, Thread
from typing import Final, Literal

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span, format_trace_id

from otel_eval.demo import scripts
from otel_eval.demo.scripts import Run, Step
from otel_eval.demo.writing import GenAI, OpenInference, Opening, Plain, Traceloop, Writing

BATCH_MS: Final = 300
THINKING_SECONDS: Final = 0.05
CALM_SECONDS: Final = 1.6
FURIOUS_SECONDS: Final = 0.1
"""Between two runs: several a second, as of an agent that retries whatever it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An agent of the demo: which words its spans are in, and which door they come through."""

    name: str
    about: str
    writing: Writing
    protocol: Literal["grpc", "http"]
    runs: Sequence[Run]
    bad_runs: Sequence[Run] = ()
    trouble: str = ""
    """What is different in its bad runs."""


SAMPLES: Final = (
    Sample(
        name="weather-agent",
        about="tells the weather",
        writing=GenAI(),
        protocol="grpc",
        runs=scripts.WEATHER,
    ),
    Sample(
        name="research-agent",
        about="reads the web",
        writing=OpenInference(),
        protocol="http",
        runs=scripts.RESEARCH,
    ),
    Sample(
        name="billing-agent",
        about="pays invoices",
        writing=Traceloop(),
        protocol="grpc",
        runs=scripts.BILLING,
    ),
    Sample(
        name="support-agent",
        about="refunds orders",
        writing=Plain(),
        protocol="http",
        runs=scripts.SUPPORT,
        bad_runs=scripts.RUNAWAY,
        trouble="repeats a refund that fails, skips other steps",
    ),
)


class ToolError(Exception):
    """What a tool of the demo answers when it cannot do what it is asked to."""


class Agent:
    """Works from `start` to `stop`; from `go_bad` on by its bad script."""

    def __init__(self, sample: Sample, exporters: Iterable[SpanExporter]) -> None:
        self.sample = sample
        self._writing = sample.writing
        self._provider = _provider(sample.name, exporters)
        self._tracer = self._provider.get_tracer(sample.writing.scope)
        self._bad = Event()
        self._stopped = Event()
        self._thread = Thread(target=self._work, name=sample.name, daemon=True)
        self.trace_id: str | None = None
        """Of its last run that ended."""
        self.bad_trace_id: str | None = None
        """Of its first bad run."""

    def start(self) -> None:
        self._thread.start()

    def go_bad(self) -> None:
        self._bad.set()

    def stop(self) -> None:
        """The run under way comes to its end, in no time."""
        self._stopped.set()

    def close(self) -> None:
        """Send what waits."""
        if self._thread.is_alive():
            self._thread.join()
        self._provider.shutdown()

    def _work(self) -> None:
        good, bad = cycle(self.sample.runs), cycle(self.sample.bad_runs)
        while not self._stopped.is_set():
            if self._bad.is_set():
                self.trace_id = self._perform(next(bad))
                self.bad_trace_id = self.bad_trace_id or self.trace_id
                self._stopped.wait(FURIOUS_SECONDS)
            else:
                self.trace_id = self._perform(next(good))
                self._stopped.wait(CALM_SECONDS)

    def _perform(self, run: Run) -> str:
        with self._span(self._writing.agent(self.sample.name, run)) as span:
            for step in run.steps:
                self._think()
                self._try(step)
            self._think()
            span.set_attributes(self._writing.answer(run))
            return format_trace_id(span.get_span_context().trace_id)

    def _think(self) -> None:
        opening = self._writing.model()
        if opening is not None:
            with self._span(opening):
                self._stopped.wait(THINKING_SECONDS)

    def _try(self, step: Step) -> None:
        """The SDK itself records the error on the tool's span; the agent goes on."""
        with suppress(ToolError), self._span(self._writing.tool(step)) as span:
            self._stopped.wait(step.seconds)
            if step.error is not None:
                raise ToolError(step.error)
            span.set_attributes(self._writing.result(step))

    def _span(self, opening: Opening) -> AbstractContextManager[Span]:
        return self._tracer.start_as_current_span(
            opening.name, kind=opening.kind, attributes=opening.attributes
        )


def _provider(service: str, exporters: Iterable[SpanExporter]) -> TracerProvider:
    provider = TracerProvider(
        sampler=ALWAYS_ON, resource=Resource({"service.name": service}), shutdown_on_exit=False
    )
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=BATCH_MS))
    return provider
