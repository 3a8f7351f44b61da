"""Evaluations with dull defaults, for every sink's tests."""

from typing import Any

from otel_eval.model import Anchor, Evaluation, Outcome, Score
from tests.conftest import SPAN_ID, TRACE_ID, trajectory

END_NS = 1_700_000_000_000_000_000


def anchor(**fields: Any) -> Anchor:
    return Anchor(**{"trace_id": TRACE_ID, "span_id": SPAN_ID, "end_ns": END_NS, **fields})


def evaluation(outcome: Outcome | None = None, **fields: Any) -> Evaluation:
    """A pass of `tool-call-order` in the rule `flow`, about the agent `agent`."""
    defaults: dict[str, Any] = {
        "rule": "flow",
        "evaluator": "order",
        "type": "tool-call-order",
        "outcome": outcome or Score(1.0, "2 of 2 in order"),
        "pass_at": 0.8,
        "anchor": anchor(),
        "trajectory": trajectory(["search"]),
    }
    return Evaluation(**{**defaults, **fields})
