"""What real peers answer on the same inputs, and what is right here (`here`) where that differs."""

import json
from pathlib import Path
from typing import Any

import pytest

from otel_eval import Rule, evaluate, evaluators
from otel_eval.errors import ConfigError
from otel_eval.extract import trajectories
from otel_eval.model import Score, Skip, Span, Trajectory

HERE = Path(__file__).parent
CASES = [
    json.loads(line)
    for name in ("uipath.jsonl", "tpmjs.jsonl")
    for line in (HERE / name).read_text().splitlines()
]
SKIPS = {
    "tool-call-args": "arguments_unrecorded",
    "tool-call-output": "output_unrecorded",
}
FIELDS = {
    "tool-call-count": "tool_calls_count",
    "tool-call-order": "tool_calls_order",
    "tool-call-args": "tool_calls",
    "tool-call-output": "tool_outputs",
}


def listed(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases]


def evaluator_of(case: dict[str, Any]) -> evaluators.Evaluator:
    criteria = case["criteria"] or {}
    return evaluators.parse({"type": case["evaluator"], **case["config"], **criteria}, "golden")


def trajectory_of(case: dict[str, Any]) -> Trajectory:
    spans = [
        Span(
            trace_id="golden",
            span_id=f"#{number:03}",
            name=each["name"],
            start_ns=each["start_time"],
            end_ns=each["end_time"],
            attributes=each["attributes"],
        )
        for number, each in enumerate(case["spans"])
    ]
    found = trajectories(spans) if spans else []
    return found[0] if found else Trajectory(trace_id="golden")


@pytest.mark.parametrize("case", listed(CASES))
def test_every_case_gives_what_is_right_here(case: dict[str, Any]) -> None:
    match case["here"]:
        case {"error": kind}:
            with pytest.raises(ConfigError) as caught:
                evaluator_of(case)
            assert f"golden.{FIELDS[case['evaluator']]}" in str(caught.value)
            assert kind.split()[0] in str(caught.value)
        case {"skip": _}:
            outcome = evaluator_of(case).evaluate(trajectory_of(case))
            assert isinstance(outcome, Skip)
            assert outcome.code == SKIPS[case["evaluator"]]
        case {"score": value}:
            outcome = evaluator_of(case).evaluate(trajectory_of(case))
            assert isinstance(outcome, Score)
            assert outcome.value == pytest.approx(value, abs=1e-6)
            assert outcome.reason
        case other:
            pytest.fail(f"no such answer: {other}")


EMPTY = [case for case in CASES if not case["spans"] and "score" in case["here"]]


@pytest.mark.parametrize("case", listed(EMPTY))
def test_no_spans_are_scored_by_evaluate_too(case: dict[str, Any]) -> None:
    rule = Rule(name="golden", evaluators=(evaluator_of(case),))

    (found,) = evaluate([], rules=[rule])

    assert isinstance(found.outcome, Score)
    assert found.outcome.value == pytest.approx(case["here"]["score"], abs=1e-6)


AGREED = [case for case in CASES if "score" in case["here"] and not case.get("why")]
ACCURACY = [case for case in AGREED if case["evaluator"] == "tool-call-accuracy"]
COUNT = [
    case
    for case in AGREED
    if case["evaluator"] == "tool-call-count"
    and "_result" not in case["expected"]["details"]["explained_tool_calls_count"]
]


@pytest.mark.parametrize("case", listed(ACCURACY))
def test_accuracy_gives_the_details_of_the_peer(case: dict[str, Any]) -> None:
    outcome = evaluator_of(case).evaluate(trajectory_of(case))

    assert isinstance(outcome, Score)
    assert outcome.details == _snake_case(case["expected"]["details"])


@pytest.mark.parametrize("case", listed(COUNT))
def test_count_gives_the_sentences_of_the_peer(case: dict[str, Any]) -> None:
    told = case["expected"]["details"]["explained_tool_calls_count"]

    outcome = evaluator_of(case).evaluate(trajectory_of(case))

    assert isinstance(outcome, Score)
    assert told.items() <= outcome.details["explained_tool_calls_count"].items()


def _snake_case(value: Any) -> Any:
    """The peer's own keys; what a call holds is left as it is."""
    names = {
        "totalExpected": "total_expected",
        "totalActual": "total_actual",
        "correctCalls": "correct_calls",
        "incorrectCalls": "incorrect_calls",
        "missedCalls": "missed_calls",
        "extraCalls": "extra_calls",
        "argsMatch": "args_match",
    }
    if isinstance(value, list):
        return [_snake_case(each) for each in value]
    if isinstance(value, dict) and "tool" not in value:
        return {names.get(name, name): _snake_case(each) for name, each in value.items()}
    return value
