"""Counts for the scrape page that cost next to nothing until somebody reads it.

The children of prometheus_client's metrics lock and validate at every step, which took as long as
to judge a trace. These only add; who uses them locks once for many.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from otel_eval.model import Anchor
from otel_eval.sinks.anchors import has_real_ids
from otel_eval.sinks.instruments import Instrument
from otel_eval.sinks.labels import Labels, LabelSet, Series

Seen: TypeAlias = tuple[str, str, float, float]
"""A trace id, a span id, the score if there is one, and when.

No anchor: that would keep its attributes alive.
"""


class Tally:
    """One series of a counter, and the last that it counted."""

    __slots__ = ("count", "last")

    def __init__(self) -> None:
        self.count = 0
        self.last: Seen | None = None

    def add(self, seen: Seen) -> None:
        self.count += 1
        self.last = seen


class Spread:
    """One series of a histogram; of each bucket, the last value that was seen somewhere."""

    __slots__ = ("_bounds", "counts", "last", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.last: dict[int, Seen] = {}

    def add(self, value: float, seen: Seen | None = None) -> None:
        bucket = bisect_left(self._bounds, value)
        self.counts[bucket] += 1
        self.total += value
        if seen is not None:
            self.last[bucket] = seen


class Place:
    """Where the scores of one subject and verdict count: one look-up for all three."""

    __slots__ = ("evaluations", "lags", "scores")

    def __init__(self, evaluations: Tally, scores: Spread, lags: Spread) -> None:
        self.evaluations = evaluations
        self.scores = scores
        self.lags = lags


class Tallies:
    """A counter."""

    def __init__(self, instrument: Instrument, labels: Labels, *, configured: bool = True) -> None:
        self._instrument = instrument
        self._names = _names(instrument, labels, configured)
        self.series: Series[Tally] = Series(
            lambda _values: Tally(), labels, own=1, configured=configured
        )

    def family(self) -> Metric:
        instrument = self._instrument
        family = CounterMetricFamily(instrument.prometheus, instrument.help, labels=self._names)
        for values, tally in self.series.items():
            family.add_metric(values, tally.count, exemplar=_exemplar(tally.last, 1.0))
        return family


class Spreads:
    """A histogram."""

    def __init__(self, instrument: Instrument, labels: Labels, *, configured: bool = True) -> None:
        self._instrument = instrument
        self._names = _names(instrument, labels, configured)
        self._bounds = [*map(floatToGoString, instrument.buckets), "+Inf"]
        self.series: Series[Spread] = Series(
            lambda _values: Spread(instrument.buckets), labels, configured=configured
        )

    def family(self) -> Metric:
        instrument = self._instrument
        family = HistogramMetricFamily(instrument.prometheus, instrument.help, labels=self._names)
        for values, spread in self.series.items():
            # One is at hand for the lags of every score, but there may be none that are known.
            if not any(spread.counts):
                continue
            exemplars = [_exemplar(spread.last.get(each)) for each in range(len(self._bounds))]
            buckets = zip(self._bounds, accumulate(spread.counts), exemplars, strict=True)
            family.add_metric(values, list(buckets), spread.total)  # type: ignore[arg-type]  # no exemplar is None
        return family


def _names(instrument: Instrument, labels: Labels, configured: bool) -> LabelSet:
    return (*instrument.labels, *(labels.extra if configured else ()))


def _exemplar(seen: Seen | None, step: float | None = None) -> Exemplar | None:
    """What a bucket took, or the step of a counter. None for ids that decode made up.

    It has 63 characters of the 128 that OpenMetrics allows.
    """
    if seen is None:
        return None
    trace_id, span_id, score, at = seen
    if not has_real_ids(Anchor(trace_id=trace_id, span_id=span_id)):
        return None
    value = score if step is None else step
    return Exemplar({"trace_id": trace_id, "span_id": span_id}, value, at)
