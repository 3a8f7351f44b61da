"""A rule's evaluators at work on one trajectory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A rule and one trajectory that it scores."""

    rule: Rule
    trajectory: Trajectory
    traces: Mapping[str, str] = field(default_factory=dict)
    """For a session: the trace of each tool call's span."""

    @property
    def is_sampled(self) -> bool:
        per_session = self.rule.per == "session" and self.trajectory.session is not None
        identity = self.trajectory.session if per_session else self.trajectory.trace_id
        return self.rule.samples(identity or "")

    def evaluate(self, evaluator: Evaluator) -> list[Evaluation]:
        """What one evaluator of the rule says; what it raises becomes a Failure."""
        return [
            self._evaluation(evaluator, call, outcome)
            for call, outcome in self._outcomes(evaluator)
        ]

    def give_up(self, evaluator: Evaluator, skip: Skip) -> Evaluation:
        """The evaluation of an evaluator that was not asked, or did not answer."""
        return self._evaluation(evaluator, None, skip)

    def _outcomes(self, evaluator: Evaluator) -> Sequence[tuple[ToolCall | None, Outcome]]:
        if not self.is_sampled:
            return [(None, Skip("sampled_out", f"outside the sample of {self.rule.sample}"))]
        shown = self.trajectory
        if self.rule.incomplete == "score":
            shown = replace(shown, whole=True)
        try:
            if skip := evaluator.withheld(shown, self._settled):
                return [(None, skip)]
            return [(call, _sound(outcome)) for call, outcome in evaluator.outcomes(shown)]
        except KeyboardInterrupt:
            raise
        # Evaluators may be anyone's code, and some libraries raise what is no Exception.
        except BaseException as error:
            return [(None, _failure(error))]

    def _settled(self) -> set[Verdict]:
        """What the rule's evaluators say that ask no model."""
        plain = [each for each in self.rule.evaluators if not each.needs_model]
        return {found.verdict for each in plain for found in self.evaluate(each)}

    def _evaluation(
        self, evaluator: Evaluator, call: ToolCall | None, outcome: Outcome
    ) -> Evaluation:
        pass_at = evaluator.pass_at
        return _make_evaluation(
            rule=self.rule.name,
            evaluator=evaluator.name,
            type=evaluator.type,
            outcome=outcome,
            pass_at=self.rule.pass_at if pass_at is None else pass_at,
            anchor=self._anchor(call),
            trajectory=self.trajectory,
            call=call,
            sample=self.rule.sample,
        )

    def _anchor(self, call: ToolCall | None) -> Anchor:
        trace_id = self.trajectory.trace_id
        anchor = self.trajectory.anchor or Anchor(trace_id=trace_id, span_id="")
        if call is None or call.span_id is None:
            return anchor
        return Anchor(
            trace_id=self.traces.get(call.span_id, trace_id),
            span_id=call.span_id,
            end_ns=call.end_ns,
            resource=anchor.resource,
        )


def _sound(outcome: Any) -> Outcome:
    match outcome:
        case Score(value=value) if 0 <= value <= 1:
            return outcome
        case Score(value=value):
            raise ValueError(f"a score lies between 0 and 1, not at {value}")
        case Skip() | Failure():
            return outcome
    raise TypeError(f"an evaluator must give a Score or a Skip, not {type(outcome).__name__}")


def _failure(error: BaseException) -> Failure:
    text = "".join(format_exception_only(error)).strip()
    return Failure(type(error).__name__, text.partition(": ")[2])
