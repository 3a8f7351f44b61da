from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_eval.model import Failure, Score, Skip
from otel_eval.sinks.labels import MAX_SETS, OTHER, Labels
from otel_eval.sinks.prometheus import PrometheusSink
from tests.conftest import SPAN_ID, TRACE_ID, trajectory
from tests.sinks.builders import END_NS, anchor, evaluation

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def page(sink: PrometheusSink, accept: str = "") -> list[str]:
    return sink.page(accept)[0].decode().splitlines()


def families(sink: PrometheusSink) -> dict[str, Any]:
    text = sink.page(OPENMETRICS)[0].decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_the_scores_page_reads_as_the_contract_says() -> None:
    sink = PrometheusSink()

    sink.emit([evaluation(Score(0.93)), evaluation(Skip("incomplete", "root missing"))])

    series = '{agent="agent",evaluator="order",'
    assert [line for line in page(sink) if "lag" not in line and "duration" not in line] == [
        "# HELP otel_eval_score Scores from 0 to 1.",
        "# TYPE otel_eval_score histogram",
        *(
            f'otel_eval_score_bucket{series}le="{le}",rule="flow"}} {count}'
            for le, count in [
                ("0.0", "0.0"),
                ("0.1", "0.0"),
                ("0.2", "0.0"),
                ("0.3", "0.0"),
                ("0.4", "0.0"),
                ("0.5", "0.0"),
                ("0.6", "0.0"),
                ("0.7", "0.0"),
                ("0.8", "0.0"),
                ("0.9", "0.0"),
                ("0.95", "1.0"),
                ("0.99", "1.0"),
                ("1.0", "1.0"),
                ("+Inf", "1.0"),
            ]
        ),
        f'otel_eval_score_count{series}rule="flow"}} 1.0',
        f'otel_eval_score_sum{series}rule="flow"}} 0.93',
        "# HELP otel_eval_evaluations_total Evaluations by verdict.",
        "# TYPE otel_eval_evaluations_total counter",
        f'otel_eval_evaluations_total{series}rule="flow",verdict="pass"}} 1.0',
        f'otel_eval_evaluations_total{series}rule="flow",verdict="skip"}} 1.0',
        "# HELP otel_eval_skips_total Evaluations that could not be judged, by what was missing.",
        "# TYPE otel_eval_skips_total counter",
        'otel_eval_skips_total{agent="agent",code="incomplete",evaluator="order",rule="flow"} 1.0',
    ]


def test_exemplars_carry_the_evaluated_spans_ids() -> None:
    sink = PrometheusSink()

    sink.emit([evaluation()])

    found = families(sink)
    exemplars = [
        sample.exemplar.labels
        for name in ("otel_eval_score", "otel_eval_evaluations")
        for sample in found[name].samples
        if sample.exemplar
    ]
    assert exemplars == [{"trace_id": TRACE_ID, "span_id": SPAN_ID}] * 2


def test_made_up_ids_are_no_exemplar() -> None:
    sink = PrometheusSink()

    sink.emit([evaluation(anchor=anchor(trace_id="#1", span_id="#2"))])

    assert not any(sample.exemplar for sample in families(sink)["otel_eval_score"].samples)


def test_a_failed_evaluation_counts_as_error_and_has_no_score() -> None:
    sink = PrometheusSink()

    sink.emit([evaluation(Failure("ValueError", "bad"))])

    found = families(sink)
    (sample,) = found["otel_eval_evaluations"].samples
    assert (sample.labels["verdict"], sample.value) == ("error", 1)
    assert found["otel_eval_score"].samples == []


def test_configured_labels_are_on_scores_and_evaluations_only() -> None:
    sink = PrometheusSink(labels=Labels(extra={"environment": "deployment.environment.name"}))
    where = anchor(resource={"deployment.environment.name": "prod"})

    sink.emit([evaluation(anchor=where), evaluation(Skip("budget", "spent"), anchor=where)])

    found = families(sink)
    labels = {name: found[name].samples[0].labels for name in found if found[name].samples}
    assert labels["otel_eval_score"]["environment"] == "prod"
    assert labels["otel_eval_evaluations"]["environment"] == "prod"
    assert "environment" not in labels["otel_eval_skips"]


def test_the_page_stays_within_its_bounds_whatever_comes() -> None:
    sink = PrometheusSink(labels=Labels(max_agents=500))

    sink.emit(
        [
            evaluation(trajectory=trajectory(agent=f"a{each}"), evaluator=f"e{each % 9}")
            for each in range(3 * MAX_SETS)
        ]
    )

    samples = families(sink)["otel_eval_evaluations"].samples
    assert len(samples) <= MAX_SETS
    assert len({sample.labels["agent"] for sample in samples} - {OTHER}) == 500
    assert sum(sample.value for sample in samples) == 3 * MAX_SETS


def test_lag_and_duration_are_in_seconds_by_evaluator() -> None:
    sink = PrometheusSink(clock_ns=lambda: END_NS + 2_500_000_000)

    sink.emit([evaluation()])
    sink.observe_durations([("order", 0.002)])

    lines = page(sink)
    assert 'otel_eval_lag_seconds_sum{evaluator="order"} 2.5' in lines
    assert 'otel_eval_evaluation_duration_seconds_sum{evaluator="order"} 0.002' in lines


def test_the_pipelines_counters_are_on_the_page() -> None:
    snapshot = {
        "otel_eval.spans.received": {(): 7},
        "otel_eval.spans.dropped": {("queue_full",): 2},
        "otel_eval.sessions": {("idle",): 1},
        "otel_eval.spans.open": {(): 3},
        "otel_eval.buffered": {(): 4096},
    }
    sink = PrometheusSink(pipeline=lambda: snapshot)

    lines = [line for line in page(sink) if not line.startswith("#")]

    assert lines == [
        'otel_eval_sessions_total{closed_by="idle"} 1.0',
        "otel_eval_spans_received_total 7.0",
        "otel_eval_spans_scored_total 0.0",
        "otel_eval_spans_late_total 0.0",
        "otel_eval_spans_duplicate_total 0.0",
        "otel_eval_spans_own_total 0.0",
        "otel_eval_spans_forwarded_total 0.0",
        'otel_eval_spans_dropped_total{reason="queue_full"} 2.0',
        "otel_eval_spans_open 3.0",
        "otel_eval_spans_queued 0.0",
        "otel_eval_open_traces 0.0",
        "otel_eval_open_sessions 0.0",
        "otel_eval_buffered_bytes 4096.0",
    ]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param(OPENMETRICS, "application/openmetrics-text; version=1.0.0", id="openmetrics"),
        pytest.param("*/*", "text/plain; version=0.0.4", id="plain"),
    ],
)
def test_the_format_is_the_one_asked_for(accept: str, content_type: str) -> None:
    assert PrometheusSink().page(accept)[1].startswith(content_type)


def test_each_sink_has_a_registry_of_its_own() -> None:
    first, second = PrometheusSink(), PrometheusSink()

    first.emit([evaluation()])

    assert families(second)["otel_eval_evaluations"].samples == []
