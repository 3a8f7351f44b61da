"""Scores inside the agent's process: one line added to its tracer provider."""

from collections.abc import Iterable

from opentelemetry._logs import LoggerProvider
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import TracerProvider

from otel_eval.assembly import Given, OnEvaluation, make_engine, read_config
from otel_eval.engine import OWN_SCOPE
from otel_eval.exits import EXIT_SECONDS, LAST_SECONDS, before_exit
from otel_eval.rules import Rule
from otel_eval.sinks.span_events import Deliver, SpanEventSink, processors_of

SAMPLED = 1


class EvalSpanProcessor(SpanProcessor):
    """Scores every agent trace as soon as it has no open span.

    Scores are recorded with the global providers unless others are handed in. Span events are on
    spans of their own, given to the processors of the provider that this one is registered with.
    It puts itself before them, so that a flush or a shutdown of the provider sends these spans too.
    """

    def __init__(
        self,
        config: Given = None,
        *,
        rules: Iterable[Rule] | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        tracer_provider: TracerProvider | None = None,
        on_evaluation: OnEvaluation | None = None,
    ) -> None:
        settings = read_config(config, rules)
        self._engine = make_engine(
            settings,
            settings.grouping_limits(),
            meter_provider=meter_provider,
            logger_provider=logger_provider,
            on_evaluation=on_evaluation,
        )
        self._others = processors_of(tracer_provider)
        self._finds_others = tracer_provider is None
        if "span" in settings.emit.events:
            form = settings.result_event()
            self._engine.add_sink(SpanEventSink(deliver=self._hand_on, form=form))
        self._is_new = True
        self._is_prepared = False
        self._started = self._engine.started
        self._ended: Deliver = self._engine.ended

    # Both are in the agent's own thread: a span's context is a tuple, and read as one.

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """The trace stays open until this span ends."""
        try:
            context = span._context
        except AttributeError:  # no span of the SDK's own class
            context = span.get_span_context()
        if context and context[3] & SAMPLED:
            self._started(context[0], context[1])
            if self._is_new:
                self._see_first(span)

    def on_end(self, span: ReadableSpan) -> None:
        """An append; the scoring is done elsewhere."""
        try:
            context = span._context
        except AttributeError:
            context = span.get_span_context()
        if context and context[3] & SAMPLED:
            self._ended(span)
            if self._is_new:
                self._prepare_exit()

    def force_flush(self, timeout_millis: int | None = 30_000) -> bool:
        """Score every trace whose root ended, at once; the others stay open."""
        return self._engine.flush(_seconds(timeout_millis))

    def shutdown(self) -> None:
        """Score what is open, by `root` or by `shutdown`, and take nothing more."""
        self._close(EXIT_SECONDS + LAST_SECONDS)

    def _close(self, seconds: float) -> None:
        self._ended = self._end_late
        self._engine.close(seconds)

    def _at_exit(self) -> None:
        """Score what is there while every provider still is; more may come until the shutdown."""
        if not self._engine.drain(EXIT_SECONDS):
            self._close(LAST_SECONDS)

    def _see_first(self, span: Span) -> None:
        self._is_new = False
        self._prepare_exit()
        others = getattr(span, "_span_processor", None)
        if others is not None:
            _put_first(self, others)
        if self._finds_others and others is not None:
            deliver: Deliver = others.on_end
            self._others = lambda: deliver

    def _prepare_exit(self) -> None:
        """By the first span the providers are there, as a rule: at exit we come before them."""
        if not self._is_prepared:
            self._is_prepared = True
            before_exit(self._at_exit)

    def _hand_on(self, span: ReadableSpan) -> None:
        deliver = self._others()
        if deliver is not None:
            deliver(span)

    def _end_late(self, span: ReadableSpan) -> None:
        """Once closed, the engine counts what comes as lost; its own spans are not."""
        scope = span.instrumentation_scope
        if scope is None or scope.name != OWN_SCOPE:
            self._engine.ended(span)


def _put_first(processor: SpanProcessor, every: SpanProcessor) -> None:
    """Before the processor that sends spans: the provider flushes and shuts down in this order.

    The order is not public; where it is kept otherwise it stays as it is.
    """
    listed, lock = getattr(every, "_span_processors", None), getattr(every, "_lock", None)
    if lock is None or not isinstance(listed, tuple) or processor not in listed:
        return
    with lock:
        others = [each for each in every._span_processors if each is not processor]  # type: ignore[attr-defined]  # seen above
        every._span_processors = (processor, *others)  # type: ignore[attr-defined]


def _seconds(timeout_millis: float | None) -> float:
    return 30.0 if timeout_millis is None else timeout_millis / 1000
