"""An event loop on a daemon thread, for judges that are async."""

import asyncio
from collections.abc import Coroutine
from threading import Lock, Thread
from typing import Any, Final, TypeVar
from weakref import finalize

T = TypeVar("T")

GRACE_SECONDS: Final = 1.0
"""Beyond its time, for the loop to say so itself."""


class Loop:
    """One for all async judges: connections that a judge keeps belong to the loop they were made
    in. It ends when nobody holds it any longer, as after a reload of the rules."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
        """Wait for it; raises TimeoutError, and cancels it, when it takes longer.

        One that holds up the loop itself, or will not be cancelled, is left to itself.
        """
        bounded = asyncio.wait_for(coroutine, seconds)
        answer = asyncio.run_coroutine_threadsafe(bounded, self._running())
        try:
            return answer.result(seconds + GRACE_SECONDS)
        finally:
            answer.cancel()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                Thread(target=_run, args=(loop,), name="otel-eval-judge", daemon=True).start()
                finalize(self, loop.call_soon_threadsafe, loop.stop).atexit = False
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
