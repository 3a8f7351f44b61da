"""A rule's evaluators at work on one trajectory."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from traceback import format_exception_only
from typing import Any

from otel_eval.drafts import quick
from otel_eval.evaluators.base import Evaluator
from otel_eval.model import (
    Anchor,
    Evaluation,
    Failure,
    Outcome,
    Score,
    Skip,
    ToolCall,
    Trajectory,
    Verdict,
)
from otel_eval.rule import Rule

_make_evaluation = quick(Evaluation)


class Job:
    """A rule and one trajectory that it scores."""

    __slots__ = ("_anchor", "_shown", "_traces", "is_sampled", "rule", "trajectory")

    def __init__(
        self, *, rule: Rule, trajectory: Trajectory, traces: Mapping[str, str] | None = None
    ) -> None:
        """`traces`: for a session, the trace of each tool call's span."""
        self.rule = rule
        self.trajectory = trajectory
        self.is_sampled = rule.sample >= 1 or rule.samples(_identity(rule, trajectory))
        self._traces = traces or {}
        self._anchor = trajectory.anchor or Anchor(trace_id=trajectory.trace_id, span_id="")
        self._shown = trajectory
        """What evaluators see of the trajectory."""
        if rule.incomplete == "score" and not trajectory.whole:
            self._shown = replace(trajectory, whole=True)

    def evaluate(self, evaluator: Evaluator) -> list[Evaluation]:
        """What one evaluator of the rule says; what it raises becomes a Failure."""
        if self.is_sampled and evaluator.is_one_question:
            return [self._evaluation(evaluator, None, self._answer(evaluator))]
        withheld = self.withheld(evaluator, self._settled)
        return list(self.ask(evaluator)) if withheld is None else [withheld]

    def _answer(self, evaluator: Evaluator) -> Outcome:
        try:
            return _sound(evaluator.evaluate(evaluator.considered(self._shown)))
        except KeyboardInterrupt:
            raise
        # Evaluators may be anyone's code, and some libraries raise what is no Exception.
        except BaseException as error:
            return _failure(error)

    def withheld(
        self, evaluator: Evaluator, verdicts: Callable[[], Collection[Verdict]]
    ) -> Evaluation | None:
        """That it is not to be asked, and why. `verdicts`: of those that ask no model."""
        if not self.is_sampled:
            skip = Skip("sampled_out", f"outside the sample of {self.rule.sample}")
            return self._evaluation(evaluator, None, skip)
        try:
            found = evaluator.withheld(self._shown, verdicts)
        except KeyboardInterrupt:
            raise
        # As in `_answer`.
        except BaseException as error:
            return self._evaluation(evaluator, None, _failure(error))
        return None if found is None else self._evaluation(evaluator, None, found)

    def ask(self, evaluator: Evaluator) -> Iterator[Evaluation]:
        """What it says, each as soon as it is known; not whether it is to be asked at all."""
        try:
            for call, outcome in evaluator.outcomes(self._shown):
                yield self._evaluation(evaluator, call, _sound(outcome))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        # As in `_answer`.
        except BaseException as error:
            yield self._evaluation(evaluator, None, _failure(error))

    def give_up(
        self, evaluator: Evaluator, skip: Skip, known: Sequence[Evaluation] = ()
    ) -> list[Evaluation]:
        """What is known of an evaluator that no longer is waited for; the rest of it is skipped."""
        calls: Sequence[ToolCall | None] = [None]
        if evaluator.per_call():
            calls = evaluator.calls(self.trajectory) or [None]
        left = calls[len(known) :]
        return [*known, *(self._evaluation(evaluator, call, skip) for call in left)]

    def _settled(self) -> set[Verdict]:
        """What the rule's evaluators say that ask no model."""
        return {found.verdict for each in self.rule.deterministic for found in self.evaluate(each)}

    def _evaluation(
        self, evaluator: Evaluator, call: ToolCall | None, outcome: Outcome
    ) -> Evaluation:
        rule, pass_at = self.rule, evaluator.pass_at
        return _make_evaluation(
            rule=rule.name,
            evaluator=evaluator.name,
            type=evaluator.type,
            outcome=outcome,
            pass_at=rule.pass_at if pass_at is None else pass_at,
            anchor=self._anchor if call is None else self._anchor_of(call),
            trajectory=self.trajectory,
            call=call,
            sample=rule.sample,
        )

    def _anchor_of(self, call: ToolCall) -> Anchor:
        if call.span_id is None:
            return self._anchor
        return Anchor(
            trace_id=self._traces.get(call.span_id, self.trajectory.trace_id),
            span_id=call.span_id,
            end_ns=call.end_ns,
            resource=self._anchor.resource,
        )


def _identity(rule: Rule, trajectory: Trajectory) -> str:
    """What is sampled: the session as a whole where it is scored as one."""
    if rule.per == "session" and trajectory.session is not None:
        return trajectory.session
    return trajectory.trace_id


def _sound(outcome: Any) -> Outcome:
    """What is no outcome at all is a failure of its own: those of other calls stand."""
    if isinstance(outcome, Score):
        if 0 <= outcome.value <= 1:
            return outcome
        return Failure("ValueError", f"a score lies between 0 and 1, not at {outcome.value}")
    if isinstance(outcome, Skip | Failure):
        return outcome
    given = type(outcome).__name__
    return Failure("TypeError", f"an evaluator must give a Score or a Skip, not {given}")


def _failure(error: BaseException) -> Failure:
    text = "".join(format_exception_only(error)).strip()
    return Failure(type(error).__name__, text.partition(": ")[2])
