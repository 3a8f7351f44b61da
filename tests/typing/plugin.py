"""A plug-in author's module: it must pass mypy --strict as it stands."""

from typing import Literal

from pydantic import Field

from otel_eval.evaluators.base import Evaluator
from otel_eval.model import UNRECORDED, Score, Skip, ToolCall, Trajectory


class ShortQueries(Evaluator):
    """Whole trajectories: a subclass with fields of its own."""

    type: Literal["short-queries"] = "short-queries"
    longest: int = Field(default=80, ge=1)

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        calls = self.calls(trajectory)
        if not calls:
            return Skip("no_tool_calls", "no tool was called")
        short = sum(len(str(call.arguments)) <= self.longest for call in calls)
        return Score(short / len(calls), f"{short} of {len(calls)} calls are short")


class Answered(Evaluator):
    """Each call by itself."""

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score | Skip:
        if call.output is UNRECORDED:
            return Skip("output_unrecorded", f"output of {call.name} was not recorded")
        good = bool(call.output) and trajectory.whole
        return Score(float(good), label="Yes" if good else "No")


def few_calls(trajectory: Trajectory, *, most: int = 10) -> bool:
    """A function; its keyword parameters are its fields."""
    return len(trajectory.tool_calls) <= most


def share_named(trajectory: Trajectory) -> float:
    """A function without settings."""
    calls = trajectory.tool_calls
    return sum(call.agent is not None for call in calls) / len(calls) if calls else 1.0


NOT_AN_EVALUATOR = 3
