"""Evaluations one after another or, where models are asked, several at a time."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Protocol, TypeVar

from otel_eval.job import Job
from otel_eval.model import Evaluation
from otel_eval.recorded import evaluated
from otel_eval.rules import RuleSet


class HasJobs(Protocol):
    @property
    def jobs(self) -> Sequence[Job]: ...


T = TypeVar("T", bound=HasJobs)


def evaluate_all(
    items: Iterable[T], rules: RuleSet, threads: int
) -> Iterator[tuple[T, list[Evaluation]]]:
    """Each trace or session with its evaluations, in the order given."""
    if any(evaluator.needs_model for rule in rules.rules for evaluator in rule.evaluators):
        yield from _in_threads(items, threads)
    else:
        yield from ((item, evaluated(item.jobs)) for item in items)


def _in_threads(items: Iterable[T], threads: int) -> Iterator[tuple[T, list[Evaluation]]]:
    """No further ahead than twice the threads, so that what waits is bounded."""
    source = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[T, Future[list[Evaluation]]]] = deque()
        while True:
            for item in islice(source, 2 * threads - len(waiting)):
                waiting.append((item, pool.submit(evaluated, item.jobs)))
            if not waiting:
                return
            first, answer = waiting.popleft()
            yield first, answer.result()
