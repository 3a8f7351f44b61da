"""The real sidecar, in a thread of its own with its own event loop."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final

from otel_eval.config import Config
from otel_eval.sidecar.listeners import bind
from otel_eval.sidecar.ports import Ports
from otel_eval.sidecar.sidecar import Sidecar
from otel_eval.workers import suppressed

DRAIN_SECONDS: Final = 2.0


@contextmanager
def hosted(config: Config) -> Iterator[Ports]:
    """Raises OSError where it cannot listen."""
    host = _Host(config)
    host.thread.start()
    try:
        yield host.ports.result()
    finally:
        host.stop()


class _Host:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.ports: Future[Ports] = Future()
        self.thread = Thread(target=self._run, name="sidecar", daemon=True)

    def stop(self) -> None:
        with suppress(RuntimeError):  # it never came up, and its loop is closed
            self._loop.call_soon_threadsafe(self._stop.set)
        self.thread.join()

    def _run(self) -> None:
        with suppressed(), asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                sidecar = runner.run(self._start())
            except Exception as error:  # whatever it is, somebody waits for the ports
                self.ports.set_exception(error)
                return
            self.ports.set_result(sidecar.ports)
            runner.run(self._drained(sidecar))

    async def _start(self) -> Sidecar:
        sidecar = Sidecar(self._config)
        await sidecar.start()
        return sidecar

    async def _drained(self, sidecar: Sidecar) -> None:
        await self._stop.wait()
        await sidecar.drain(DRAIN_SECONDS)


def is_free(endpoint: str) -> bool:
    try:
        bind(endpoint).close()
    except OSError:
        return False
    return True
