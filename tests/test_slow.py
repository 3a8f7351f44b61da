from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from otel_eval.evaluators.base import Evaluator
from otel_eval.job import Job
from otel_eval.model import Score, Trajectory
from otel_eval.outlet import Delivery
from otel_eval.rule import Rule
from otel_eval.slow import BUDGET, MAX_WAITING, TIMEOUT, SlowPool
from tests.conftest import trajectory


class Slow(Evaluator):
    type: str = "slow"
    began: Any
    released: Any

    def evaluate(self, trajectory: Trajectory) -> Score:
        self.began.set()
        assert self.released.wait(10)
        return Score(1.0, str(trajectory.agent))


class Pool:
    """A pool of one thread that is busy with its first task."""

    def __init__(self) -> None:
        self.delivered: list[Delivery] = []
        self.evaluator = Slow(began=Event(), released=Event())
        self.pool = SlowPool(self.delivered.append, threads=1)
        self.pool.start()
        self.submit("first")
        assert self.evaluator.began.wait(10)

    def submit(self, agent: str) -> None:
        rule = Rule(name="rule", evaluators=(self.evaluator,))
        self.pool.submit(Job(rule=rule, trajectory=trajectory(agent=agent)), self.evaluator)

    @property
    def outcomes(self) -> list[object]:
        return [each.outcome for delivery in self.delivered for each in delivery.evaluations]


@pytest.fixture
def busy() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.evaluator.released.set()
    pool.pool.close()


def test_each_task_is_delivered_with_how_long_it_took(busy: Pool) -> None:
    busy.submit("second")
    busy.evaluator.released.set()

    assert busy.pool.wait(10)

    assert busy.outcomes == [Score(1.0, "first"), Score(1.0, "second")]
    assert [name for each in busy.delivered for name, _ in each.durations] == ["slow", "slow"]


def test_a_task_for_which_there_is_no_room_is_skipped_at_once(busy: Pool) -> None:
    for number in range(MAX_WAITING):
        busy.submit(str(number))
    assert busy.outcomes == []

    busy.submit("one too many")

    assert busy.outcomes == [BUDGET]


def test_what_is_unanswered_when_the_pool_closes_is_skipped_and_not_delivered_again(
    busy: Pool,
) -> None:
    busy.submit("second")

    busy.pool.close()
    assert busy.outcomes == [TIMEOUT, TIMEOUT]
    busy.evaluator.released.set()

    assert busy.pool.wait(10)
    assert busy.outcomes == [TIMEOUT, TIMEOUT]
