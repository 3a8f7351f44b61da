"""Daemon threads: the one that steps the engine, and crews that keep slow code out of its way."""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Event, Lock, Thread, current_thread
from traceback import format_tb
from typing import Generic, TypeAlias, TypeVar

from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,
    attach,
    detach,
    set_value,
)

T = TypeVar("T")
Act: TypeAlias = Callable[[], None]

log = logging.getLogger("otel_eval")


@contextmanager
def suppressed() -> Iterator[None]:
    """Nothing that runs in here makes spans of its own."""
    token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
    try:
        yield
    finally:
        detach(token)


def spawn(target: Callable[[], None], name: str) -> Thread | None:
    """A daemon thread; None at interpreter exit, when there can be no new one."""
    thread = Thread(target=target, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


@dataclass(frozen=True, slots=True)
class _Order:
    act: Act
    done: Event = field(default_factory=Event)


class Worker:
    """A thread that steps at every tick, and in between does what it is asked to."""

    def __init__(self, step: Act, fail: Callable[[object, str], None], tick: float) -> None:
        self._step = step
        self._fail = fail
        self._tick = tick
        self._orders: deque[_Order] = deque()
        self._wake = Event()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._stopped = False

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and not self._stopped

    def start(self) -> bool:
        """False where there can be no thread: then who asks does the work."""
        self._thread = spawn(self._run, "otel-eval")
        return self._thread is not None

    def wake(self) -> None:
        if not self._wake.is_set():
            self._wake.set()

    def ask(self, act: Act, seconds: float) -> bool:
        """Wait until it is done, no longer than this. The thread itself cannot be waited for."""
        if self._thread is current_thread():
            return False
        order = _Order(act)
        with self._lock:
            alive = self.is_alive
            if alive:
                self._orders.append(order)
        if not alive:
            self._attempt(act)
            return True
        self._wake.set()
        return order.done.wait(seconds)

    def stop(self) -> None:
        """No step after this; what was asked before is still done."""
        with self._lock:
            self._stopped = True

    def _run(self) -> None:
        while not self._stopped:
            self._wake.wait(self._tick)
            self._wake.clear()
            self._attempt(self._step)
            while self._orders:
                order = self._orders.popleft()
                self._attempt(order.act)
                order.done.set()

    def _attempt(self, act: Act) -> None:
        try:
            act()
        # Whatever went wrong with these spans, the next ones need the thread.
        except Exception as error:
            self._fail(self, "raised")
            # Where, but not the error's own words: they may quote what a user's agent said.
            where = "".join(format_tb(error.__traceback__))
            log.error("a step of the engine failed: %s\n%s", type(error).__name__, where)


class Crew(Generic[T]):
    """Up to `threads` daemon threads that do `work`, which must not raise, on what is put in.

    Works inline, in the caller's thread, unless it is started. Bounded: what finds `most` waiting
    is refused.
    """

    def __init__(
        self, work: Callable[[T], None], *, name: str, threads: int = 1, most: int
    ) -> None:
        self._work = work
        self._name = name
        self._most = most
        self._size = threads
        self._threads: list[Thread] = []
        self._waiting: deque[T] = deque()
        self._changed = Condition()
        self._busy = 0
        self._closed = False

    def start(self) -> None:
        if self._closed:
            return
        made = (spawn(self._run, self._name) for _ in range(self._size - len(self._threads)))
        self._threads.extend(thread for thread in made if thread is not None)

    def put(self, item: T, *, patience: float = 0.0) -> bool:
        """False if too much is waiting, and still is after that many seconds."""
        if not self._threads:
            return self._work_inline(item)
        with self._changed:
            self._changed.wait_for(self._has_room, patience)
            if self._closed or not self._has_room():
                return False
            self._waiting.append(item)
            self._changed.notify_all()
        return True

    def close(self, *last: T) -> None:
        """Take these, however much is waiting, and nothing after; then the threads end."""
        with self._changed:
            closed, self._closed = self._closed, True
            if self._threads and not closed:
                self._waiting.extend(last)
                self._changed.notify_all()
        if not self._threads and not closed:
            for item in last:
                self._work_suppressed(item)

    def wait(self, seconds: float) -> bool:
        """Until nothing waits or is being worked on. A worker itself has nothing to wait for."""
        if current_thread() in self._threads:
            return True
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, seconds)

    def _has_room(self) -> bool:
        return len(self._waiting) < self._most

    def _work_inline(self, item: T) -> bool:
        if self._closed:
            return False
        self._work_suppressed(item)
        return True

    def _work_suppressed(self, item: T) -> None:
        with suppressed():
            self._work(item)

    def _run(self) -> None:
        with suppressed():
            while self._await_item():
                self._work_once()

    def _await_item(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._closed)
            return bool(self._waiting)

    def _work_once(self) -> None:
        with self._changed:
            if not self._waiting:
                return
            item = self._waiting.popleft()
            self._busy += 1
        try:
            self._work(item)
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()
