"""The event `gen_ai.evaluation.result`: what it says, and what it must not say."""

from dataclasses import dataclass
from typing import Final

from otel_eval.model import Evaluation, Failure, Score, Skip

NAME: Final = "gen_ai.evaluation.result"

Attributes = dict[str, str | bool | int | float]

NAMES_NO_VALUES: Final = frozenset(
    {
        "tool-call-count",
        "tool-call-order",
        "tool-call-args",
        "tool-call-output",
        "tool-call-accuracy",
        "trajectory-match",
        "tool-allowlist",
        "tool-error-rate",
        "tool-loop",
        "tool-budget",
        "tool-args-schema",
    }
)
"""Evaluators whose reasons name tools, counts, positions, keys; judges and plug-ins may quote."""


@dataclass(slots=True, kw_only=True)
class ResultEvent:
    """How evaluations are written as events; a reload of the rules sets a new `config_hash`."""

    content: bool = False
    """Whether values of arguments, results and messages may appear."""
    config_hash: str = ""

    def attributes(self, evaluation: Evaluation) -> Attributes:
        found = {
            "gen_ai.evaluation.name": evaluation.evaluator,
            "gen_ai.agent.name": evaluation.trajectory.agent,
            "gen_ai.conversation.id": evaluation.trajectory.session,
            "gen_ai.evaluation.explanation": self._explanation(evaluation),
            "otel_eval.config_hash": self.config_hash,
        }
        told = {name: value for name, value in found.items() if value}
        return {**told, **_outcome(evaluation), **_circumstances(evaluation)}

    def _explanation(self, evaluation: Evaluation) -> str:
        """The reason. An exception's text may quote anything, so it counts as content too."""
        match evaluation.outcome:
            case Failure(message=message):
                return message if self.content else ""
            case Score(reason=reason) | Skip(reason=reason):
                return reason if self.content or evaluation.type in NAMES_NO_VALUES else ""


def is_told(evaluation: Evaluation) -> bool:
    """Whether an evaluation gets an event: what was sampled out is counted, and nothing more.

    An event for each of them would cost what sampling is there to save.
    """
    return not isinstance(evaluation.outcome, Skip) or evaluation.outcome.code != "sampled_out"


def _outcome(evaluation: Evaluation) -> Attributes:
    match evaluation.outcome:
        case Score(value=value, label=label):
            return {
                "gen_ai.evaluation.score.value": float(value),
                "gen_ai.evaluation.score.label": label or evaluation.verdict,
            }
        case Skip(code=code):
            return {"otel_eval.skip.code": code}
        case Failure(type=type_):
            return {"error.type": type_}


def _circumstances(evaluation: Evaluation) -> Attributes:
    trajectory = evaluation.trajectory
    return {
        "otel_eval.verdict": evaluation.verdict,
        "otel_eval.rule": evaluation.rule,
        "otel_eval.evaluator.type": evaluation.type,
        "otel_eval.per": trajectory.per,
        "otel_eval.part": trajectory.part,
        "otel_eval.closed_by": trajectory.closed_by,
        "otel_eval.whole": trajectory.whole,
        "otel_eval.sample": float(evaluation.sample),
    }
