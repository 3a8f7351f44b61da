"""Scores on the way out: between a span processor and the exporter that it would use."""

import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar, runtime_checkable
from weakref import WeakSet

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import TracerProvider, get_tracer_provider

from otel_eval.assembly import Given, OnEvaluation, make_engine, read_config
from otel_eval.config import Config
from otel_eval.decode.sdk import SdkReader
from otel_eval.decode.terms import MadeUp
from otel_eval.engine import OWN_SCOPE, AnySpan, ClosedTrace
from otel_eval.exits import EXIT_SECONDS, LAST_SECONDS, before_exit
from otel_eval.holding import Holder, may_anchor
from otel_eval.model import Evaluation, Span
from otel_eval.rules import Rule, RuleSet
from otel_eval.sinks.span_events import SpanEventSink
from otel_eval.workers import Worker, suppressed

log = logging.getLogger("otel_eval")

T = TypeVar("T")

SETTLE_SECONDS: Final = 2.0
"""All spans of this process come the same way, so those that are missing come soon."""
MAX_HOLD_SECONDS: Final = 30.0
TICK_SECONDS: Final = 0.2
MAX_BATCH: Final = 512
EXIT_FLUSH_MILLIS: Final = 10_000


class EvalSpanExporter(SpanExporter):
    """Passes spans on to `inner`; what is scored waits for its scores, as events on a copy.

    Evaluations that come too late for that, such as a judge's, go out on spans of their own.
    Without `inner` it only evaluates, and span events go to the tracer provider.
    """

    def __init__(
        self,
        inner: SpanExporter | None = None,
        config: Given = None,
        *,
        rules: Iterable[Rule] | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        tracer_provider: TracerProvider | None = None,
        on_evaluation: OnEvaluation | None = None,
        max_hold: float | None = None,
    ) -> None:
        """`tracer_provider`: the one whose spans these are; flushed at exit, so that none is lost.

        `max_hold`: seconds; those of `forward.max_hold` in the configuration unless given.
        """
        settings = read_config(config, rules)
        self._inner = inner
        self._tracer_provider = tracer_provider
        self._form = settings.result_event()
        self._max_hold = _max_hold(settings) if max_hold is None else max_hold
        holds = inner is not None and "span" in settings.emit.events
        self._holds = may_anchor(settings.rule_set()) if holds else None
        self._closed = False
        self._start_clean()
        self._engine = make_engine(
            settings,
            settings.grouping_limits(settle=SETTLE_SECONDS, local_settle=SETTLE_SECONDS),
            meter_provider=meter_provider,
            logger_provider=logger_provider,
            on_evaluation=on_evaluation,
            on_closed=self._release if holds else None,
        )
        self._add_span_events(settings)
        _EXPORTERS.add(self)
        before_exit(self._at_exit)

    def _start_clean(self) -> None:
        """What a fork must not carry over: what is held belongs to the parent."""
        self._holder = Holder(self._form, max_hold=self._max_hold)
        self._exporting = threading.Lock()
        self._starting = threading.Lock()
        self._worker = Worker(self._send_due, _ignore, TICK_SECONDS)

    def _add_span_events(self, settings: Config) -> None:
        if "span" not in settings.emit.events:
            return
        if self._inner is None:
            sink = SpanEventSink(tracer_provider=self._tracer_provider, form=self._form)
            self._engine.add_sink(sink)
        else:
            self._unattached = SpanEventSink(deliver=self._put, form=self._form)
            self._engine.add_sink(_Afterwards(settings.rule_set(), self._unattached))

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Everything but possible anchors goes on at once."""
        reader = SdkReader(MadeUp())
        passing: list[ReadableSpan] = []
        fed: list[AnySpan] = []
        now = time.monotonic()
        for span in spans:
            read = _read(reader, span)
            if read is None or not self._hold(read, span, now):
                passing.append(span)
            if not self._closed or not _is_own(span):
                fed.append(read or span)
        self._engine.feed(fed)
        return self._export(passing)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Score every trace whose root ended, at once, and send all that is held.

        Traces without an ended root stay open; their scores go out on spans of their own.
        """
        ends = time.monotonic() + timeout_millis / 1000
        done = self._engine.flush(timeout_millis / 1000)
        done &= self._worker.ask(self._send_all, max(0.0, ends - time.monotonic()))
        if self._inner is None:
            return done
        with self._exporting:
            left = max(0, int((ends - time.monotonic()) * 1000))
            flush = partial(self._inner.force_flush, left)
            return bool(self._guarded(self._inner, flush)) and done

    def shutdown(self) -> None:
        """Score what is open, send what is held, and shut down `inner`."""
        self._close(EXIT_SECONDS + LAST_SECONDS)
        if self._inner is not None:
            with self._exporting:
                self._guarded(self._inner, self._inner.shutdown)

    def _close(self, seconds: float) -> None:
        self._closed = True
        self._engine.close(seconds)
        self._worker.ask(self._worker.stop, MAX_HOLD_SECONDS)
        self._send_all()

    def _at_exit(self) -> None:
        """While every provider is still there: have the last spans exported, and score them."""
        if self._closed:
            return
        for feeder in self._feeders():
            self._guarded(feeder, partial(feeder.force_flush, EXIT_FLUSH_MILLIS))
        if self._engine.drain(EXIT_SECONDS):
            self._worker.ask(self._send_all, LAST_SECONDS)
        else:
            self._close(LAST_SECONDS)

    def _feeders(self) -> "Sequence[_Flushable]":
        """Who exports through this: an exporter is not told, and the provider need not be global.

        Every object is looked at, once in a process' life; by its type, because an object that
        stands for another one answers `isinstance` for that one, or raises. The provider only where
        none is found: its other exporters may wait long for a collector that is gone.
        """
        processors = [each for each in gc.get_objects() if issubclass(type(each), SpanProcessor)]
        feeders = [each for each in processors if getattr(each, "span_exporter", None) is self]
        provider = self._tracer_provider or get_tracer_provider()
        return feeders or ([provider] if isinstance(provider, _Flushable) else [])

    # Spans that wait.

    def _hold(self, read: Span, span: ReadableSpan, now: float) -> bool:
        if self._closed or not self._may_anchor(read):
            return False
        self._ensure_worker()
        return self._holder.hold(read, span, now)

    def _may_anchor(self, read: Span) -> bool:
        try:
            return self._holds is not None and self._holds(read)
        # What an application wrote into one span must not keep the others from being exported.
        except Exception as error:
            log.error("span %s cannot be read: %s", read.span_id, type(error).__name__)
            return False

    def _ensure_worker(self) -> None:
        with self._starting:
            if not self._worker.is_alive:
                self._worker.start()

    def _release(self, closed: ClosedTrace) -> None:
        self._unattached.emit(self._holder.release(closed))
        self._worker.wake()

    def _put(self, span: ReadableSpan) -> None:
        self._ensure_worker()
        self._holder.put(span)

    def _send_due(self) -> None:
        self._send(self._holder.take(time.monotonic()))

    def _send_all(self) -> None:
        self._send(self._holder.take(float("inf")))

    def _send(self, spans: Sequence[ReadableSpan]) -> None:
        for first in range(0, len(spans), MAX_BATCH):
            self._export(spans[first : first + MAX_BATCH])

    def _export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Exporters need not bear two calls at a time, and two threads come here."""
        if not spans or self._inner is None:
            return SpanExportResult.SUCCESS
        with self._exporting, suppressed():
            export = partial(self._inner.export, spans)
            return self._guarded(self._inner, export) or SpanExportResult.FAILURE

    @staticmethod
    def _guarded(whose: object, call: Callable[[], T]) -> T | None:
        """Anyone's code: what it raises is no reason to lose the next spans too."""
        try:
            return call()
        except Exception as error:
            log.error("%s raised %s", type(whose).__name__, type(error).__name__)
            return None


@runtime_checkable
class _Flushable(Protocol):
    """A provider or a processor of the SDK."""

    def force_flush(self, timeout_millis: int) -> bool: ...


class _Afterwards:
    """Takes the evaluations that no closed trace is told with: judges' and sessions'."""

    def __init__(self, rules: RuleSet, sink: SpanEventSink) -> None:
        self._sink = sink
        self._judges = rules.judges

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        self._sink.emit([each for each in evaluations if self._comes_late(each)])

    def close(self) -> None:
        self._sink.close()

    def _comes_late(self, evaluation: Evaluation) -> bool:
        is_slow = (evaluation.rule, evaluation.evaluator) in self._judges
        return is_slow or evaluation.trajectory.per == "session"


def _max_hold(config: Config) -> float:
    return MAX_HOLD_SECONDS if config.forward is None else config.forward.max_hold


def _read(reader: SdkReader, span: ReadableSpan) -> Span | None:
    try:
        return reader.read(span)
    # Attribute values may be objects of the application; the engine counts what cannot be read.
    except Exception:
        return None


def _is_own(span: ReadableSpan) -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == OWN_SCOPE


def _ignore(_whose: object, _how: str) -> None:
    """The worker has logged it."""


_EXPORTERS: WeakSet[EvalSpanExporter] = WeakSet()


def _after_fork() -> None:
    for exporter in list(_EXPORTERS):
        exporter._start_clean()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
