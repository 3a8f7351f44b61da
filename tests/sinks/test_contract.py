"""What holds for every sink, and for all metric sinks alike."""

from collections import Counter
from collections.abc import Callable
from threading import Thread
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_eval.engine import Sink
from otel_eval.model import Evaluation, Failure, Score, Skip, SkipCode
from otel_eval.sinks.log_events import LogEventSink
from otel_eval.sinks.metrics import MetricsSink
from otel_eval.sinks.prometheus import PrometheusSink
from otel_eval.sinks.span_events import SpanEventSink
from tests.conftest import trajectory
from tests.sinks.builders import anchor, evaluation

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Tally = Counter[tuple[str, ...]]


def heard() -> LoggerProvider:
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(InMemoryLogRecordExporter()))
    return provider


SINKS: dict[str, Callable[[], Sink]] = {
    "metrics": lambda: MetricsSink(meter_provider=MeterProvider([InMemoryMetricReader()])),
    "metrics of nobody": MetricsSink,
    "prometheus": PrometheusSink,
    "log events": lambda: LogEventSink(logger_provider=heard()),
    "log events of nobody": LogEventSink,
    "span events": lambda: SpanEventSink(deliver=lambda _: None),
    "span events of nobody": SpanEventSink,
}

outcomes = st.one_of(
    st.builds(Score, st.floats(0, 1), st.text(), label=st.none() | st.text()),
    st.builds(Skip, st.sampled_from(get_args(SkipCode)), st.text()),
    st.builds(Failure, st.text(min_size=1), st.text()),
)
names = st.text(max_size=200)
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())
evaluations = st.builds(
    evaluation,
    outcomes,
    rule=names,
    evaluator=names,
    trajectory=st.builds(trajectory, agent=st.none() | names, session=st.none() | names),
    anchor=st.builds(anchor, attributes=st.dictionaries(st.sampled_from(["env"]), values)),
)


@pytest.mark.parametrize("make", SINKS.values(), ids=SINKS)
@settings(max_examples=25, deadline=None)
@given(batch=st.lists(evaluations, max_size=5))
def test_a_sink_takes_whatever_an_evaluation_may_hold(
    make: Callable[[], Sink], batch: list[Evaluation]
) -> None:
    sink = make()

    sink.emit(batch)
    sink.close()
    sink.close()


class Otel:
    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.sink = MetricsSink(meter_provider=MeterProvider([self._reader]))

    def tally(self) -> tuple[Tally, int, float]:
        data = self._reader.get_metrics_data()
        scopes = data.resource_metrics[0].scope_metrics if data else []
        points = {
            metric.name: list(metric.data.data_points)
            for scope in scopes
            for metric in scope.metrics
        }
        counts = Counter(
            {
                (str(at["agent"]), str(at["verdict"])): each.value
                for each in points.get("otel_eval.evaluations", [])
                if (at := each.attributes)
            }
        )
        scores = points.get("otel_eval.score", [])
        return counts, sum(each.count for each in scores), sum(each.sum for each in scores)


class Page:
    def __init__(self) -> None:
        self.sink = PrometheusSink()

    def tally(self) -> tuple[Tally, int, float]:
        text = self.sink.page(OPENMETRICS)[0].decode()
        samples: list[Any] = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]
        counts: Tally = Counter()
        for each in samples:
            if each.name == "otel_eval_evaluations_total":
                counts[each.labels["agent"], each.labels["verdict"]] += int(each.value)
        scores = [each.value for each in samples if each.name == "otel_eval_score_count"]
        sums = [each.value for each in samples if each.name == "otel_eval_score_sum"]
        return counts, int(sum(scores)), sum(sums)


@pytest.mark.parametrize("make", [Otel, Page], ids=["otel", "prometheus"])
@settings(max_examples=30, deadline=None)
@given(
    emitted=st.lists(
        st.builds(
            evaluation,
            st.sampled_from([Score(1.0), Score(0.25), Skip("budget", "spent"), Failure("E", "")]),
            trajectory=st.builds(trajectory, agent=st.sampled_from(["a", "b"])),
        )
    )
)
def test_metrics_equal_the_evaluations_emitted(
    make: Callable[[], Otel | Page], emitted: list[Evaluation]
) -> None:
    metrics = make()

    metrics.sink.emit(emitted)

    counts, scored, total = metrics.tally()
    scores = [each.outcome.value for each in emitted if isinstance(each.outcome, Score)]
    assert counts == Counter((str(each.trajectory.agent), each.verdict) for each in emitted)
    assert (scored, total) == (len(scores), sum(scores))


@pytest.mark.parametrize("make", [Otel, Page], ids=["otel", "prometheus"])
def test_counts_add_up_when_several_threads_emit(make: Callable[[], Otel | Page]) -> None:
    metrics = make()
    batch = [evaluation(trajectory=trajectory(agent=f"a{at % 7}")) for at in range(100)]
    threads = [Thread(target=metrics.sink.emit, args=(batch,)) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    counts, scored, _ = metrics.tally()
    assert counts.total() == scored == 800


def test_a_score_on_a_bound_counts_below_it() -> None:
    page = PrometheusSink()

    page.emit([evaluation(Score(value)) for value in (0.0, 0.05, 0.95, 0.99, 1.0)])

    text = page.page(OPENMETRICS)[0].decode()
    cumulative = {
        sample.labels["le"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "otel_eval_score_bucket"
    }
    bounds = ("0.0", "0.1", "0.9", "0.95", "0.99", "1.0", "+Inf")
    assert [cumulative[bound] for bound in bounds] == [1, 2, 2, 3, 4, 5, 5]
