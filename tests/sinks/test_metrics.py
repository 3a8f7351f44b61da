from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_eval.model import Failure, Score, Skip
from otel_eval.sinks.labels import Labels
from otel_eval.sinks.metrics import MetricsSink
from tests.conftest import SPAN_ID, TRACE_ID, trajectory
from tests.sinks.builders import END_NS, anchor, evaluation


class Exported:
    """A sink on a real meter provider, and what its reader collects."""

    def __init__(self, **options: Any) -> None:
        self._reader = InMemoryMetricReader()
        provider = MeterProvider([self._reader])
        self.sink = MetricsSink(
            meter_provider=provider, clock_ns=lambda: END_NS + 2_500_000_000, **options
        )

    def collect(self) -> dict[str, Any]:
        data = self._reader.get_metrics_data()
        scopes = data.resource_metrics[0].scope_metrics if data else []
        assert {scope.scope.name for scope in scopes} <= {"otel_eval"}
        return {metric.name: metric for scope in scopes for metric in scope.metrics}


def points(metric: Any) -> list[tuple[dict[str, Any], Any]]:
    return [(dict(each.attributes), each.value) for each in metric.data.data_points]


def test_a_score_is_recorded_in_the_buckets_of_the_contract() -> None:
    exported = Exported()

    exported.sink.emit([evaluation(Score(0.93)), evaluation(Score(1.0))])

    metric = exported.collect()["otel_eval.score"]
    (point,) = metric.data.data_points
    assert metric.unit == "{score}"
    assert dict(point.attributes) == {"agent": "agent", "rule": "flow", "evaluator": "order"}
    assert point.explicit_bounds == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
    assert point.bucket_counts == (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0)


def test_evaluations_are_counted_by_verdict_and_skips_by_code() -> None:
    exported = Exported(labels=Labels(extra={"service": "service.name"}))
    where = anchor(resource={"service.name": "shop"})
    outcomes = [Score(1.0), Score(0.1), Skip("incomplete", "root missing"), Failure("E", "no")]

    exported.sink.emit([evaluation(each, anchor=where) for each in outcomes])

    found = exported.collect()
    base = {"agent": "agent", "rule": "flow", "evaluator": "order"}
    assert points(found["otel_eval.evaluations"]) == [
        ({**base, "verdict": verdict, "service": "shop"}, 1)
        for verdict in ("pass", "fail", "skip", "error")
    ]
    assert points(found["otel_eval.skips"]) == [({**base, "code": "incomplete"}, 1)]
    assert found["otel_eval.evaluations"].unit == found["otel_eval.skips"].unit == "{evaluation}"
    assert sum(each.count for each in found["otel_eval.score"].data.data_points) == 2


@pytest.mark.parametrize("name", ["otel_eval.score", "otel_eval.evaluations"])
def test_the_exemplar_points_at_the_evaluated_span(name: str) -> None:
    exported = Exported()

    exported.sink.emit([evaluation()])

    (point,) = exported.collect()[name].data.data_points
    (exemplar,) = point.exemplars
    assert f"{exemplar.trace_id:032x}" == TRACE_ID
    assert f"{exemplar.span_id:016x}" == SPAN_ID


def test_an_anchor_with_made_up_ids_has_no_exemplar() -> None:
    exported = Exported()

    exported.sink.emit([evaluation(anchor=anchor(trace_id="#1", span_id="#2"))])

    (point,) = exported.collect()["otel_eval.score"].data.data_points
    assert not point.exemplars


def test_lag_is_from_the_end_of_the_trajectory_to_now() -> None:
    exported = Exported()

    exported.sink.emit([evaluation(trajectory=trajectory(end_ns=END_NS))])

    metric = exported.collect()["otel_eval.lag"]
    (point,) = metric.data.data_points
    assert (metric.unit, dict(point.attributes), point.sum) == ("s", {"evaluator": "order"}, 2.5)


def test_the_duration_of_an_evaluation_is_recorded_by_evaluator() -> None:
    exported = Exported()

    exported.sink.observe_durations([("order", 0.002)])

    metric = exported.collect()["otel_eval.evaluation.duration"]
    (point,) = metric.data.data_points
    assert (metric.unit, dict(point.attributes), point.sum) == ("s", {"evaluator": "order"}, 0.002)


def test_the_pipelines_counters_are_observed() -> None:
    snapshot = {
        "otel_eval.spans.received": {(): 7},
        "otel_eval.spans.unevaluated": {("not_agent",): 3, ("shed",): 1},
        "otel_eval.traces": {("root",): 2},
        "otel_eval.buffered": {(): 4096},
    }
    exported = Exported(pipeline=lambda: snapshot)

    found = exported.collect()

    assert points(found["otel_eval.spans.received"]) == [({}, 7)]
    assert points(found["otel_eval.spans.unevaluated"]) == [
        ({"reason": "not_agent"}, 3),
        ({"reason": "shed"}, 1),
    ]
    assert points(found["otel_eval.traces"]) == [({"closed_by": "root"}, 2)]
    assert points(found["otel_eval.buffered"]) == [({}, 4096)]
    assert found["otel_eval.buffered"].unit == "By"
    assert points(found["otel_eval.open_traces"]) == [({}, 0)]
    assert found["otel_eval.spans.received"].data.is_monotonic
    assert "otel_eval.sessions" not in found


def test_after_close_the_last_values_are_still_exported() -> None:
    exported = Exported(pipeline=lambda: {"otel_eval.spans.received": {(): 7}})

    exported.sink.emit([evaluation()])
    exported.sink.close()

    found = exported.collect()
    assert {"otel_eval.evaluations", "otel_eval.spans.received"} <= set(found)
