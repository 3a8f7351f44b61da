"""Evaluators that ask a model: in a pool of their own, so that they never delay the others."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import Final

from otel_eval.evaluators.base import Evaluator
from otel_eval.job import Job
from otel_eval.judge.meters import JudgeCall, collecting
from otel_eval.model import Evaluation, Skip
from otel_eval.outlet import Delivery
from otel_eval.workers import Crew

MAX_WAITING: Final = 1_000

BUDGET: Final = Skip("budget", f"{MAX_WAITING} evaluations were already waiting for a model")
TIMEOUT: Final = Skip("timeout", "the model had not answered when the engine was closed")


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    job: Job
    evaluator: Evaluator
    answers: list[Evaluation] = field(default_factory=list)
    """As they come: what was answered when the task is given up is kept."""
    calls: list[JudgeCall] = field(default_factory=list)


class SlowPool:
    """Every task is delivered exactly once: with its answers, and with skips for those that were
    not waited for."""

    def __init__(self, deliver: Callable[[Delivery], None], *, threads: int) -> None:
        self._deliver = deliver
        self._crew = Crew(self._work, name="otel-eval-slow", threads=threads, most=MAX_WAITING)
        self._unanswered: set[_Task] = set()
        self._lock = Lock()
        self.start = self._crew.start
        self.wait = self._crew.wait

    def submit(self, job: Job, evaluator: Evaluator) -> None:
        task = _Task(job, evaluator)
        with self._lock:
            self._unanswered.add(task)
        if not self._crew.put(task):
            self._give_up([task], BUDGET)

    def close(self) -> None:
        """Nobody waits any longer for what is unanswered."""
        self._crew.close()
        with self._lock:
            left = list(self._unanswered)
        self._give_up(left, TIMEOUT)

    def _work(self, task: _Task) -> None:
        if task not in self._unanswered:
            return
        started = perf_counter()
        with collecting(task.calls):
            for answer in task.job.ask(task.evaluator):
                task.answers.append(answer)
        took = (task.evaluator.name, perf_counter() - started)
        if self._claim(task):
            self._deliver(
                Delivery(evaluations=task.answers, durations=[took], judge_calls=task.calls)
            )

    def _give_up(self, tasks: Iterable[_Task], skip: Skip) -> None:
        claimed = [task for task in tasks if self._claim(task)]
        if claimed:
            self._deliver(
                Delivery(
                    evaluations=[each for task in claimed for each in _given_up(task, skip)],
                    judge_calls=[each for task in claimed for each in list(task.calls)],
                )
            )

    def _claim(self, task: _Task) -> bool:
        """Whether it is for the caller to deliver this one."""
        with self._lock:
            if task not in self._unanswered:
                return False
            self._unanswered.remove(task)
            return True


def _given_up(task: _Task, skip: Skip) -> list[Evaluation]:
    return task.job.give_up(task.evaluator, skip, known=list(task.answers))
