"""tool-call-order: tools were called in the expected sequence."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from otel_eval.evaluators.base import Evaluator, listed, plural
from otel_eval.evaluators.capture import incomplete
from otel_eval.evaluators.matching import LOST, Letters, found_in_groups, kept
from otel_eval.evaluators.sequences import Sequences
from otel_eval.model import Score, Skip, Trajectory

Step: TypeAlias = str | tuple[str, ...]


def read_step(given: Any) -> Step:
    """A tool, or a list of tools that come in any order."""
    if isinstance(given, str) and given:
        return given
    if not isinstance(given, list | tuple) or not given:
        raise ValueError("takes a tool's name, or a list of names that come in any order")
    if not all(isinstance(name, str) and name for name in given):
        raise ValueError("a list of tools in any order holds names only")
    return tuple(given)


def show_step(step: Step) -> str | list[str]:
    return step if isinstance(step, str) else list(step)


_NAME: Final = {"type": "string", "minLength": 1}
_STEP_SCHEMA: Final = {"anyOf": [_NAME, {"type": "array", "items": _NAME, "minItems": 1}]}
OrderStep = Annotated[
    Step, PlainValidator(read_step), PlainSerializer(show_step), WithJsonSchema(_STEP_SCHEMA)
]


class ToolCallOrder(Evaluator):
    """The longest common subsequence of expected and actual calls, as a share of the expected."""

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-call-order"] = "tool-call-order"
    tool_calls_order: tuple[OrderStep, ...] = Field(min_length=1)
    strict: bool = False

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        if not trajectory.whole:
            return incomplete(trajectory)
        return self._sequences.score([call.name for call in self.calls(trajectory)])

    def _score(self, names: Sequence[str]) -> Score:
        actual = list(names)
        found, lost = self._compare(actual)
        value = len(found) / len(self._names)
        if self.strict:
            value = float(not lost and len(actual) == len(found))
        return Score(
            value,
            self._reason(len(actual), lost),
            {
                "actual_tool_calls_order": actual,
                "expected_tool_calls_order": self._shown,
                "lcs": found,
            },
        )

    def _compare(self, actual: list[str]) -> tuple[list[str], list[int]]:
        """The common subsequence, and the positions of the expected names outside it."""
        if actual == self._names:
            return actual, []
        if self._has_groups:
            return self._compare_groups(actual)
        line = kept(self._expected, self._letters.spell(actual))
        lost = [position for position, letter in enumerate(line) if letter == LOST]
        return list(map(self._names_by_letter.__getitem__, line.replace(LOST, ""))), lost

    def _compare_groups(self, actual: list[str]) -> tuple[list[str], list[int]]:
        groups = found_in_groups(self._steps, actual)
        lost: list[int] = []
        position = 0
        for step, found in zip(self._steps, groups, strict=True):
            left = Counter(found)
            for name in step:
                if left[name]:
                    left[name] -= 1
                else:
                    lost.append(position)
                position += 1
        return [name for found in groups for name in found], lost

    def _reason(self, called: int, lost: Sequence[int]) -> str:
        total = len(self._names)
        if lost:
            places = [f"{self._names[position]} (position {position + 1})" for position in lost[:5]]
            return (
                f"{total - len(lost)} of {plural(total, 'expected call')} in order, "
                f"missing or out of place: {listed(places, total=len(lost))}"
            )
        if self.strict and called > total:
            return f"{plural(called - total, 'call')} more than the expected {total}"
        return f"{total} of {plural(total, 'expected call')} in order"

    @cached_property
    def _sequences(self) -> Sequences:
        return Sequences(self._score)

    @cached_property
    def _steps(self) -> list[tuple[str, ...]]:
        return [(step,) if isinstance(step, str) else step for step in self.tool_calls_order]

    @cached_property
    def _has_groups(self) -> bool:
        return any(len(step) > 1 for step in self._steps)

    @cached_property
    def _names(self) -> list[str]:
        return [name for step in self._steps for name in step]

    @cached_property
    def _shown(self) -> list[str | list[str]]:
        return [show_step(step) for step in self.tool_calls_order]

    @cached_property
    def _letters(self) -> Letters:
        return Letters(self._names)

    @cached_property
    def _names_by_letter(self) -> dict[str, str]:
        return {letter: name for name, letter in self._letters.items()}

    @cached_property
    def _expected(self) -> str:
        return self._letters.spell(self._names)
