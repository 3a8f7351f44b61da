"""What every evaluator has: its fields, its name, both forms of judging, its skips."""

from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.base import Evaluator, Settings, listed, plural
from otel_eval.evaluators.capture import how_to_record
from otel_eval.evaluators.patterns import compile_name, compile_names
from otel_eval.extract.dialects import DIALECTS
from otel_eval.model import Score, Skip, ToolCall, Trajectory
from tests.conftest import call, trajectory


class Calls(Evaluator):
    type: str = "calls"
    most_calls: int = 2

    def evaluate(self, trajectory: Trajectory) -> Score:
        return Score(float(len(trajectory.tool_calls) <= self.most_calls))


class Each(Evaluator):
    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score:
        return Score(1.0, f"{call.name} of {len(trajectory.tool_calls)}")


class Neither(Evaluator):
    pass


def test_fields_are_read_in_both_spellings() -> None:
    assert Calls(mostCalls=3) == Calls(most_calls=3)
    assert Calls.model_validate({"defaultEvaluationCriteria": {"mostCalls": 3}}) == Calls(
        most_calls=3
    )


def test_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(ValidationError):
        Calls.model_validate([1])


def test_keys_of_users_are_left_alone() -> None:
    class Part(Settings):
        counts: dict[str, int]

    assert Part(counts={"getUser": 1}).counts == {"getUser": 1}


@pytest.mark.parametrize(
    "fields",
    [
        {"unknown": 1},
        {"pass_at": -0.1},
        {"pass_at": float("nan")},
        {"attempts": "some"},
        {"most_calls": 1, "mostCalls": 1},
        {"default_evaluation_criteria": [1]},
    ],
    ids=repr,
)
def test_other_fields_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Calls(**fields)


def test_an_evaluator_is_frozen() -> None:
    with pytest.raises(ValidationError):
        Calls().most_calls = 3


def test_the_name_is_the_type_unless_given() -> None:
    assert (Calls().name, Calls(name="few").name, Each().name) == ("calls", "few", "Each")


def test_a_whole_trajectory_gives_one_outcome() -> None:
    assert Calls().outcomes(trajectory(["a"])) == [(None, Score(1.0))]
    assert not Calls.per_call()


def test_a_judge_of_calls_gives_one_outcome_per_call() -> None:
    calls = trajectory(["a", "b"])

    assert Each.per_call()
    assert Each().outcomes(calls) == [
        (calls.tool_calls[0], Score(1.0, "a of 2")),
        (calls.tool_calls[1], Score(1.0, "b of 2")),
    ]


def test_a_judge_of_calls_skips_a_trace_without_any() -> None:
    ((judged, outcome),) = Each().outcomes(trajectory())

    assert judged is None
    assert isinstance(outcome, Skip)
    assert outcome.code == "no_tool_calls"


def test_failed_attempts_are_left_out_before_anything_is_judged() -> None:
    calls = trajectory([call("a", error="x"), call("b"), call("c", output={"isError": True})])

    assert Calls(most_calls=1).outcomes(calls) == [(None, Score(0.0))]
    assert Calls(most_calls=1, attempts="succeeded").outcomes(calls) == [(None, Score(1.0))]
    ((judged, _),) = Each(attempts="succeeded").outcomes(calls)
    assert judged is calls.tool_calls[1]


def test_an_evaluator_without_either_form_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Neither implements neither form"):
        Neither().evaluate(trajectory())
    with pytest.raises(NotImplementedError, match="Calls judges whole trajectories"):
        Calls().evaluate_call(trajectory(), call())


def test_words_for_reasons() -> None:
    assert [plural(count, "call") for count in (0, 1, 2)] == ["0 calls", "1 call", "2 calls"]
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdef")) == "a, b, c, d, e, 1 more"
    assert listed(["a", "b"], most=1, separator="; ", total=9) == "a; 8 more"


@pytest.mark.parametrize("dialect", [dialect.id for dialect in DIALECTS])
def test_every_dialect_can_be_told_to_record(dialect: str) -> None:
    assert how_to_record(dialect) != how_to_record(None)


@pytest.mark.parametrize(
    ("dialect", "hint"),
    [
        ("genai/pydantic_ai", "include_content"),
        ("genai/strands", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        ("unheard-of", "turn content capture on"),
        (None, "turn content capture on"),
    ],
)
def test_a_refined_dialect_falls_back_to_its_family(dialect: str | None, hint: str) -> None:
    assert hint in how_to_record(dialect)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("search", ["search"], ["Search", "searches"]),
        ("get_*", ["get_", "get_user"], ["forget_user"]),
        ("get_?", ["get_a"], ["get_ab"]),
        ("[ab]x", ["ax"], ["cx"]),
        ("/^a.c$/", ["abc"], ["abcd"]),
        ("/b/", ["abc"], ["ac"]),
        ("/", ["/"], ["a"]),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_names_are_matched_by_glob_or_expression(
    pattern: str, good: list[str], bad: list[str]
) -> None:
    fits = compile_name(pattern)

    assert all(map(fits, good))
    assert not any(map(fits, bad))


def test_any_of_several_patterns_may_fit() -> None:
    fits = compile_names(["a*", "/z$/"])

    assert [fits(name) for name in ("ab", "bz", "b")] == [True, True, False]
    assert not compile_names([])("a")
    with pytest.raises(ValueError, match="not an RE2 expression"):
        compile_name("/(/")
