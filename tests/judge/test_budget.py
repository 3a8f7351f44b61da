import pytest

from otel_eval.judge.budget import Budget
from otel_eval.judge.question import BudgetError


def test_calls_are_counted_over_any_minute() -> None:
    now = [0.0]
    budget = Budget(2, lambda: now[0])

    budget.take()
    now[0] = 30.0
    budget.take()
    with pytest.raises(BudgetError, match="2 calls"):
        budget.take()
    assert budget.wait() == 30.0

    now[0] = 60.0
    budget.take()
    assert budget.wait() == 30.0
