"""How many calls there may be in a minute."""

from collections import deque
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

from otel_eval.judge.question import BudgetError

MINUTE: Final = 60.0


class Budget:
    """At most `calls` in any sixty seconds."""

    def __init__(self, calls: int, clock: Callable[[], float] = monotonic) -> None:
        self._calls = calls
        self._clock = clock
        self._made: deque[float] = deque()
        self._lock = Lock()

    def take(self) -> None:
        """One call; raises BudgetError if there is none left."""
        with self._lock:
            if self._wait() > 0:
                raise BudgetError(f"{self._calls} calls were made within a minute")
            self._made.append(self._clock())

    def wait(self) -> float:
        """Seconds until there is a call to take."""
        with self._lock:
            return self._wait()

    def _wait(self) -> float:
        now = self._clock()
        while self._made and now - self._made[0] >= MINUTE:
            self._made.popleft()
        return self._made[0] + MINUTE - now if len(self._made) >= self._calls else 0.0
