"""An event loop in a thread of its own, so that tests can use the official, blocking clients."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float = 30) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def call(self, act: Callable[[], T]) -> T:
        async def run() -> T:
            return act()

        return self.run(run())

    def until(
        self, holds: Callable[[], object], timeout: float = 8, *, pause: float = 0.01
    ) -> None:
        """Wait, in the loop, for something that the loop brings about.

        A long `pause` leaves it the time to do so, where looking is work too.
        """

        async def wait() -> None:
            async with asyncio.timeout(timeout):
                while not holds():
                    await asyncio.sleep(pause)

        self.run(wait(), timeout + 5)

    def stop(self) -> None:
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@contextmanager
def loop_thread() -> Iterator[LoopThread]:
    loop = LoopThread()
    try:
        yield loop
    finally:
        loop.stop()
