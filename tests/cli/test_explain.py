from pathlib import Path

import pytest

from otel_eval.cli.deductions import deductions
from otel_eval.job import Job
from otel_eval.model import Score, ToolCall
from otel_eval.rules import Rule
from tests.cli.running import RULES, agent_trace, run, snapshot
from tests.conftest import call, trajectory
from tests.extract.captures import CAPTURES

FILE = str(CAPTURES / "pydantic_ai2_v5_err.otlp.jsonl")
MANY = [str(path) for path in sorted(CAPTURES.glob("langgraph_traceloop_*.otlp.jsonl"))]


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return str(path)


def test_steps_evaluations_costs_and_rules_that_do_not_match(rules: str) -> None:
    result = run("explain", FILE, "--trace", "B9E88", "-c", rules)

    assert result.stdout == snapshot("explain.txt")
    assert result.exit_code == 0


def test_sub_agents_are_named_and_steps_are_those_of_the_trace() -> None:
    result = run("explain", *MANY, "--trace", "600e5b")

    assert result.stdout == snapshot("explain_agents.txt")


def test_a_session_names_steps_of_its_other_traces(tmp_path: Path) -> None:
    path, config = tmp_path / "t.jsonl", tmp_path / "c.yaml"
    text = agent_trace(1, ["search"], session__id="s") + agent_trace(2, ["pay"], session__id="s")
    path.write_text(text)
    config.write_text(
        "rules: [{name: r, per: session, evaluators: [{type: tool-allowlist, forbidden: ['*']}]}]"
    )

    result = run("explain", str(path), "--trace", f"{2:032x}", "-c", str(config))

    assert "−0.50  search in another trace: search is not allowed" in result.stdout
    assert "−0.50  step 1: pay is not allowed" in result.stdout


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("zz", "--trace zz: no trace begins so; there are 9"),
        ("9", "--trace 9: 2 traces begin so: 9"),
    ],
    ids=["unknown", "ambiguous"],
)
def test_an_id_that_names_no_single_trace(tmp_path: Path, prefix: str, told: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(agent_trace(9 << 124, ["a"]) + agent_trace((9 << 124) + 1, ["b"]))

    result = run("explain", str(path), "--trace", prefix)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {told}")
    assert len(result.stderr.splitlines()) == 1


def test_a_whole_id_is_never_ambiguous(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(agent_trace(9 << 124, ["a"]) + agent_trace((9 << 124) + 1, ["b"]))

    result = run("explain", str(path), "--trace", f"{9 << 124:032x}")

    assert "→ a()" in result.stdout


CALLS = [
    call("a", {"x": 1}, output=1, span_id="01"),
    call("b", {"x": 1}, output=1, error="no", span_id="02"),
    call("a", {"x": 2}, output=1, span_id="03"),
    call("a", {"x": 2}, output=1, span_id="04"),
]

EVALUATORS = [
    {"type": "tool-call-count", "tool_calls_count": {"a": "< 2", "b": "= 1", "c": ">= 1"}},
    {"type": "tool-call-count", "tool_calls_count": {"a": "!= 3", "d": "= 1"}, "strict": True},
    {"type": "tool-call-order", "tool_calls_order": ["b", "a", "c", "b"]},
    {"type": "tool-call-order", "tool_calls_order": [["b", "a"], "a"], "strict": True},
    {"type": "tool-call-order", "tool_calls_order": ["a", "b"], "attempts": "succeeded"},
    {"type": "tool-call-args", "tool_calls": [{"name": "b", "args": {"x": 2}}]},
    {"type": "tool-call-args", "tool_calls": [{"name": "c", "args": {}}], "strict": True},
    {"type": "tool-call-output", "tool_outputs": [{"name": "a", "output": 2}]},
    {"type": "tool-call-accuracy", "expected": [{"tool": "a", "args": {"x": 3}}]},
    {"type": "tool-call-accuracy", "expected": []},
    {"type": "trajectory-match", "expected": ["b", "c"], "partial": True},
    {"type": "trajectory-match", "expected": ["c", "b"], "mode": "any_order"},
    {"type": "trajectory-match", "expected": [{"name": "b", "args": {}}], "mode": "subset"},
    {"type": "tool-allowlist", "allowed": ["b"], "required": ["c"]},
    {"type": "tool-error-rate"},
    {"type": "tool-loop", "max_repeats": 1},
    {"type": "tool-budget", "max_calls": 2, "max_model_calls": 0},
    {"type": "tool-args-schema", "schemas": {"a": {"properties": {"x": {"maximum": 1}}}}},
    {"type": "tests.cli.raising:half"},
]


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda each: str(each)[:60])
def test_deductions_add_up_to_what_the_score_lacks(evaluator: dict[str, object]) -> None:
    rule = Rule.parse({"name": "r", "evaluators": [evaluator]})
    job = Job(rule=rule, trajectory=trajectory(CALLS))
    (evaluation,) = job.evaluate(rule.evaluators[0])

    found = deductions(evaluation, rule.evaluators[0])

    assert isinstance(evaluation.outcome, Score)
    assert evaluation.outcome.value < 1
    assert sum(each.cost for each in found) == pytest.approx(1 - evaluation.outcome.value)
    assert all(each.call is None or each.call in CALLS for each in found)


@pytest.mark.parametrize(
    ("evaluator", "steps"),
    [
        ({"type": "tool-error-rate"}, [1]),
        ({"type": "tool-loop", "max_repeats": 1}, [3]),
        ({"type": "tool-call-count", "tool_calls_count": {"a": "= 1"}}, [2, 3]),
        ({"type": "tool-allowlist", "forbidden": ["b"]}, [1]),
        ({"type": "tool-budget", "max_calls": 3}, [3]),
        ({"type": "tool-call-order", "tool_calls_order": ["b", "a", "b"]}, [None]),
        ({"type": "tool-call-order", "tool_calls_order": ["a", "a", "a", "b"]}, [1]),
        ({"type": "tool-call-args", "tool_calls": [{"name": "b", "args": {"x": 5}}]}, [1]),
    ],
    ids=str,
)
def test_a_deduction_is_tied_to_its_step(
    evaluator: dict[str, object], steps: list[int | None]
) -> None:
    rule = Rule.parse({"name": "r", "evaluators": [evaluator]})
    (evaluation,) = Job(rule=rule, trajectory=trajectory(CALLS)).evaluate(rule.evaluators[0])

    found = deductions(evaluation, rule.evaluators[0])

    assert [_step(each.call) for each in found] == steps


def _step(made: ToolCall | None) -> int | None:
    return None if made is None else CALLS.index(made)
