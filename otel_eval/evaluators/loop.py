"""tool-loop: an agent that goes round in circles."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from itertools import groupby
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from otel_eval.evaluators.base import Evaluator, listed, plural
from otel_eval.evaluators.capture import no_tool_calls, unrecorded
from otel_eval.evaluators.globs import Globs
from otel_eval.evaluators.matching import key
from otel_eval.evaluators.patterns import compile_names
from otel_eval.evaluators.values import arguments, failed
from otel_eval.model import UNRECORDED, Score, Skip, ToolCall, Trajectory

Made: TypeAlias = tuple[str, Hashable]
"""A tool and a stand-in for the arguments it was called with."""


class ToolLoop(Evaluator):
    """Falls with every call beyond `max_repeats` of the same tool, arguments and result.

    The calls need not follow each other: circles of two or three tools are loops as well. A result
    that changes is progress. Where results were not recorded, calls that fail each time count as
    the same, and others only from twice `max_repeats` in a row.
    """

    reads_conversation: ClassVar[bool] = False
    type: Literal["tool-loop"] = "tool-loop"
    max_repeats: int = Field(default=3, ge=1, strict=True)
    ignore: Globs | None = None

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        calls = [call for call in self.calls(trajectory) if not self._ignored(call.name)]
        if not calls:
            return no_tool_calls()
        loops = self._loops(calls, [_made(call) for call in calls])
        hidden = Counter(call.name for call in calls if call.arguments is UNRECORDED)
        # Arguments that nobody recorded may be the same each time, or never.
        if hidden and loops != self._loops(calls, _made_apart(calls)):
            return unrecorded(trajectory, "arguments", hidden.most_common(1)[0][0])
        return self._score(calls, loops)

    def _loops(self, calls: Sequence[ToolCall], made: Sequence[Made]) -> Counter[str]:
        """How many calls of each tool were one too many."""
        alike = Counter(
            (*each, _result(call))
            for each, call in zip(made, calls, strict=True)
            if not _result_unknown(call)
        )
        times = [(name, count) for (name, _, _), count in alike.items()]
        runs = _runs(made, map(_result_unknown, calls))
        times += [(name, count) for (name, _), count in runs if count >= 2 * self.max_repeats]
        loops: Counter[str] = Counter()
        for name, count in times:
            if count > self.max_repeats:
                loops[name] += count - self.max_repeats
        return loops

    def _score(self, calls: Sequence[ToolCall], loops: Counter[str]) -> Score:
        details = {"calls": len(calls), "calls_beyond_limit": dict(loops)}
        if not loops:
            times = plural(self.max_repeats, "time")
            return Score(1.0, f"no call came more than {times} with the same result", details)
        where = listed([f"{name} {plural(count, 'time')}" for name, count in loops.most_common()])
        hidden = any(call.name in loops and _result_unknown(call) for call in calls)
        alike = (
            "same arguments, results not recorded," if hidden else "same arguments and same result"
        )
        reason = f"{alike} beyond {self.max_repeats} allowed: {where}"
        return Score(1 - loops.total() / len(calls), reason, details)

    @cached_property
    def _ignored(self) -> Callable[[str], bool]:
        return compile_names(self.ignore or ())


def _made(call: ToolCall) -> Made:
    return call.name, key(arguments(call))


def _made_apart(calls: Sequence[ToolCall]) -> list[Made]:
    return [
        (call.name, ("unrecorded", i)) if call.arguments is UNRECORDED else _made(call)
        for i, call in enumerate(calls)
    ]


def _result_unknown(call: ToolCall) -> bool:
    return call.output is UNRECORDED and call.error is None


def _result(call: ToolCall) -> Hashable:
    """Errors without an output are alike, whatever their text: it often holds ids and times."""
    return (failed(call), key(call.output))


def _runs(made: Sequence[Made], unknown: Iterable[bool]) -> Iterable[tuple[Made, int]]:
    for (each, is_unknown), run in groupby(zip(made, unknown, strict=True)):
        if is_unknown:
            yield each, sum(1 for _ in run)
