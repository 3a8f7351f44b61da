"""Times that can be compared: taken side by side, in CPU time, the best of several rounds."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import thread_time
from typing import TypeAlias

Run: TypeAlias = Callable[[], object]


def best(runs: Mapping[str, Run], rounds: int) -> dict[str, float]:
    """The least CPU seconds of each, all of them in every round: the machine's moods hit all."""
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            gc.collect()
            least[name] = min(least[name], seconds(run))
    return least


def seconds(run: Run) -> float:
    began = thread_time()
    run()
    return thread_time() - began


@contextmanager
def collecting_seldom(*thresholds: int) -> Iterator[None]:
    """Garbage collection as the sidecar has it."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
