"""The scrape page, and what stands on it beside the scores. Needs the extra `sidecar`."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from otel_eval.judge.meters import JudgeCall
from otel_eval.sinks import instruments
from otel_eval.sinks.instruments import Instrument, Pipeline


class Registry(CollectorRegistry):
    """Without the `_created` series, which would nearly double the page of counters."""

    def collect(self) -> Iterable[Metric]:
        for metric in super().collect():
            metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
            yield metric


class JudgeMetrics:
    """What asking judges took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        calls, tokens = instruments.JUDGE_CALLS, instruments.JUDGE_TOKENS
        took = instruments.JUDGE_DURATION
        self._calls = Counter(calls.prometheus, calls.help, calls.labels, registry=registry)
        self._tokens = Counter(tokens.prometheus, tokens.help, tokens.labels, registry=registry)
        self._seconds = Histogram(
            took.prometheus, took.help, buckets=took.buckets, registry=registry
        )

    def count(self, call: JudgeCall) -> None:
        self._calls.labels(call.model, call.result).inc()
        if call.seconds is not None:
            self._tokens.labels("input").inc(call.input_tokens)
            self._tokens.labels("output").inc(call.output_tokens)
            self._seconds.observe(call.seconds)


class PipelineCollector:
    """The engine's counters, all of one moment: their identities hold on every page."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def describe(self) -> Iterable[Metric]:
        return [_family(instrument) for instrument in instruments.PIPELINE]

    def collect(self) -> Iterable[Metric]:
        snapshot = self._pipeline()
        for instrument in instruments.PIPELINE:
            family = _family(instrument)
            for values, value in instruments.observed(instrument, snapshot).items():
                family.add_metric(values, value)
            yield family


def _family(instrument: Instrument) -> CounterMetricFamily | GaugeMetricFamily:
    family = GaugeMetricFamily if instrument.kind == "gauge" else CounterMetricFamily
    return family(instrument.prometheus, instrument.help, labels=instrument.labels)
