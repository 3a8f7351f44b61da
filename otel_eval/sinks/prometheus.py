"""Scores as a Prometheus scrape page. Needs the extra `sidecar`; imported only where it is used."""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from time import time_ns

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

from otel_eval.judge.meters import JudgeCall
from otel_eval.model import Evaluation, Score, Skip
from otel_eval.outlet import Duration
from otel_eval.sinks import instruments
from otel_eval.sinks.instruments import Pipeline
from otel_eval.sinks.labels import MAX_KNOWN, Kind, Labels
from otel_eval.sinks.page import JudgeMetrics, PipelineCollector, Registry
from otel_eval.sinks.tallies import Place, Spreads, Tallies


class PrometheusSink:
    """Counts evaluations for `/metrics`; exemplars carry the ids of the evaluated span."""

    def __init__(
        self,
        *,
        labels: Labels | None = None,
        pipeline: Pipeline | None = None,
        clock_ns: Callable[[], int] = time_ns,
    ) -> None:
        self.registry = Registry()
        self._labels = labels or Labels()
        self._clock_ns = clock_ns
        self._create_metrics()
        if pipeline is not None:
            self.registry.register(PipelineCollector(pipeline))

    def _create_metrics(self) -> None:
        labels = self._labels
        self._lock = Lock()
        self._scores = Spreads(instruments.SCORE, labels)
        self._evaluations = Tallies(instruments.EVALUATIONS, labels)
        self._skips = Tallies(instruments.SKIPS, labels, configured=False)
        self._durations = Spreads(instruments.DURATION, labels, configured=False)
        self._lags = Spreads(instruments.LAG, labels, configured=False)
        self._places: dict[Kind, Place] = {}
        self._judges: JudgeMetrics | None = None
        """On the page from the first question on: most have no judge."""
        self.registry.register(self)

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        now_ns = self._clock_ns()
        now = now_ns / 1e9
        with self._lock:
            for evaluation in evaluations:
                self._count(evaluation, now_ns, now)

    def observe_durations(self, durations: Sequence[Duration]) -> None:
        """How long evaluators took; an Evaluation does not carry it."""
        with self._lock:
            for evaluator, seconds in durations:
                self._durations.series.at((evaluator,)).add(seconds)

    def observe_judge(self, call: JudgeCall) -> None:
        """One question to a judge; how many models there are is for the configuration to say."""
        if self._judges is None:
            self._judges = JudgeMetrics(self.registry)
        self._judges.count(call)

    def close(self) -> None:
        """Nothing to do: the last values stay readable until the page is gone."""

    def page(self, accept: str = "") -> tuple[bytes, str]:
        """The scrape page and its content type, in the format that an Accept header asks for."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def collect(self) -> Iterable[Metric]:
        """For the registry: what was counted, all of one moment."""
        kinds = self._scores, self._evaluations, self._skips, self._durations, self._lags
        with self._lock:
            return [kind.family() for kind in kinds]

    def _count(self, evaluation: Evaluation, now_ns: int, now: float) -> None:
        subject, anchor = self._labels.subject(evaluation), evaluation.anchor
        match evaluation.outcome:
            case Score(value=value):
                kind = subject, evaluation.verdict
                place = self._places.get(kind) or self._find(kind, evaluation.evaluator)
                seen = anchor.trace_id, anchor.span_id, value, now
                place.evaluations.add(seen)
                place.scores.add(value, seen)
                seconds = instruments.lag(evaluation, now_ns)
                if seconds is not None:
                    place.lags.add(seconds)
            case other:
                seen = anchor.trace_id, anchor.span_id, 0.0, now
                self._evaluations.series.of(subject, evaluation.verdict).add(seen)
                if isinstance(other, Skip):
                    self._skips.series.of(subject, other.code).add(seen)

    def _find(self, kind: Kind, evaluator: str) -> Place:
        place = Place(
            self._evaluations.series.of(*kind),
            self._scores.series.of(kind[0]),
            self._lags.series.at((evaluator,)),
        )
        if len(self._places) < MAX_KNOWN and self._labels.is_settled(kind[0]):
            self._places[kind] = place
        return place
