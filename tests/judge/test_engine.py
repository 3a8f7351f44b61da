"""Judges in the engine: never in the way of the others, and never forgotten."""

import time
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_eval.engine import ClosedTrace, Engine, Grouping
from otel_eval.evaluators.tool_selection import ToolSelectionAccuracy
from otel_eval.judge.meters import JudgeCall
from otel_eval.judge.question import Judge, Question
from otel_eval.model import Evaluation
from otel_eval.rules import Rule, RuleSet
from otel_eval.sinks.metrics import MetricsSink
from otel_eval.sinks.prometheus import PrometheusSink
from tests.extract.captures import spans_of

CAPTURE = "strands_legacy_seq"
COUNT = {"type": "tool-call-count", "tool_calls_count": {"geocode": ["=", 1]}}
ORDER = {"type": "tool-call-order", "tool_calls_order": ["geocode", "send_summary"]}


class Blocking:
    """A judge that answers so many questions, and then thinks until it is released."""

    def __init__(self, at_once: int = 0) -> None:
        self.at_once = at_once
        self.asked, self.released = Event(), Event()

    def __call__(self, question: Question, /) -> Any:
        self.at_once -= 1
        if self.at_once < 0:
            self.asked.set()
            assert self.released.wait(30)
        return question.answer.model_validate({"reasoning": "fine", "answer": "Yes"})


@pytest.fixture
def judge() -> Iterator[Blocking]:
    made = Blocking()
    yield made
    made.released.set()


class Running:
    """An engine that scores one recorded trace, and its scrape page."""

    def __init__(self, judge: Judge, **fields: Any) -> None:
        evaluators = (ToolSelectionAccuracy(model=judge, **fields), COUNT, ORDER)
        rule = Rule.model_validate({"name": "r", "evaluators": evaluators})
        self.page = PrometheusSink()
        self.told = Told()
        self.closed: list[ClosedTrace] = []
        self.engine = Engine(
            RuleSet([rule]),
            [self.page, self.told],
            grouping=Grouping(settle=0.0),
            on_closed=self.closed.append,
        )
        self.engine.feed(spans_of(CAPTURE))

    def value(self, name: str, **labels: str) -> float:
        agent = {"agent": "travel_agent", "rule": "r"}
        return self.page.registry.get_sample_value(name, {**agent, **labels}) or 0.0

    def evaluated(self, evaluator: str, verdict: str) -> float:
        return self.value("otel_eval_evaluations_total", evaluator=evaluator, verdict=verdict)


class Told:
    """A sink that knows when the evaluators that ask no model have been delivered."""

    def __init__(self) -> None:
        self.both = Event()

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        if {"tool-call-count", "tool-call-order"} <= {each.evaluator for each in evaluations}:
            self.both.set()

    def close(self) -> None:
        """Nothing to do."""


def test_other_scores_are_on_the_page_while_the_judge_still_thinks(judge: Blocking) -> None:
    running = Running(judge)

    assert running.told.both.wait(10)
    assert judge.asked.wait(10)
    assert running.engine._outlets[0].wait(10)

    others = [running.evaluated(name, "pass") for name in ("tool-call-count", "tool-call-order")]
    assert others == [1.0, 1.0]
    assert running.value("otel_eval_score_count", evaluator="tool-selection-accuracy") == 0.0
    judge.released.set()
    assert running.engine.close(10)
    assert running.evaluated("tool-selection-accuracy", "pass") == 4.0


def test_closing_ends_in_time_and_counts_the_unfinished_judgements_as_skipped(
    judge: Blocking,
) -> None:
    running = Running(judge)
    assert judge.asked.wait(10)
    began = time.monotonic()

    running.engine.close(1.0)

    assert time.monotonic() - began < 5
    labels = {"evaluator": "tool-selection-accuracy"}
    assert running.value("otel_eval_skips_total", code="timeout", **labels) == 4.0
    assert running.evaluated("tool-selection-accuracy", "skip") == 4.0
    assert running.evaluated("tool-call-count", "pass") == 1.0


def test_what_was_answered_before_the_end_is_kept_and_its_price_told(judge: Blocking) -> None:
    judge.at_once = 3
    running = Running(judge)
    assert judge.asked.wait(10)

    running.engine.close(1.0)

    assert running.evaluated("tool-selection-accuracy", "pass") == 3.0
    assert running.evaluated("tool-selection-accuracy", "skip") == 1.0
    assert running.page.registry.get_sample_value("otel_eval_judge_duration_seconds_count") == 3.0


@pytest.mark.parametrize("fields", [{"sample": 0.0}, {"only_if": "fail"}])
def test_nobody_waits_for_what_is_not_worth_a_judge(
    judge: Blocking, fields: dict[str, Any]
) -> None:
    """It is known when the trace closes: a journal would keep the trace for an answer else."""
    running = Running(judge, **fields)

    assert running.told.both.wait(10)

    (closed,) = running.closed
    assert not closed.awaited
    skips = [each for each in closed.evaluations if each.verdict == "skip"]
    assert [getattr(each.outcome, "code", None) for each in skips] == ["sampled_out"]
    assert running.engine.close(10)
    assert not judge.asked.is_set()


def test_what_judges_took_is_on_the_page(judge: Blocking) -> None:
    judge.released.set()
    running = Running(judge)

    assert running.engine.close(10)

    sample = running.page.registry.get_sample_value
    model = "tests.judge.test_engine:Blocking"
    assert sample("otel_eval_judge_calls_total", {"model": model, "result": "ok"}) == 4.0
    assert sample("otel_eval_judge_duration_seconds_count") == 4.0
    assert sample("otel_eval_judge_tokens_total", {"direction": "input"}) == 0.0


CALLS = [
    JudgeCall(model="a:b", result="ok", input_tokens=100, output_tokens=7, seconds=1.5),
    JudgeCall(model="a:b", result="ok", input_tokens=10, output_tokens=1, seconds=0.5),
    JudgeCall(model="a:b", result="cached"),
]


def test_the_scrape_page_tells_calls_tokens_and_durations() -> None:
    sink = PrometheusSink()
    for call in CALLS:
        sink.observe_judge(call)

    lines = sink.page()[0].decode().splitlines()

    assert 'otel_eval_judge_calls_total{model="a:b",result="ok"} 2.0' in lines
    assert 'otel_eval_judge_calls_total{model="a:b",result="cached"} 1.0' in lines
    assert 'otel_eval_judge_tokens_total{direction="input"} 110.0' in lines
    assert 'otel_eval_judge_tokens_total{direction="output"} 8.0' in lines
    assert "otel_eval_judge_duration_seconds_sum 2.0" in lines


def test_a_page_without_judges_does_not_mention_them() -> None:
    assert b"otel_eval_judge" not in PrometheusSink().page()[0]


def test_the_meter_tells_the_same() -> None:
    reader = InMemoryMetricReader()
    sink = MetricsSink(meter_provider=MeterProvider([reader], shutdown_on_exit=False))
    for call in CALLS:
        sink.observe_judge(call)

    data = reader.get_metrics_data()

    assert data is not None
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    points: dict[str, list[Any]] = {each.name: list(each.data.data_points) for each in metrics}
    calls = points["otel_eval.judge.calls"]
    assert {each.attributes["model"] for each in calls} == {"a:b"}
    assert {each.attributes["result"]: each.value for each in calls} == {"ok": 2, "cached": 1}
    tokens = points["otel_eval.judge.tokens"]
    assert {each.attributes["direction"]: each.value for each in tokens} == {
        "input": 110,
        "output": 8,
    }
    assert points["otel_eval.judge.duration"][0].sum == 2.0
