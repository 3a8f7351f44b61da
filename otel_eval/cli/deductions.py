"""What a score lacks to 1, tied to the steps that cost it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from otel_eval.cli.pairs import args_pairing, order_pairs, output_pairing
from otel_eval.evaluators.args import differences
from otel_eval.evaluators.base import Evaluator
from otel_eval.evaluators.edit_script import told
from otel_eval.evaluators.matching import key
from otel_eval.evaluators.values import arguments, failed
from otel_eval.model import Evaluation, Score, ToolCall


class Finding(NamedTuple):
    """Something wrong; `call` is None for what was not done, or concerns no single step."""

    call: ToolCall | None
    words: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Deduction:
    """A finding with the part of the score that it cost."""

    call: ToolCall | None
    words: str
    cost: float


Finder: TypeAlias = Callable[[Any, Sequence[ToolCall], Score], Iterator[Finding]]


def deductions(evaluation: Evaluation, evaluator: Evaluator) -> list[Deduction]:
    """They add up to what the score lacks to 1."""
    score = evaluation.outcome
    if not isinstance(score, Score) or score.value >= 1:
        return []
    findings = _findings(evaluation, evaluator, score)
    total = sum(finding.weight for finding in findings)
    lacking = 1 - score.value
    return [Deduction(each.call, each.words, lacking * each.weight / total) for each in findings]


def _findings(evaluation: Evaluation, evaluator: Evaluator, score: Score) -> list[Finding]:
    finder = FINDERS.get(evaluator.type)
    found: list[Finding] = []
    if finder is not None and evaluation.call is None:
        calls = evaluator.calls(evaluation.trajectory)
        found = list(finder(evaluator, calls, score))
    return found or [Finding(evaluation.call, score.reason or "no reason given")]


def _count(evaluator: Any, calls: Sequence[ToolCall], _: Score) -> Iterator[Finding]:
    for tool, bound in evaluator.tool_calls_count.items():
        made = [call for call in calls if call.name == tool]
        if bound.holds(len(made)):
            continue
        words = f"{tool} was called {_times(len(made))}, expected {bound}"
        allowed = _most_allowed(bound.operator, bound.times)
        over = made[allowed:] if allowed is not None else []
        if over:
            yield from (Finding(call, words, 1 / len(over)) for call in over)
        else:
            yield Finding(None, words)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _most_allowed(operator: str, times: int) -> int | None:
    match operator:
        case "=" | "==" | "<=":
            return times
        case "<" | "!=":
            return max(times - 1, 0)
    return None


def _order(evaluator: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Finding]:
    names, pairs = order_pairs(score.details, [call.name for call in calls])
    partners = dict(pairs)
    free = [j for j in range(len(calls)) if j not in set(partners.values())]
    for i, name in enumerate(names):
        if i in partners:
            continue
        misplaced = next((j for j in free if calls[j].name == name), None)
        if misplaced is None:
            yield Finding(None, f"{name} was not called (expected call {i + 1})")
        else:
            free.remove(misplaced)
            yield Finding(calls[misplaced], f"{name} is out of place (expected call {i + 1})")
    if evaluator.strict:
        yield from (Finding(calls[j], f"{calls[j].name} was not expected here") for j in free)


def _args(evaluator: Any, calls: Sequence[ToolCall], _: Score) -> Iterator[Finding]:
    plan, pairing = args_pairing(evaluator, calls)
    for i in pairing.lost:
        wanted, made = plan.wanted[i], pairing.nearest.get(i)
        if made is None:
            yield Finding(None, f"{wanted.tool} was not called (expected call {i + 1})")
            continue
        found = differences(wanted, arguments(calls[made]), subset=evaluator.subset)
        yield Finding(calls[made], f"{wanted.tool} {', '.join(found)} (expected call {i + 1})")


def _output(evaluator: Any, calls: Sequence[ToolCall], _: Score) -> Iterator[Finding]:
    pairing = output_pairing(evaluator, calls)
    for i in pairing.lost:
        tool, made = evaluator.tool_outputs[i].name, pairing.nearest.get(i)
        if made is None:
            yield Finding(None, f"{tool} was not called (expected output {i + 1})")
        else:
            yield Finding(calls[made], f"{tool} gave another output than expected output {i + 1}")


def _accuracy(evaluator: Any, calls: Sequence[ToolCall], _: Score) -> Iterator[Finding]:
    """A wrong call counts twice: it was not expected, and what was expected is missing."""
    plan, pairing = args_pairing(evaluator, calls)
    for i in pairing.lost:
        wanted, made = plan.wanted[i], pairing.nearest.get(i)
        if made is None:
            yield Finding(None, f"{wanted.tool} was not called (expected call {i + 1})")
            continue
        found = differences(wanted, arguments(calls[made]), subset=False)
        yield Finding(calls[made], f"{wanted.tool} {', '.join(found)} (expected call {i + 1})", 2.0)
    used = {*pairing.pairs.values(), *pairing.nearest.values()}
    for j, call in enumerate(calls):
        if j not in used:
            yield Finding(call, f"{call.name} was not expected")


def _trajectory(evaluator: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Finding]:
    change_weight = 2.0 if evaluator.mode in ("exact", "unordered") else 1.0
    for edit in score.details["edit_script"]:
        if edit["op"] == "keep":
            continue
        call = calls[edit["actual"] - 1] if edit["actual"] else None
        yield Finding(
            call, f"to match: {told(edit)}", change_weight if edit["op"] == "change" else 1.0
        )


def _allowlist(_: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Finding]:
    for call in calls:
        if call.name in score.details["not_allowed"]:
            yield Finding(call, f"{call.name} is not allowed")
    for glob in score.details["missing_required"]:
        yield Finding(None, f"{glob} is required but was not called")


def _errors(_: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Finding]:
    for call in calls:
        if failed(call) and call.name in score.details["errors_by_tool"]:
            yield Finding(call, f"{call.name} failed")


def _loop(evaluator: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Finding]:
    for tool, count in score.details["calls_beyond_limit"].items():
        made = [call for call in calls if call.name == tool]
        repeats = _repeats(made, evaluator.max_repeats)
        # Where results were not recorded, which calls were too many is known by number only.
        for call in repeats if len(repeats) == count else made[-count:]:
            yield Finding(call, f"{tool} again with the same arguments and the same result")


def _repeats(calls: Sequence[ToolCall], allowed: int) -> list[ToolCall]:
    seen: Counter[Any] = Counter()
    found = []
    for call in calls:
        same = (key(arguments(call)), failed(call), key(call.output))
        seen[same] += 1
        if seen[same] > allowed:
            found.append(call)
    return found


def _budget(_: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Finding]:
    for what, amounts in score.details.items():
        if amounts["used"] <= amounts["limit"]:
            continue
        noun = what.replace("_", " ")
        words = f"{amounts['used']:g} {noun}, at most {amounts['limit']:g}"
        over = calls[int(amounts["limit"]) :] if what == "tool_calls" else []
        if over:
            yield from (Finding(call, words, 1 / len(over)) for call in over)
        else:
            yield Finding(None, words)


def _schema(_: Any, calls: Sequence[ToolCall], score: Score) -> Iterator[Finding]:
    for entry in score.details["invalid"]:
        problems = "; ".join(each["message"] for each in entry["problems"])
        yield Finding(calls[entry["position"] - 1], f"{entry['tool']}: {problems}")


FINDERS: Final[Mapping[str, Finder]] = {
    "tool-call-count": _count,
    "tool-call-order": _order,
    "tool-call-args": _args,
    "tool-call-output": _output,
    "tool-call-accuracy": _accuracy,
    "trajectory-match": _trajectory,
    "tool-allowlist": _allowlist,
    "tool-error-rate": _errors,
    "tool-loop": _loop,
    "tool-budget": _budget,
    "tool-args-schema": _schema,
}
"""For the others, judges and plug-ins, the reason is all there is to tell."""
