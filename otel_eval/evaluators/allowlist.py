"""tool-allowlist: which tools may, must not and must be called."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from otel_eval.evaluators.base import Evaluator, listed, plural
from otel_eval.evaluators.capture import incomplete
from otel_eval.evaluators.globs import Globs
from otel_eval.evaluators.patterns import compile_name, compile_names
from otel_eval.model import Score, Skip, ToolCall, Trajectory


class ToolAllowlist(Evaluator):
    """Share of the calls that are allowed; a missing required tool weighs like a call that is not.

    What is both allowed and forbidden is forbidden.
    """

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-allowlist"] = "tool-allowlist"
    allowed: Globs | None = None
    forbidden: Globs | None = None
    required: Globs | None = None

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        if self.allowed is None and self.forbidden is None and self.required is None:
            raise ValueError("give at least one of allowed, forbidden, required")
        return self

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        calls = self.calls(trajectory)
        bad = self._not_allowed(calls)
        missing = self._missing(calls)
        if missing and not trajectory.whole:
            if not bad:
                return incomplete(trajectory)
            missing = []  # it may have been called; what was not allowed did happen
        total = len(calls) + len(missing)
        value = (len(calls) - len(bad)) / total if total else 1.0
        details = {
            "calls": len(calls),
            "not_allowed": dict(Counter(call.name for _, call in bad)),
            "missing_required": missing,
        }
        return Score(value, _reason(calls, bad, missing), details)

    def _not_allowed(self, calls: Sequence[ToolCall]) -> list[tuple[int, ToolCall]]:
        verdicts = {name: self._allows(name) for name in {call.name for call in calls}}
        return [(i, call) for i, call in enumerate(calls, start=1) if not verdicts[call.name]]

    def _missing(self, calls: Sequence[ToolCall]) -> list[str]:
        called = {call.name for call in calls}
        return [glob for glob in self.required or () if not any(map(compile_name(glob), called))]

    @cached_property
    def _allows(self) -> Callable[[str], bool]:
        allowed = compile_names(self.allowed if self.allowed is not None else ["*"])
        forbidden = compile_names(self.forbidden or ())
        return lambda name: allowed(name) and not forbidden(name)


def _reason(
    calls: Sequence[ToolCall], bad: Sequence[tuple[int, ToolCall]], missing: Sequence[str]
) -> str:
    parts = []
    if bad:
        where = listed([f"{call.name} (call {position})" for position, call in bad])
        parts.append(f"{len(bad)} of {plural(len(calls), 'call')} not allowed: {where}")
    if missing:
        parts.append(f"required but not called: {listed(missing)}")
    if parts:
        return "; ".join(parts)
    return f"{plural(len(calls), 'call')}, none of them outside the list"
