"""Expected and actual side by side, for evaluators that have an expectation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from otel_eval.cli.pairs import args_pairing, order_pairs, output_pairing
from otel_eval.cli.steps import arguments, text
from otel_eval.evaluators.base import Evaluator
from otel_eval.evaluators.edit_script import edit_script
from otel_eval.evaluators.pairing import Pairing
from otel_eval.model import UNRECORDED, Evaluation, Json, Score, ToolCall

NOTHING: Final = "–"


class Line(NamedTuple):
    fits: bool
    expected: str
    actual: str
    is_free: bool = False
    """More than was expected, and no harm in it."""

    @property
    def sign(self) -> str:
        return "+" if self.is_free else "=" if self.fits else "≠"


Compare: TypeAlias = Callable[[Any, Sequence[ToolCall], Score], Iterator[Line]]


def comparison(evaluation: Evaluation, evaluator: Evaluator) -> list[Line]:
    """Empty where there is no expectation, or no score."""
    compare = COMPARE.get(evaluator.type)
    if compare is None or not isinstance(evaluation.outcome, Score):
        return []
    calls = evaluator.calls(evaluation.trajectory)
    return list(compare(evaluator, calls, evaluation.outcome))


def _count(evaluator: Any, calls: Sequence[ToolCall], _: Score) -> Iterator[Line]:
    for tool, bound in evaluator.tool_calls_count.items():
        made = sum(call.name == tool for call in calls)
        yield Line(bound.holds(made), f"{tool} {bound}", f"{tool} {made}")


def _order(evaluator: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Line]:
    made = [call.name for call in calls]
    expected, pairs = order_pairs(score.details, made)
    for edit in edit_script(expected, made, kept=pairs, changed={}):
        fits = edit["op"] == "keep"
        wanted = edit["tool"] if edit["expected"] else NOTHING
        actual = edit["tool"] if edit["actual"] else NOTHING
        yield Line(fits, wanted, actual, is_free=wanted is NOTHING and not evaluator.strict)


def _args(evaluator: Any, calls: Sequence[ToolCall], _: Score) -> Iterator[Line]:
    plan, pairing = args_pairing(evaluator, calls)
    wanted = [f"{each.tool}({arguments(dict(each.args))})" for each in plan.wanted]
    yield from _paired(wanted, [_shown(call) for call in calls], pairing)


def _accuracy(evaluator: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Line]:
    yield from _args(evaluator, calls, score)
    _, pairing = args_pairing(evaluator, calls)
    used = {*pairing.pairs.values(), *pairing.nearest.values()}
    yield from (Line(False, NOTHING, _shown(call)) for j, call in enumerate(calls) if j not in used)


def _output(evaluator: Any, calls: Sequence[ToolCall], _: Score) -> Iterator[Line]:
    wanted = [f"{each.name} → {_value(each.output)}" for each in evaluator.tool_outputs]
    made = [f"{call.name} → {_result(call)}" for call in calls]
    yield from _paired(wanted, made, output_pairing(evaluator, calls))


def _paired(wanted: Sequence[str], made: Sequence[str], pairing: Pairing) -> Iterator[Line]:
    for i, expected in enumerate(wanted):
        j = pairing.pairs.get(i, pairing.nearest.get(i))
        yield Line(i in pairing.pairs, expected, NOTHING if j is None else made[j])


def _trajectory(evaluator: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Line]:
    for edit in score.details["edit_script"]:
        wanted = actual = NOTHING
        if edit["expected"]:
            each = evaluator.expected[edit["expected"] - 1]
            wanted = each.name if each.args is None else f"{each.name}({arguments(each.args)})"
        if edit["actual"]:
            actual = _shown(calls[edit["actual"] - 1])
        yield Line(edit["op"] == "keep", wanted, actual)


def _budget(_: Any, __: Sequence[ToolCall], score: Score) -> Iterator[Line]:
    for what, amounts in score.details.items():
        noun, used, limit = what.replace("_", " "), amounts["used"], amounts["limit"]
        yield Line(used <= limit, f"{noun} <= {limit:g}", f"{noun} {used:g}")


def _shown(call: ToolCall) -> str:
    return f"{call.name}({arguments(call.arguments)})"


def _value(value: Json) -> str:
    return value if isinstance(value, str) else text(value)


def _result(call: ToolCall) -> str:
    if call.error is not None:
        return f"error: {call.error}"
    return "not recorded" if call.output is UNRECORDED else _value(call.output)


COMPARE: Final[Mapping[str, Compare]] = {
    "tool-call-count": _count,
    "tool-call-order": _order,
    "tool-call-args": _args,
    "tool-call-output": _output,
    "tool-call-accuracy": _accuracy,
    "trajectory-match": _trajectory,
    "tool-budget": _budget,
}
