"""The last moment at which everything still works."""

import atexit
import threading
from collections.abc import Callable
from multiprocessing import parent_process, util
from weakref import WeakMethod


def before_exit(method: Callable[[], None]) -> None:
    """Have the method called at exit, before the exit hooks of any provider.

    Such hooks run in the reverse order of their registration, so this is registered twice: now, and
    once more when the main thread is done, after all that providers made later registered. So the
    method must bear being called twice. Its object is not kept alive.
    """
    hook = WeakMethod(method)

    def run() -> None:
        if (act := hook()) is not None:
            act()

    atexit.register(run)
    # Children of multiprocessing leave without these hooks, but not without multiprocessing's own.
    owner = getattr(method, "__self__", method)
    util.register_after_fork(owner, lambda _: util.Finalize(None, run, exitpriority=100))
    if parent_process() is not None:
        util.Finalize(None, run, exitpriority=100)
    # Not public; without it, providers that are made later than this call shut down first.
    at_end_of_main: Callable[..., None] | None = getattr(threading, "_register_atexit", None)
    if at_end_of_main is not None and threading.main_thread().is_alive():
        at_end_of_main(atexit.register, run)
