"""The table of deploy/README.md about faults: each row is a test, and what it names is there."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from otel_eval import sidecar
from otel_eval.alerts import groups
from otel_eval.alerts.rules import AlertRule
from otel_eval.config import Config
from tests.deploy.files import DEPLOY
from tests.sidecar.running import running

TESTS = Path(__file__).parents[1]
SIDECAR = Path(sidecar.__file__).parent
SHOWN_BY = {
    "kill -9": "test_kill_9_at_random_moments_under_load_loses_nothing",
    "power is lost": None,
    "SIGTERM under load": (
        "test_sigterm_under_load_leaves_in_time_and_what_is_left_is_done_by_the_next"
    ),
    "the target is down": "test_a_target_that_goes_and_comes_back_gets_all_of_it_across_restarts",
    "the target is slow": "test_a_slow_target_holds_up_nobody_and_gets_all_of_it",
    "the target resets": (
        "test_a_target_that_resets_answers_garbage_or_nothing_gets_all_of_it_in_the_end"
    ),
    "the target rejects": "test_what_a_target_rejects_is_dropped_and_counted",
    "the journal is full": "test_a_full_journal_refuses_for_now_and_takes_again_when_it_has_room",
    "the disk is full": (
        "test_a_full_disk_is_refused_for_now_and_costs_nothing_that_was_acknowledged"
    ),
    "the journal is damaged": "test_a_damaged_journal_is_set_aside_counted_and_reported",
    "bytes of one request": "test_bytes_that_changed_on_disk_are_counted_and_the_rest_is_recovered",
    "the clock jumps": "test_a_wall_clock_that_jumps_moves_nothing",
    "a request that is no OTLP": "test_only_documented_errors_come_out",
    "a span of 60 MiB": "test_a_span_of_60_mib_is_forwarded_as_it_came",
    "a trace of 100 000": "test_a_trace_of_100_000_spans_is_cut_into_parts_and_forwarded_whole",
    "100 000 open traces": "test_100_000_open_traces_are_bounded_and_all_are_forwarded",
    "10 000 agents": "test_10_000_agents_and_sessions_stay_within_the_bounds_of_labels",
    "an evaluator raises": "test_an_evaluator_that_goes_wrong_costs_its_own_score_and_nothing_else",
    "an evaluator never ends": (
        "test_an_evaluator_that_never_ends_costs_no_span_and_is_made_up_for_by_the_next_process"
    ),
    "a judge hangs": "test_an_evaluator_that_hangs_holds_up_no_acknowledgement_and_no_span",
    "a reload": "test_reloads_under_load_lose_nothing",
    "no file descriptor": "test_no_file_descriptor_left_is_no_reason_to_lose_what_was_taken",
}
"""How the first cell of a row begins, and the test behind it."""


def rows() -> Iterator[Sequence[str]]:
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    section = text.split("## When things go wrong")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def code_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@cache
def defined() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.M)}


def test_every_row_is_shown_by_a_test() -> None:
    faults = [row[0] for row in rows()]

    for fault, begins in zip(faults, SHOWN_BY, strict=True):
        assert fault.startswith(begins)
    assert {name for name in SHOWN_BY.values() if name} <= defined()


def test_every_metric_is_on_the_scrape_page_from_the_start(tmp_path: Path) -> None:
    named = {code for row in rows() for code in code_in(row[2]) if code.startswith("otel_eval_")}
    target = {"endpoint": "http://127.0.0.1:9"}
    with running(forward=target, journal={"path": str(tmp_path)}) as run:
        page = run.page()

    for metric in named:
        assert f"# TYPE {metric.partition('{')[0].removesuffix('_total')}" in page


@pytest.mark.parametrize("column", ["log", "alert"])
def test_every_log_line_and_alert_exists(column: str) -> None:
    place = {"log": 3, "alert": 4}[column]
    named = {code for row in rows() for code in code_in(row[place])}
    alerts = {
        rule.alert
        for group in groups(Config())
        for rule in group.rules
        if isinstance(rule, AlertRule)
    }
    source = "".join(path.read_text(encoding="utf-8") for path in SIDECAR.glob("*.py"))

    assert named
    for each in named:
        parts = each.split(" … ")
        assert each in alerts if column == "alert" else all(part in source for part in parts)
