"""What asking judges took: reported to whoever runs the evaluator, to be told to metric sinks."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Result: TypeAlias = Literal["ok", "cached", "budget", "timeout", "refused", "invalid", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """One question to a judge, and what became of it."""

    model: str
    result: Result
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float | None = None
    """None where no model was asked."""


_CALLS: Final[ContextVar[list[JudgeCall] | None]] = ContextVar(
    "otel_eval_judge_calls", default=None
)


@contextmanager
def collecting(into: list[JudgeCall] | None = None) -> Iterator[list[JudgeCall]]:
    """The calls that this thread makes meanwhile."""
    calls: list[JudgeCall] = [] if into is None else into
    token = _CALLS.set(calls)
    try:
        yield calls
    finally:
        _CALLS.reset(token)


def report(call: JudgeCall) -> None:
    calls = _CALLS.get()
    if calls is not None:
        calls.append(call)
