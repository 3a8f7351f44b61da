"""tool-budget: how much an agent may use."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from otel_eval.evaluators.base import Evaluator, listed, plural
from otel_eval.evaluators.capture import incomplete
from otel_eval.model import ModelCall, Score, Skip, ToolCall, Trajectory

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def _seconds(given: object) -> object:
    """`30s`, `1m30s`, `500ms`; a number is seconds."""
    if not isinstance(given, str):
        return given
    parts = _DURATION.findall(given)
    if not parts or "".join(number + unit for number, unit in parts) != given.strip():
        raise ValueError("not a duration; write it like 500ms, 30s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


Seconds: TypeAlias = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False),
    BeforeValidator(_seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]
Count: TypeAlias = Annotated[int, Field(ge=0, strict=True)]


@dataclass(frozen=True, slots=True)
class Budget:
    """One limit and what was used of it. `certain` is false where more may have been used."""

    noun: str
    limit: float
    used: float
    certain: bool = True

    @property
    def kept(self) -> bool:
        return self.used <= self.limit

    def __str__(self) -> str:
        noun = self.noun if self.used == 1 else f"{self.noun}s"
        return f"{_shown(self.used)} {noun} of {_shown(self.limit)}"


class ToolBudget(Evaluator):
    """Share of the budgets kept.

    What an incomplete trace or unrecorded tokens leave open is known only once it is broken.
    """

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-budget"] = "tool-budget"
    max_calls: Count | None = None
    max_duration: Seconds | None = None
    max_tokens: Count | None = None
    max_model_calls: Count | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        limits = (self.max_calls, self.max_duration, self.max_tokens, self.max_model_calls)
        if all(limit is None for limit in limits):
            raise ValueError(
                "give at least one of max_calls, max_duration, max_tokens, max_model_calls"
            )
        return self

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        budgets = self._budgets(trajectory)
        broken = [budget for budget in budgets if not budget.kept]
        if not broken and not trajectory.whole:
            return incomplete(trajectory)
        if not broken and not all(budget.certain for budget in budgets):
            return _tokens_unrecorded(trajectory)
        value = 1 - len(broken) / len(budgets)
        details = {
            f"{each.noun}s".replace(" ", "_"): {"used": each.used, "limit": each.limit}
            for each in budgets
        }
        return Score(value, _reason(budgets, broken), details)

    def _budgets(self, trajectory: Trajectory) -> list[Budget]:
        budgets = []
        if self.max_calls is not None:
            budgets.append(Budget("tool call", self.max_calls, len(self.calls(trajectory))))
        if self.max_duration is not None:
            budgets.append(Budget("second", self.max_duration, _duration(trajectory)))
        if self.max_tokens is not None:
            known = [_tokens(call) for call in trajectory.model_calls]
            used = sum(tokens or 0 for tokens in known)
            # Who called tools asked a model for them, whether that has a span or not.
            certain = None not in known and bool(known or not trajectory.tool_calls)
            budgets.append(Budget("token", self.max_tokens, used, certain))
        if self.max_model_calls is not None:
            budgets.append(Budget("model call", self.max_model_calls, len(trajectory.model_calls)))
        return budgets


def _duration(trajectory: Trajectory) -> float:
    """From the first start to the last end, in seconds."""
    parts: list[Trajectory | ToolCall | ModelCall] = [trajectory]
    parts += trajectory.tool_calls
    parts += trajectory.model_calls
    timed = [part for part in parts if part.end_ns]
    if not timed:
        return 0.0
    return (max(part.end_ns for part in timed) - min(part.start_ns for part in timed)) / 1e9


def _tokens(call: ModelCall) -> int | None:
    if call.input_tokens is None and call.output_tokens is None:
        return None
    return (call.input_tokens or 0) + (call.output_tokens or 0)


def _tokens_unrecorded(trajectory: Trajectory) -> Skip:
    missing = sum(_tokens(call) is None for call in trajectory.model_calls)
    calls = plural(len(trajectory.model_calls), "model call")
    found = f"{missing} of {calls} without token usage" if missing else "no model call was recorded"
    return Skip(
        "output_unrecorded",
        f"{found}: record token usage on model spans "
        "(gen_ai.usage.input_tokens, gen_ai.usage.output_tokens)",
    )


def _reason(budgets: Sequence[Budget], broken: Sequence[Budget]) -> str:
    told = listed([str(each) for each in broken or budgets])
    return f"over budget: {told}" if broken else f"within budget: {told}"


def _shown(amount: float) -> str:
    return f"{amount:.3f}".rstrip("0").rstrip(".")
