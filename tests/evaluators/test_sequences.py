from collections.abc import Sequence

import pytest

from otel_eval.evaluators import parse
from otel_eval.evaluators.sequences import LONGEST_KNOWN, MOST_KNOWN, Sequences
from otel_eval.model import Score
from tests.conftest import trajectory


class Judge:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, names: Sequence[str]) -> Score:
        self.asked.append(tuple(names))
        return Score(1.0, f"asked {len(self.asked)} times")


def test_a_sequence_is_judged_once() -> None:
    judge = Judge()
    sequences = Sequences(judge)

    scores = [sequences.score(names) for names in (["a", "b"], ["b", "a"], ["a", "b"])]

    assert judge.asked == [("a", "b"), ("b", "a")]
    assert scores[2] == scores[0]


def test_a_long_one_is_judged_each_time() -> None:
    judge = Judge()
    sequences = Sequences(judge)

    for _ in range(2):
        sequences.score(["a"] * (LONGEST_KNOWN + 1))

    assert len(judge.asked) == 2


def test_what_is_known_stays_bounded() -> None:
    sequences = Sequences(Judge())

    for number in range(3 * MOST_KNOWN):
        sequences.score([f"tool {number}"])

    assert len(sequences._known) <= MOST_KNOWN


@pytest.mark.parametrize(
    ("settings", "update"),
    [
        ({"type": "tool-call-order", "tool_calls_order": ["a", "b"]}, {"strict": True}),
        (
            {"type": "tool-call-count", "tool_calls_count": {"a": "= 1", "b": "= 2"}},
            {"strict": True},
        ),
    ],
    ids=["order", "count"],
)
def test_a_copy_with_other_settings_judges_anew(
    settings: dict[str, object], update: dict[str, object]
) -> None:
    evaluator = parse(settings, "evaluators[0]")
    calls = trajectory(["a", "b", "c"])
    before = evaluator.evaluate(calls)

    after = evaluator.model_copy(update=update).evaluate(calls)

    assert isinstance(before, Score)
    assert isinstance(after, Score)
    assert before.value > after.value == 0
