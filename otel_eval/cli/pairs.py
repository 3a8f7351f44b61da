"""Which expected call an evaluator held against which step, for those who explain its score."""

from collections.abc import Iterator, Mapping, Sequence

from otel_eval.evaluators.accuracy import ToolCallAccuracy
from otel_eval.evaluators.args import ToolCallArgs
from otel_eval.evaluators.matching import Pairs
from otel_eval.evaluators.output import OutputPlan, ToolCallOutput
from otel_eval.evaluators.pairing import ArgsPlan, Pairing, Wanted
from otel_eval.model import Json, ToolCall


def args_pairing(
    evaluator: ToolCallArgs | ToolCallAccuracy, calls: Sequence[ToolCall]
) -> tuple[ArgsPlan, Pairing]:
    if isinstance(evaluator, ToolCallAccuracy):
        wanted = [Wanted(each.tool, each.args) for each in evaluator.expected]
        plan = ArgsPlan(wanted, subset=False)
    else:
        wanted = [Wanted(each.name, each.args) for each in evaluator.tool_calls]
        plan = ArgsPlan(wanted, subset=evaluator.subset)
    return plan, plan.pair(calls)


def output_pairing(evaluator: ToolCallOutput, calls: Sequence[ToolCall]) -> Pairing:
    return OutputPlan(evaluator.tool_outputs).pair(calls)


def order_pairs(details: Mapping[str, Json], actual: Sequence[str]) -> tuple[list[str], Pairs]:
    """The expected names in a row, and which of them stand for which call."""
    steps = details["expected_tool_calls_order"]
    expected = [name for step in steps for name in ([step] if isinstance(step, str) else step)]
    common = details["lcs"]
    left, right = _positions(common, expected), _positions(common, actual)
    return expected, sorted(zip(left, right, strict=True), key=lambda pair: pair[1])


def _positions(common: Sequence[str], names: Sequence[str]) -> Iterator[int]:
    """Where the common names are: one after another or, in a list of any order, wherever."""
    taken: set[int] = set()
    last = -1
    for name in common:
        free = [at for at, each in enumerate(names) if each == name and at not in taken]
        last = next((at for at in free if at > last), free[0])
        taken.add(last)
        yield last
