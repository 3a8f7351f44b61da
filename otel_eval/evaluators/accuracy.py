"""tool-call-accuracy: exactly the expected calls were made, as the harmonic mean of both ways."""

from collections.abc import Sequence
from functools import cached_property
from math import floor
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from otel_eval.evaluators.base import Evaluator, Settings, listed, plural
from otel_eval.evaluators.capture import incomplete, unrecorded
from otel_eval.evaluators.matchers import compile_args
from otel_eval.evaluators.matching import f1
from otel_eval.evaluators.pairing import ArgsPlan, Pairing, Wanted
from otel_eval.model import UNRECORDED, Json, Score, Skip, ToolCall, Trajectory


class ExpectedCall(Settings):
    """A call that should be made, with exactly these arguments; matchers may stand for values."""

    tool: str = Field(min_length=1)
    args: dict[str, Any]

    @model_validator(mode="after")
    def _matchers_are_usable(self) -> Self:
        compile_args(self.args, ".args", remedy="tool-call-args with args: {} takes any arguments")
        return self


class ToolCallAccuracy(Evaluator):
    """F1 of exact calls: missed, wrong and extra calls all cost. `expected: []` means no call."""

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-call-accuracy"] = "tool-call-accuracy"
    expected: tuple[ExpectedCall, ...]

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        if not trajectory.whole:
            return incomplete(trajectory)
        calls = self.calls(trajectory)
        pairing = self._plan.pair(calls)
        if pairing.undecided:
            return unrecorded(trajectory, "arguments", pairing.undecided)
        value = f1(len(pairing.pairs), len(self.expected), len(calls))
        details = self._details(calls, pairing)
        details["summary"] = summary(value, details)
        return Score(value, _reason(details), details)

    @cached_property
    def _plan(self) -> ArgsPlan:
        return ArgsPlan([Wanted(each.tool, each.args) for each in self.expected], subset=False)

    @cached_property
    def _shown(self) -> list[dict[str, Json]]:
        return [{"tool": each.tool, "args": each.args} for each in self.expected]

    def _details(self, calls: Sequence[ToolCall], pairing: Pairing) -> dict[str, Json]:
        expected = self._shown
        used = {*pairing.pairs.values(), *pairing.nearest.values()}
        return {
            "total_expected": len(expected),
            "total_actual": len(calls),
            "correct_calls": [
                {
                    "expected": expected[i],
                    "actual": _shown(calls[j]),
                    "status": "correct",
                    "args_match": True,
                }
                for i, j in sorted(pairing.pairs.items())
            ],
            "incorrect_calls": [
                {
                    "expected": expected[i],
                    "actual": _shown(calls[j]),
                    "status": "incorrect",
                    "args_match": False,
                    "details": "Tool name matches but arguments differ",
                }
                for i, j in sorted(pairing.nearest.items())
            ],
            "missed_calls": [
                {
                    "expected": expected[i],
                    "status": "missed",
                    "args_match": False,
                    "details": "Expected call was not made",
                }
                for i in pairing.lost
                if i not in pairing.nearest
            ],
            "extra_calls": [_shown(call) for j, call in enumerate(calls) if j not in used],
        }


def _shown(call: ToolCall) -> dict[str, Json]:
    if call.arguments is UNRECORDED:
        return {"tool": call.name}
    return {"tool": call.name, "args": call.arguments}


def summary(value: float, details: dict[str, Json]) -> str:
    """The line of tpmjs; it rounds halves up, where Python would round them to even."""
    percent = floor(value * 1000 + 0.5) / 10
    return (
        f"Accuracy Score: {percent:.1f}% | "
        f"Correct: {len(details['correct_calls'])}/{details['total_expected']} | "
        f"Incorrect: {len(details['incorrect_calls'])} | "
        f"Missed: {len(details['missed_calls'])} | "
        f"Extra: {len(details['extra_calls'])}"
    )


def _reason(details: dict[str, Json]) -> str:
    correct, total = len(details["correct_calls"]), details["total_expected"]
    wrong = [entry["expected"]["tool"] for entry in details["incorrect_calls"]]
    missed = [entry["expected"]["tool"] for entry in details["missed_calls"]]
    extra = [entry["tool"] for entry in details["extra_calls"]]
    parts = [
        f"{correct} of {plural(total, 'expected call')} made exactly",
        *([f"other arguments: {listed(wrong)}"] if wrong else []),
        *([f"missed: {listed(missed)}"] if missed else []),
        *([f"not expected: {listed(extra)}"] if extra else []),
    ]
    return "; ".join(parts)
