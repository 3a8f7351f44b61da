"""The dashboard knows the metrics and their labels."""

import json
import re

import pytest

from otel_eval.sinks import instruments
from otel_eval.sinks.instruments import Instrument
from tests.outside.dashboards import DASHBOARD, Query, queries

INSTRUMENTS = (
    instruments.SCORE,
    instruments.EVALUATIONS,
    instruments.SKIPS,
    instruments.DURATION,
    instruments.LAG,
    *instruments.PIPELINE,
)
ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def series(instrument: Instrument) -> set[str]:
    return {instrument.prometheus + ending for ending in ENDINGS[instrument.kind]}


KNOWN = set().union(*map(series, INSTRUMENTS))


@pytest.mark.parametrize("query", queries(), ids=lambda query: f"{query.panel}-{query.legend}")
def test_a_query_is_about_metrics_that_exist(query: Query) -> None:
    assert set(re.findall(r"otel_eval_\w+", query.written)) <= KNOWN


@pytest.mark.parametrize("query", queries(), ids=lambda query: f"{query.panel}-{query.legend}")
def test_a_legend_names_labels_that_the_query_keeps(query: Query) -> None:
    kept = {
        label
        for group in re.findall(r"by \(([^)]*)\)", query.written)
        for label in group.split(", ")
    }

    assert query.labels <= kept


def test_every_panel_takes_the_chosen_data_source() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    sources = [each["datasource"]["uid"] for each in panels if each["type"] != "row"]
    targets = [target["datasource"]["uid"] for each in panels for target in each.get("targets", ())]

    assert set(sources + targets) == {"${datasource}"}


def test_the_heat_map_shows_exemplars() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    (heat_map,) = (each for each in panels if each["type"] == "heatmap")

    assert heat_map["targets"][0]["exemplar"]
