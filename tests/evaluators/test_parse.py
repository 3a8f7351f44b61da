"""From an entry of a rule file to an evaluator, or to problems at their places."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from otel_eval import evaluators
from otel_eval.errors import ConfigError
from otel_eval.model import Score, Skip, Trajectory
from tests.conftest import call, trajectory

PLACE = "rules[2].evaluators[0]"
PLUGIN = "tests.typing.plugin"


SOUND: list[dict[str, Any]] = [
    {"type": "tool-call-count", "tool_calls_count": {"a": ["=", 1], "b": ">= 2"}, "strict": True},
    {"type": "tool-call-order", "tool_calls_order": ["a", ["b", "c"]], "name": "order"},
    {"type": "tool-call-args", "tool_calls": [{"name": "a", "args": {"x": {"$any": True}}}]},
    {"type": "tool-call-output", "tool_outputs": [{"name": "a", "output": None}]},
    {"type": "tool-call-accuracy", "expected": [], "pass_at": 0.5},
    {"type": f"{PLUGIN}:few_calls", "most": 3},
]
UNSOUND: list[dict[str, Any]] = [
    {"tool_calls_count": {"a": ["=", 1]}},
    {"type": "tool-call-count", "tool_calls_count": {"a": ["=>", 1]}},
    {"type": "tool-call-count", "tool_calls_count": {"a": ["=", 1]}, "strickt": True},
    {"type": "tool-call-count", "tool_calls_count": {"": ["=", 1]}},
    {"type": "tool-call-order", "tool_calls_order": []},
    {"type": "tool-call-args", "tool_calls": [{"name": "a"}]},
]


def problems(config: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        evaluators.parse(config, PLACE)
    return list(caught.value.problems)


@pytest.mark.parametrize("type_id", evaluators.BUILT_IN)
def test_the_table_leads_to_the_class_of_that_type(type_id: str) -> None:
    found = evaluators.find(type_id)

    assert found is not None
    assert found.model_fields["type"].default == type_id


def test_an_unknown_type_lists_the_known_ones() -> None:
    (problem,) = problems({"type": "tool-cal-count"})

    assert problem.startswith(
        f"{PLACE}: unknown type 'tool-cal-count' (did you mean tool-call-count?"
    )
    assert all(type_id in problem for type_id in evaluators.BUILT_IN)


@pytest.mark.parametrize("given", [{}, {"type": None}, {"type": ""}, {"type": 3}])
def test_a_missing_type_lists_the_known_ones(given: dict[str, Any]) -> None:
    (problem,) = problems(given)

    assert problem.startswith(f"{PLACE}: type is missing (known: tool-call-count, ")


PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "operator": (
        {"type": "tool-call-count", "tool_calls_count": {"search": ["=>", 1]}},
        ".tool_calls_count.search: unknown operator '=>'",
    ),
    "negative": (
        {"type": "tool-call-count", "toolCallsCount": {"search": ["=", -1]}},
        ".tool_calls_count.search: count -1 is negative",
    ),
    "fraction": (
        {"type": "tool-call-count", "tool_calls_count": {"search": ["=", 1.5]}},
        ".tool_calls_count.search: count 1.5 is not a whole number",
    ),
    "truth": (
        {"type": "tool-call-count", "tool_calls_count": {"search": ["=", True]}},
        ".tool_calls_count.search: count True is not a whole number",
    ),
    "bare number": (
        {"type": "tool-call-count", "tool_calls_count": {"search": 1}},
        ".tool_calls_count.search: malformed bound",
    ),
    "no counts": (
        {"type": "tool-call-count", "tool_calls_count": {}},
        ".tool_calls_count: is empty",
    ),
    "no order": (
        {"type": "tool-call-order", "tool_calls_order": []},
        ".tool_calls_order: is empty",
    ),
    "empty group": (
        {"type": "tool-call-order", "tool_calls_order": ["a", []]},
        ".tool_calls_order[1]: takes a tool's name, or a list of names",
    ),
    "nested group": (
        {"type": "tool-call-order", "tool_calls_order": [["a", ["b"]]]},
        ".tool_calls_order[0]: a list of tools in any order holds names only",
    ),
    "not a list": (
        {"type": "tool-call-order", "tool_calls_order": "search"},
        ".tool_calls_order: Input should be a valid list",
    ),
    "no args": (
        {"type": "tool-call-args", "tool_calls": [{"name": "search"}]},
        ".tool_calls[0].args: Field required",
    ),
    "matcher": (
        {"type": "tool-call-args", "toolCalls": [{"name": "t", "args": {"a": [{"$regexp": "x"}]}}]},
        ".tool_calls[0].args.a[0]: unknown matcher $regexp (did you mean $regex?",
    ),
    "expression": (
        {"type": "tool-call-accuracy", "expected": [{"tool": "t", "args": {"a": {"$regex": "("}}}]},
        ".expected[0].args.a: $regex not an RE2 expression",
    ),
    "output matcher": (
        {"type": "tool-call-output", "tool_outputs": [{"name": "t", "output": {"$in": []}}]},
        ".tool_outputs[0].output: $in takes a list",
    ),
    "any arguments": (
        {"type": "tool-call-args", "tool_calls": [{"name": "t", "args": {"$any": True}}]},
        ".tool_calls[0].args: $any stands for the value of one argument, not for all of them "
        "(args: {} with subset takes any arguments;",
    ),
    "any exact arguments": (
        {"type": "tool-call-accuracy", "expected": [{"tool": "t", "args": {"$type": "object"}}]},
        ".expected[0].args: $type stands for the value of one argument, not for all of them "
        "(tool-call-args with args: {} takes any arguments;",
    ),
    "any arguments of a trajectory": (
        {"type": "trajectory-match", "expected": ["a", {"name": "t", "args": {"$any": True}}]},
        ".expected[1].args: $any stands for the value of one argument, not for all of them "
        "(leave args out to take any arguments;",
    ),
    "nested field": (
        {"type": "tool-call-args", "tool_calls": [{"name": "a", "args": {}, "arg": {}}]},
        ".tool_calls[0].arg: unknown field (did you mean args? known: name, args)",
    ),
    "nested field of a trajectory": (
        {"type": "trajectory-match", "expected": ["a", {"name": "a", "nam": "a"}]},
        ".expected[1].nam: unknown field (did you mean name? known: name, args)",
    ),
    "nested field unlike any": (
        {"type": "tool-call-output", "toolOutputs": [{"name": "a", "output": 1, "zzz": 1}]},
        ".tool_outputs[0].zzz: unknown field (known: name, output)",
    ),
    "tool without a name": (
        {"type": "tool-call-count", "tool_calls_count": {"": "= 1"}},
        ".tool_calls_count: a tool's name is empty",
    ),
    "field": (
        {"type": "tool-call-count", "tool_calls_count": {"a": "= 1"}, "strickt": True},
        ".strickt: unknown field (did you mean strict?",
    ),
    "two spellings": (
        {"type": "tool-call-count", "tool_calls_count": {"a": "= 1"}, "toolCallsCount": {}},
        ": tool_calls_count is given twice, in two spellings",
    ),
    "pass_at": (
        {"type": "tool-call-count", "tool_calls_count": {"a": "= 1"}, "pass_at": 2},
        ".pass_at: Input should be less than or equal to 1",
    ),
    "criteria": (
        {"type": "tool-call-count", "default_evaluation_criteria": 3},
        ": default_evaluation_criteria takes the evaluator's own fields",
    ),
    "no module": ({"type": "no_such_module:Thing"}, ".type: no_such_module:Thing cannot be"),
    "no name": ({"type": f"{PLUGIN}:Nothing"}, f".type: {PLUGIN}:Nothing cannot be imported"),
    "no evaluator": (
        {"type": f"{PLUGIN}:NOT_AN_EVALUATOR"},
        f".type: {PLUGIN}:NOT_AN_EVALUATOR is neither a subclass of Evaluator nor a function",
    ),
    "plug-in's field": (
        {"type": f"{PLUGIN}:ShortQueries", "longest": 0},
        ".longest: Input should be greater than or equal to 1",
    ),
    "function's field": (
        {"type": f"{PLUGIN}:few_calls", "most": "many"},
        ".most: Input should be a valid integer",
    ),
}


@pytest.mark.parametrize(("config", "problem"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_problem_is_told_at_its_place(config: dict[str, Any], problem: str) -> None:
    found = problems(config)

    assert len(found) == 1
    assert found[0].startswith(PLACE + problem)


def test_every_problem_is_told_at_once() -> None:
    counts = {"a": ["=>", 1], "b": ["=", -1], "c": ">= 2"}

    found = problems({"type": "tool-call-count", "tool_calls_count": counts, "strict": "perhaps"})

    assert [each.split(":")[0] for each in found] == [
        f"{PLACE}.tool_calls_count.a",
        f"{PLACE}.tool_calls_count.b",
        f"{PLACE}.strict",
    ]


def test_own_fields_win_over_default_criteria() -> None:
    config = {
        "type": "tool-call-count",
        "defaultEvaluationCriteria": {"toolCallsCount": {"a": "= 1"}, "strict": True},
        "strict": False,
    }

    assert evaluators.parse(config).model_dump(include={"strict", "tool_calls_count"}) == {
        "strict": False,
        "tool_calls_count": {"a": ["=", 1]},
    }


def test_a_subclass_is_named_by_module() -> None:
    evaluator = evaluators.parse({"type": f"{PLUGIN}:ShortQueries", "longest": 20})

    assert (evaluator.type, evaluator.name) == ("short-queries", "short-queries")
    outcome = evaluator.evaluate(trajectory([call(arguments={"q": "x" * 40}), call(arguments={})]))
    assert outcome == Score(0.5, "1 of 2 calls are short")


def test_a_subclass_without_a_type_takes_the_name_it_was_found_by() -> None:
    evaluator = evaluators.parse({"type": f"{PLUGIN}:Answered"})

    assert evaluator.type == evaluator.name == f"{PLUGIN}:Answered"
    found = evaluator.outcomes(trajectory([call(output="yes"), call()]))
    assert [type(outcome) for _, outcome in found] == [Score, Skip]


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"type": f"{PLUGIN}:few_calls"}, 1.0),
        ({"type": f"{PLUGIN}:few_calls", "most": 1}, 0.0),
        ({"type": f"{PLUGIN}:share_named", "name": "named"}, 0.5),
    ],
)
def test_a_function_is_an_evaluator(config: dict[str, Any], value: float) -> None:
    evaluator = evaluators.parse(config)

    assert evaluator.evaluate(trajectory([call(agent="a"), call()])) == Score(value)
    assert evaluator.name == config.get("name", config["type"])


@pytest.mark.parametrize(
    ("answer", "text"),
    [(1.5, "returned 1.5"), (None, "returned NoneType"), ("yes", "returned str")],
)
def test_a_function_that_returns_no_score_raises(answer: object, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        evaluators.plugins.outcome(answer)


def test_a_function_may_answer_with_an_outcome_of_its_own() -> None:
    assert evaluators.plugins.outcome(Skip("timeout", "too slow")) == Skip("timeout", "too slow")


def test_a_function_with_an_unknown_annotation_cannot_be_used() -> None:
    def judge(trajectory: "Unheard") -> bool:  # type: ignore[name-defined]  # noqa: F821, ARG001  # on purpose
        return True

    with pytest.raises(evaluators.plugins.PluginError, match="annotation that is not defined"):
        evaluators.plugins.from_function(judge, "mine:judge")


async def later(trajectory: Trajectory) -> bool:  # noqa: ARG001
    return True


def blind(*, most: int = 1) -> bool:  # noqa: ARG001
    return True


def unasked() -> bool:
    return True


def renamed(trajectory: Trajectory, *, name: str) -> bool:  # noqa: ARG001
    return True


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (later, "is async"),
        (blind, "takes no trajectory"),
        (unasked, "takes no trajectory"),
        (renamed, "has a parameter name, which every evaluator has"),
    ],
)
def test_a_function_that_could_never_be_asked_is_refused(
    function: Callable[..., Any], text: str
) -> None:
    with pytest.raises(evaluators.plugins.PluginError, match=f"mine:it {text}"):
        evaluators.plugins.from_function(function, "mine:it")


@pytest.mark.parametrize("config", SOUND, ids=lambda config: config["type"])
def test_what_was_parsed_can_be_written_and_parsed_again(config: dict[str, Any]) -> None:
    first = evaluators.parse(config)
    first.evaluate(trajectory())

    assert evaluators.parse(json.loads(first.model_dump_json())) == first


def test_installed_packages_offer_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "queries-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: queries\nVersion: 1.0\n")
    entry = f"[{evaluators.plugins.GROUP}]\nshort-queries = {PLUGIN}:ShortQueries\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert evaluators.known() == [*evaluators.BUILT_IN, "short-queries"]
    assert evaluators.parse({"type": "short-queries"}).type == "short-queries"
    assert "did you mean short-queries?" in problems({"type": "short-query"})[0]


@pytest.mark.parametrize("config", SOUND, ids=lambda config: config["type"])
def test_the_schema_accepts_what_can_be_parsed(config: dict[str, Any]) -> None:
    evaluators.parse(config)

    Draft202012Validator(evaluators.schema()).validate(config)


@pytest.mark.parametrize("config", UNSOUND, ids=json.dumps)
def test_the_schema_refuses_what_cannot(config: dict[str, Any]) -> None:
    problems(config)

    assert not Draft202012Validator(evaluators.schema()).is_valid(config)


def test_only_the_modules_in_use_are_imported() -> None:
    code = """if True:
        import sys
        from otel_eval.evaluators import BUILT_IN, parse
        parse({"type": "tool-call-accuracy", "expected": []})
        modules = {target.partition(":")[0] for target in BUILT_IN.values()}
        print(*modules & sys.modules.keys(), "jsonschema" in sys.modules)
    """

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "otel_eval.evaluators.accuracy False\n"
