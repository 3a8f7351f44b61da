"""What a process takes, sample by sample, and whether that stays the same."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from tests.benchmarks.sidecar import cpu_seconds

MIB: Final = 1 << 20
GROWTH: Final = 1.05
ALLOWANCE_MIB: Final = 8.0
WARM_UP_SHARE: Final = 0.4
"""Until then pools fill, and what is remembered of closed traces reaches its bound."""


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    """Seconds since the beginning."""
    rss_mib: float
    cpu_seconds: float


class Watch:
    """Samples a process in a thread of its own until it is stopped."""

    def __init__(self, pid: int, *, every: float, open_spans: Callable[[], int]) -> None:
        self._pid = pid
        self._open_spans = open_spans
        self.open_spans = 0
        self._every = every
        self._began = time.monotonic()
        self._over = threading.Event()
        self.samples = [self._sample()]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self.samples.append(self._sample())

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self.samples.append(self._sample())
            self.open_spans = self._open_spans()

    def _sample(self) -> Sample:
        at = time.monotonic() - self._began
        return Sample(at, rss_mib(self._pid), cpu_seconds(self._pid))

    @property
    def cores(self) -> float:
        """How many it kept busy, after warm-up."""
        first, last = self._warm()[0], self.samples[-1]
        return (last.cpu_seconds - first.cpu_seconds) / (last.at - first.at)

    def ends(self) -> tuple[float, float]:
        """The memory after warm-up and at the end, each the median of a fifth of the samples."""
        warm = self._warm()
        some = max(1, len(warm) // 5)
        return median(each.rss_mib for each in warm[:some]), median(
            each.rss_mib for each in warm[-some:]
        )

    @property
    def is_flat(self) -> bool:
        first, last = self.ends()
        return last <= GROWTH * first + ALLOWANCE_MIB

    def course(self, points: int = 10) -> list[float]:
        step = max(1, len(self.samples) // points)
        return [each.rss_mib for each in self.samples[::step]]

    def _warm(self) -> list[Sample]:
        return self.samples[int(WARM_UP_SHARE * len(self.samples)) :]


def rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / MIB
