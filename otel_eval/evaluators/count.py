"""tool-call-count: each named tool was called as often as expected."""

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, field_validator

from otel_eval.evaluators.base import Evaluator, listed, plural
from otel_eval.evaluators.capture import incomplete
from otel_eval.evaluators.sequences import Sequences
from otel_eval.model import Score, Skip, Trajectory

_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_TEXT: Final = re.compile(r"\s*([^\s\w+-]+)\s*([+-]?\d+)\s*")
_FORM: Final = f'write [operator, count] such as [">=", 2]; operators: {" ".join(_COMPARE)}'


class Bound(NamedTuple):
    """How often: an operator and a count."""

    operator: str
    times: int

    def holds(self, actual: int) -> bool:
        return _COMPARE[self.operator](actual, self.times)

    def broken_for_good(self, actual: int) -> bool:
        """Whether more calls could not mend it: an upper bound that is passed already."""
        return self.operator in ("<", "<=") and not self.holds(actual)

    def __str__(self) -> str:
        return f"{self.operator} {self.times}"


def read_bound(given: Any) -> Bound:
    """`[">=", 2]` or `">= 2"`."""
    if isinstance(given, str):
        text = _TEXT.fullmatch(given)
        given = text.groups() if text else given
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(f"malformed bound ({_FORM})")
    sign, count = given
    if not isinstance(sign, str) or sign not in _COMPARE:
        raise ValueError(f"unknown operator {sign!r} ({_FORM})")
    return Bound(sign, _read_count(count))


def _read_count(given: Any) -> int:
    try:
        count = int(given)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"count {given!r} is not a whole number ({_FORM})") from None
    if isinstance(given, bool) or (isinstance(given, float) and count != given):
        raise ValueError(f"count {given!r} is not a whole number ({_FORM})")
    if count < 0:
        raise ValueError(f"count {count} is negative; a tool that is never called counts 0")
    return count


_BOUND_SCHEMA: Final = {
    "anyOf": [
        {
            "type": "array",
            "prefixItems": [{"enum": list(_COMPARE)}, {"type": "integer", "minimum": 0}],
            "minItems": 2,
            "maxItems": 2,
        },
        {"type": "string", "pattern": r"^\s*(==?|!=|>=?|<=?)\s*[0-9]+\s*$"},
    ]
}
Count = Annotated[
    Bound, PlainValidator(read_bound), PlainSerializer(list), WithJsonSchema(_BOUND_SCHEMA)
]


class ToolCallCount(Evaluator):
    """Each named tool was called as often as expected. Tools that are not named do not matter."""

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-call-count"] = "tool-call-count"
    tool_calls_count: dict[str, Count] = Field(
        min_length=1, json_schema_extra={"propertyNames": {"minLength": 1}}
    )
    strict: bool = False

    @field_validator("tool_calls_count")
    @classmethod
    def _tools_have_names(cls, bounds: dict[str, Bound]) -> dict[str, Bound]:
        if "" in bounds:
            raise ValueError("a tool's name is empty; write the name that the calls have")
        return bounds

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        names = [call.name for call in self.calls(trajectory)]
        if not trajectory.whole and not self._settled(Counter(names)):
            return incomplete(trajectory)
        return self._sequences.score(names)

    @cached_property
    def _sequences(self) -> Sequences:
        return Sequences(self._score)

    def _score(self, names: Sequence[str]) -> Score:
        actual = Counter(names)
        bounds = self.tool_calls_count
        held = {tool: bound.holds(actual[tool]) for tool, bound in bounds.items()}
        wrong = [tool for tool, holds in held.items() if not holds]
        return Score(
            self._value(len(wrong)),
            self._reason(actual, wrong),
            {"explained_tool_calls_count": self._explained(actual, held)},
        )

    def _settled(self, actual: Mapping[str, int]) -> bool:
        broken = [
            bound.broken_for_good(actual[tool]) for tool, bound in self.tool_calls_count.items()
        ]
        return any(broken) if self.strict else all(broken)

    def _value(self, wrong: int) -> float:
        if self.strict:
            return 0.0 if wrong else 1.0
        total = len(self.tool_calls_count)
        return (total - wrong) / total

    def _reason(self, actual: Mapping[str, int], wrong: Sequence[str]) -> str:
        if not wrong:
            total = len(self.tool_calls_count)
            return f"{total} of {plural(total, 'count')} as expected"
        told = [
            f"{tool} called {plural(actual[tool], 'time')}, expected {self.tool_calls_count[tool]}"
            for tool in wrong
        ]
        return listed(told, separator="; ")

    def _explained(self, actual: Mapping[str, int], held: Mapping[str, bool]) -> Mapping[str, str]:
        return {
            tool: f"Actual: {actual[tool]}, Expected: {bound.times}, "
            f"Score: {'1.0' if held[tool] else '0.0'}"
            for tool, bound in self.tool_calls_count.items()
        }
