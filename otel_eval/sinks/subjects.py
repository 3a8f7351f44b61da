"""What one evaluation span is about, and the identity that follows from it."""

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b

from otel_eval.model import Evaluation


def by_subject(evaluations: Iterable[Evaluation]) -> Collection[Sequence[Evaluation]]:
    """The evaluations that are told on one span: those by one rule about one anchor."""
    groups: dict[tuple[str, ...], list[Evaluation]] = {}
    for evaluation in evaluations:
        groups.setdefault(_subject(evaluation), []).append(evaluation)
    return groups.values()


def span_id(evaluations: Sequence[Evaluation]) -> bytes:
    """An id of 64 bits that depends on the subject and on which evaluators are told about it.

    A judge's answer comes later than the others': it is a span of its own, not the same one again.
    """
    words = (*_subject(evaluations[0]), *(each.evaluator for each in evaluations), "")
    found = blake2b("\0".join(words).encode("utf-8", "replace"), digest_size=8).digest()
    return found if any(found) else b"\0\0\0\0\0\0\0\1"


def _subject(evaluation: Evaluation) -> tuple[str, ...]:
    trajectory, anchor = evaluation.trajectory, evaluation.anchor
    group = trajectory.session if trajectory.per == "session" else trajectory.trace_id
    part = str(trajectory.part)
    agent = trajectory.agent or ""
    return (group or "", part, agent, evaluation.rule, anchor.trace_id, anchor.span_id)
