"""tool-call-args: the expected calls were made, with the expected arguments."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from otel_eval.evaluators.base import Evaluator, Settings, listed
from otel_eval.evaluators.capture import incomplete, unrecorded
from otel_eval.evaluators.matchers import compile_args
from otel_eval.evaluators.pairing import ArgsPlan, Pairing, Wanted
from otel_eval.evaluators.values import arguments
from otel_eval.model import UNRECORDED, Recorded, Score, Skip, ToolCall, Trajectory


class ExpectedArgs(Settings):
    """A call that should be made; its arguments may hold matchers."""

    name: str = Field(min_length=1)
    args: dict[str, Any]

    @model_validator(mode="after")
    def _matchers_are_usable(self) -> Self:
        compile_args(self.args, ".args", remedy="args: {} with subset takes any arguments")
        return self


class ToolCallArgs(Evaluator):
    """The share of expected calls that were made. Further calls do not matter."""

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-call-args"] = "tool-call-args"
    tool_calls: tuple[ExpectedArgs, ...] = Field(min_length=1)
    subset: bool = True
    """Whether calls may have more arguments; what one argument holds is always compared whole."""
    strict: bool = False

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        if not trajectory.whole:
            return incomplete(trajectory)
        calls = self.calls(trajectory)
        pairing = self._plan.pair(calls)
        if tool := pairing.undecided_tool(strict=self.strict):
            return unrecorded(trajectory, "arguments", tool)
        return Score(
            pairing.score(strict=self.strict),
            pairing.reason("call", lambda lost: self._told(lost, calls, pairing)),
            {
                "explained_tool_calls_args": pairing.explained(
                    self._plan.labels,
                    [each.args for each in self.tool_calls],
                    [call.arguments for call in calls],
                )
            },
        )

    @cached_property
    def _plan(self) -> ArgsPlan:
        wanted = [Wanted(each.name, each.args) for each in self.tool_calls]
        return ArgsPlan(wanted, subset=self.subset)

    def _told(self, position: int, calls: Sequence[ToolCall], pairing: Pairing) -> str:
        wanted = self._plan.wanted[position]
        made = pairing.nearest.get(position)
        if made is None:
            return f"{wanted.tool} was not called for expected call {position + 1}"
        found = list(differences(wanted, arguments(calls[made]), subset=self.subset))
        return f"{wanted.tool} (call {made + 1}) {listed(found)}"


def differences(wanted: Wanted, actual: Recorded, *, subset: bool) -> Iterator[str]:
    """In what the arguments of a call differ from those expected, by key."""
    if actual is UNRECORDED:
        yield "has arguments that were not recorded"
        return
    if not isinstance(actual, dict):
        yield "has no arguments by name"
        return
    for name, pattern in wanted.fields.items():
        if name not in actual:
            if not pattern.absent:
                yield f"lacks {name}"
        elif pattern.absent:
            yield f"has {name}"
        elif not pattern.accepts(actual[name]):
            yield f"differs in {name}"
    if not subset:
        yield from (f"has {name}" for name in actual if name not in wanted.fields)
