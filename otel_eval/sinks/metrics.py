"""Scores as OpenTelemetry metrics, through the application's own meter provider."""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from time import time_ns

from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider, get_meter_provider

from otel_eval.judge.meters import JudgeCall
from otel_eval.model import Evaluation, Score, Skip
from otel_eval.outlet import Duration
from otel_eval.sinks import instruments
from otel_eval.sinks.anchors import context
from otel_eval.sinks.instruments import Instrument, Pipeline
from otel_eval.sinks.labels import EVALUATION, Kind, Labels, LabelSet, Series, Subject
from otel_eval.sinks.moment import observe

Attributes = dict[str, str]
Counts = dict[Kind, tuple[int, Context]]
"""How many evaluations of a kind, and the context of the last."""


class MetricsSink:
    """Records evaluations; exemplars point at the evaluated span, not at the current one."""

    def __init__(
        self,
        *,
        meter_provider: MeterProvider | None = None,
        labels: Labels | None = None,
        pipeline: Pipeline | None = None,
        clock_ns: Callable[[], int] = time_ns,
    ) -> None:
        self._meter = (meter_provider or get_meter_provider()).get_meter(instruments.SCOPE)
        self._labels = labels or Labels()
        self._clock_ns = clock_ns
        self._create_instruments()
        if pipeline is not None:
            observe(self._meter, pipeline)

    def _create_instruments(self) -> None:
        labels = self._labels
        self._score = _histogram(self._meter, instruments.SCORE)
        self._scores = _attributes(instruments.SCORE, labels)
        self._evaluation = _counter(self._meter, instruments.EVALUATIONS)
        self._evaluations = _attributes(instruments.EVALUATIONS, labels)
        self._skip = _counter(self._meter, instruments.SKIPS)
        self._skips = _attributes(instruments.SKIPS, labels, configured=False)
        self._duration = _histogram(self._meter, instruments.DURATION)
        self._durations = _attributes(instruments.DURATION, labels, configured=False)
        self._lag = _histogram(self._meter, instruments.LAG)
        self._lags = _attributes(instruments.LAG, labels, configured=False)
        self._judge_calls = _counter(self._meter, instruments.JUDGE_CALLS)
        self._judge_tokens = _counter(self._meter, instruments.JUDGE_TOKENS)
        self._judge_duration = _histogram(self._meter, instruments.JUDGE_DURATION)

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        counts: Counts = {}
        now_ns = self._clock_ns()
        for anchor, group in groupby(evaluations, key=attrgetter("anchor")):
            here = context(anchor)
            for evaluation in group:
                subject = self._labels.subject(evaluation)
                kind = subject, evaluation.verdict
                count, _ = counts.get(kind, (0, here))
                counts[kind] = count + 1, here
                self._record(evaluation, subject, here, now_ns)
        # Counted once for all that are alike: each step of a counter takes the SDK some 10 µs.
        for (subject, verdict), (count, here) in counts.items():
            self._evaluation.add(count, self._evaluations.of(subject, verdict), here)

    def observe_durations(self, durations: Sequence[Duration]) -> None:
        """How long evaluators took; an Evaluation does not carry it."""
        for evaluator, seconds in durations:
            self._duration.record(seconds, self._durations.at((evaluator,)))

    def observe_judge(self, call: JudgeCall) -> None:
        """One question to a judge; how many models there are is for the configuration to say."""
        self._judge_calls.add(1, {"model": call.model, "result": call.result})
        if call.seconds is not None:
            self._judge_tokens.add(call.input_tokens, {"direction": "input"})
            self._judge_tokens.add(call.output_tokens, {"direction": "output"})
            self._judge_duration.record(call.seconds)

    def close(self) -> None:
        """Nothing to do: the provider is the application's, and exports the last values itself."""

    def _record(self, evaluation: Evaluation, subject: Subject, here: Context, now_ns: int) -> None:
        match evaluation.outcome:
            case Score(value=value):
                self._score.record(value, self._scores.of(subject), here)
                self._record_lag(evaluation, now_ns)
            case Skip(code=code):
                self._skip.add(1, self._skips.of(subject, code), here)

    def _record_lag(self, evaluation: Evaluation, now_ns: int) -> None:
        seconds = instruments.lag(evaluation, now_ns)
        if seconds is not None:
            self._lag.record(seconds, self._lags.at((evaluation.evaluator,)))


def _attributes(
    instrument: Instrument, labels: Labels, *, configured: bool = True
) -> Series[Attributes]:
    """Attributes per label set; a label without a value is left out."""
    names = (*instrument.labels, *(labels.extra if configured else ()))
    own = max(0, len(instrument.labels) - len(EVALUATION))

    def make(values: LabelSet) -> Attributes:
        return {name: value for name, value in zip(names, values, strict=True) if value}

    return Series(make, labels, own=own, configured=configured)


def _histogram(meter: Meter, instrument: Instrument) -> Histogram:
    return meter.create_histogram(
        instrument.name,
        unit=instrument.unit,
        description=instrument.help,
        explicit_bucket_boundaries_advisory=instrument.buckets,
    )


def _counter(meter: Meter, instrument: Instrument) -> Counter:
    return meter.create_counter(instrument.name, unit=instrument.unit, description=instrument.help)
