"""From other threads into the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress


class Handover:
    """Calls in the order in which they came. Waking the loop is dear, so one waking serves all that
    come before it is awake."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._is_woken = False

    def put(self, call: Callable[[], None]) -> None:
        """In any thread; at the very end the loop may be gone, and then nothing is called."""
        self._calls.append(call)
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        # Before the calls are taken: what comes while they are wakes the loop again.
        self._is_woken = False
        for _ in range(len(self._calls)):
            self._make(self._calls.popleft())

    def _make(self, call: Callable[[], None]) -> None:
        try:
            call()
        # As the loop does: one that raises is reported, and keeps no other from being called.
        except Exception as error:
            message = f"a call from another thread raised: {call}"
            self._loop.call_exception_handler({"message": message, "exception": error})
