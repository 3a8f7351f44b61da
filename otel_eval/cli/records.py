"""An evaluation as a line of `otel-eval score --json`."""

from otel_eval.model import Evaluation, Failure, Json, Score, Skip


def evaluation_record(evaluation: Evaluation) -> dict[str, Json]:
    """The contract of `--json`."""
    trajectory = evaluation.trajectory
    return {
        "trace_id": trajectory.trace_id,
        "part": trajectory.part,
        "session": trajectory.session,
        "agent": trajectory.agent,
        "rule": evaluation.rule,
        "evaluator": evaluation.evaluator,
        "type": evaluation.type,
        "per": trajectory.per,
        "anchor": {
            "trace_id": evaluation.anchor.trace_id,
            "span_id": evaluation.anchor.span_id,
        },
        "verdict": evaluation.verdict,
        **_outcome(evaluation),
        "closed_by": trajectory.closed_by,
        "whole": trajectory.whole,
    }


def _outcome(evaluation: Evaluation) -> dict[str, Json]:
    told: dict[str, Json] = {
        "score": None,
        "label": None,
        "reason": None,
        "skip_code": None,
        "details": None,
    }
    match evaluation.outcome:
        case Score(value=value, reason=reason, details=details, label=label):
            told |= {"score": value, "reason": reason, "details": dict(details)}
            told["label"] = label or evaluation.verdict
        case Skip(code=code, reason=reason):
            told |= {"skip_code": code, "reason": reason}
        case Failure(type=type_, message=message):
            told["reason"] = f"{type_}: {message}".removesuffix(": ")
    return told
