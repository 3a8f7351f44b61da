"""tool-error-rate: how many tool calls went wrong."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from otel_eval.evaluators.base import Evaluator, listed, plural
from otel_eval.evaluators.capture import no_tool_calls
from otel_eval.evaluators.globs import Globs
from otel_eval.evaluators.patterns import compile_names
from otel_eval.evaluators.values import failed
from otel_eval.model import Score, Skip, Trajectory


class ToolErrorRate(Evaluator):
    """One minus the share of calls that failed, among the tools given or all of them.

    `max_rate` is the highest share of failed calls that passes: `pass_at` the other way round.
    """

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-error-rate"] = "tool-error-rate"
    tools: Globs = ("*",)
    max_rate: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_one_threshold(self) -> Self:
        if self.max_rate is not None and self.pass_at != 1 - self.max_rate:
            raise ValueError("max_rate sets pass_at: give one of the two")
        return self

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self.max_rate is not None and self.pass_at is None:
            object.__setattr__(self, "pass_at", 1 - self.max_rate)

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        calls = self.calls(trajectory)
        if "*" not in self.tools:
            calls = [call for call in calls if self._concerns(call.name)]
        if not calls:
            return no_tool_calls()
        errors = [call.name for call in calls if failed(call)]
        rate = len(errors) / len(calls)
        details = {
            "calls": len(calls),
            "errors": len(errors),
            "error_rate": rate,
            "errors_by_tool": dict(Counter(errors)) if errors else {},
        }
        return Score(1 - rate, _reason(len(calls), errors), details)

    @cached_property
    def _concerns(self) -> Callable[[str], bool]:
        return compile_names(self.tools)


def _reason(calls: int, errors: Sequence[str]) -> str:
    if not errors:
        return f"none of {plural(calls, 'call')} failed"
    most = Counter(errors).most_common()
    where = listed([f"{name} ({plural(count, 'time')})" for name, count in most])
    return f"{len(errors)} of {plural(calls, 'call')} failed: {where}"
