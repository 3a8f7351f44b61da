"""tool-call-output: the tools gave the expected outputs."""

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from otel_eval.evaluators.base import Evaluator, Settings
from otel_eval.evaluators.capture import incomplete, unrecorded
from otel_eval.evaluators.matchers import Pattern, compile_pattern, literal
from otel_eval.evaluators.matching import key
from otel_eval.evaluators.pairing import Pairing, Plan, Relation
from otel_eval.evaluators.values import output_forms, read_text
from otel_eval.model import UNRECORDED, Json, Score, Skip, ToolCall, Trajectory


class ExpectedOutput(Settings):
    """What a tool should give: text, a value, or a value with matchers inside."""

    name: str = Field(min_length=1)
    output: Any

    @model_validator(mode="after")
    def _matchers_are_usable(self) -> Self:
        if compile_pattern(self.output, ".output").absent:
            raise ValueError("$absent stands for a key of an object, not for an output")
        return self

    @property
    def pattern(self) -> Pattern:
        """Text stands for a value; what looks like a matcher in it is part of that value."""
        if isinstance(self.output, str):
            return literal(read_text(self.output))
        return compile_pattern(self.output)


class ToolCallOutput(Evaluator):
    """The share of expected outputs that were given. Further calls do not matter."""

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-call-output"] = "tool-call-output"
    tool_outputs: tuple[ExpectedOutput, ...] = Field(min_length=1)
    strict: bool = False

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        if not trajectory.whole:
            return incomplete(trajectory)
        calls = self.calls(trajectory)
        pairing = self._plan.pair(calls)
        if tool := pairing.undecided_tool(strict=self.strict):
            return unrecorded(trajectory, "output", tool)
        return Score(
            pairing.score(strict=self.strict),
            pairing.reason("output", lambda lost: self._told(lost, calls, pairing)),
            {
                "explained_tool_calls_outputs": pairing.explained(
                    self._plan.labels,
                    [each.output for each in self.tool_outputs],
                    [call.output for call in calls],
                )
            },
        )

    @cached_property
    def _plan(self) -> "OutputPlan":
        return OutputPlan(self.tool_outputs)

    def _told(self, position: int, calls: Sequence[ToolCall], pairing: Pairing) -> str:
        tool = self.tool_outputs[position].name
        made = pairing.nearest.get(position)
        if made is None:
            return f"{tool} was not called for expected output {position + 1}"
        return f"{tool} (call {made + 1}) {_difference(calls[made])}"


def _difference(call: ToolCall) -> str:
    if call.output is not UNRECORDED:
        return "gave another output"
    return "has an output that was not recorded" if call.error is None else "failed"


class OutputPlan(Plan):
    """Expected outputs, paired by value.

    Two calls may equal in one form and differ in another, so which of them an expectation takes
    can matter to others.
    """

    equals_stay = False

    def __init__(self, expected: Sequence[ExpectedOutput]) -> None:
        self._patterns = [each.pattern for each in expected]
        super().__init__([each.name for each in expected], [each.key for each in self._patterns])

    def key_of(self, call: ToolCall) -> Hashable:
        return key(output_forms(call.output)[-1])

    def relate(self, expected: Sequence[int], calls: Sequence[ToolCall]) -> Relation:
        index = OutputIndex(calls)
        return Relation([index.accepted(self._patterns[i]) for i in expected], index.unrecorded)


class OutputIndex:
    """The outputs of a tool's calls. One output counts in each of its forms."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._given = 0
        self.unrecorded = 0
        self._values: dict[Hashable, tuple[Json, int]] = {}
        self._tested: dict[Hashable, int] = {}
        for j, call in enumerate(calls):
            self._add(call, 1 << j)

    def _add(self, call: ToolCall, bit: int) -> None:
        if call.output is UNRECORDED and call.error is not None:
            return  # it failed and gave no output, so there was nothing to record
        self._given |= bit
        if call.output is UNRECORDED:
            self.unrecorded |= bit
            return
        for form in output_forms(call.output):
            own = key(form)
            known = self._values.get(own)
            self._values[own] = (form, bit if known is None else known[1] | bit)

    def accepted(self, pattern: Pattern) -> int:
        if pattern.anything:
            return self._given
        if pattern.plain:
            return self._values[pattern.key][1] if pattern.key in self._values else 0
        if pattern.key not in self._tested:
            self._tested[pattern.key] = self._test(pattern)
        return self._tested[pattern.key]

    def _test(self, pattern: Pattern) -> int:
        mask = 0
        for value, bits in self._values.values():
            if pattern.accepts(value):
                mask |= bits
        return mask
