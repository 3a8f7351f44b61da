"""LangChain's and ADK's answers, reproduced by trajectory-match, but for the quirks listed here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.trajectory_match import TrajectoryMatch
from otel_eval.model import Score, ToolCall
from tests.conftest import call, trajectory

Case = Mapping[str, Any]
Calls = Sequence[Mapping[str, Any]]

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "peers.jsonl").read_text("utf-8").splitlines()
]
LANGCHAIN_MODES = {
    "strict": "exact",
    "unordered": "unordered",
    "superset": "any_order",
    "subset": "subset",
}
MIRRORED = "LangChain's subset test swaps the two sides, and with them the argument mode"
QUIRKS = {
    "lc-superset-greedy-steals-specific-call": (
        1.0,
        "LangChain pairs first fit: the wide expectation takes the only call of the narrow one",
    ),
    "lc-subset-args-mode-is-mirrored-superset": (1.0, MIRRORED),
    "lc-subset-args-mode-is-mirrored-superset-2": (0.0, MIRRORED),
    "lc-subset-args-mode-is-mirrored-subset": (0.0, MIRRORED),
    "lc-unordered-args-superset-mode": (1.0, f"unordered is superset and subset: {MIRRORED}"),
}


def cases(evaluator: str) -> list[Any]:
    return [pytest.param(each, id=each["id"]) for each in CASES if each["evaluator"] == evaluator]


def calls(spans: Iterable[Mapping[str, Any]]) -> list[ToolCall]:
    return [
        call(span["attributes"]["tool.name"], json.loads(span["attributes"]["input.value"]))
        for span in spans
    ]


def score(expected: Calls, actual: Sequence[ToolCall], **settings: Any) -> float:
    outcome = TrajectoryMatch(expected=expected, **settings).evaluate(trajectory(actual))
    assert isinstance(outcome, Score)
    return outcome.value


def langchain(case: Case) -> float:
    config = case["config"]
    settings = {
        "args": config["tool_args_match_mode"],
        "tool_args": config.get("tool_args_match_overrides", {}),
    }
    expected: list[Calls] = case["criteria"]["reference_steps"]
    by_start = groupby(case["spans"], key=lambda span: span["start_time"])
    actual = [calls(spans) for _, spans in by_start]
    mode = LANGCHAIN_MODES[config["trajectory_match_mode"]]
    if mode == "exact" and any(len(step) > 1 for step in [*expected, *actual]):
        return step_by_step(expected, actual, settings)
    return score(list(chain(*expected)), list(chain(*actual)), mode=mode, **settings)


def step_by_step(
    expected: Sequence[Calls], actual: Sequence[Sequence[ToolCall]], settings: Mapping[str, Any]
) -> float:
    """Strict is strict about messages: the parallel calls inside one come in any order."""
    steps = zip_longest(expected, actual, fillvalue=())
    return min(score(wanted, made, mode="unordered", **settings) for wanted, made in steps)


def adk(case: Case) -> float:
    """The mean over the turns of the conversation."""
    config = case["config"]
    turns = [
        score(
            expected,
            calls(s for s in case["spans"] if s["attributes"]["adk.invocation.index"] == turn),
            mode=config["match_type"].lower(),
            args="ignore" if config.get("ignore_args") else "exact",
        )
        for turn, expected in enumerate(case["criteria"]["expected_invocations"])
    ]
    return sum(turns) / len(turns)


@pytest.mark.parametrize("case", cases("langchain-trajectory-match"))
def test_langchain_is_reproduced_but_for_its_quirks(case: Case) -> None:
    if "error" in case["expected"]:
        with pytest.raises(ValidationError, match="args"):
            langchain(case)
        return
    expected, _ = QUIRKS.get(case["id"], (case["expected"]["score"], ""))

    assert langchain(case) == expected


@pytest.mark.parametrize("case", cases("adk-tool-trajectory"))
def test_adk_is_reproduced(case: Case) -> None:
    assert adk(case) == pytest.approx(case["expected"]["score"])


def test_every_quirk_is_a_case_with_another_answer() -> None:
    answers = {case["id"]: case["expected"].get("score") for case in CASES}

    assert all(answers[name] != here for name, (here, _) in QUIRKS.items())
