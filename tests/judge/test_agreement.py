import pytest

from otel_eval.judge.agreement import agreement


@pytest.mark.parametrize(
    ("pairs", "accuracy", "kappa"),
    [
        # Cohen's own kind of table: 20 and 15 agreed, 5 and 10 not.
        ([(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15, 0.7, 0.4),
        ([(1, 1), (0, 0)], 1.0, 1.0),
        ([(1, 0), (0, 1)], 0.0, -1.0),
        ([(1, 1), (0, 1)], 0.5, 0.0),
        ([(1, 1), (1, 1)], 1.0, None),
    ],
)
def test_kappa_is_agreement_beyond_chance(
    pairs: list[tuple[bool, bool]], accuracy: float, kappa: float | None
) -> None:
    found = agreement(pairs)

    assert found.accuracy == pytest.approx(accuracy)
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))
