"""The last moment at which everything still works."""

import atexit
import threading
from collections.abc import Callable
from multiprocessing import parent_process, util
from typing import Final
from weakref import WeakMethod

from opentelemetry._logs import get_logger_provider
from opentelemetry.metrics import get_meter_provider
from opentelemetry.trace import get_tracer_provider

EXIT_SECONDS: Final = 24.0
"""How long the scoring may take at exit, and then how long what hangs is waited for once more."""
LAST_SECONDS: Final = 6.0


def before_exit(method: Callable[[], None]) -> None:
    """Have the method called at exit, before the exit hooks of any provider.

    Such hooks run in the reverse order of their registration, so this is registered now, and once
    more when the main thread is done if providers were set meanwhile. Not otherwise: hooks of the
    application may end spans too, and should come first. The method must bear being called twice,
    and that spans come after it. Its object is not kept alive.
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
        at_end_of_main(_come_first, run, _providers())


def _come_first(run: Callable[[], None], known: tuple[object, ...]) -> None:
    if any(now is not then for now, then in zip(_providers(), known, strict=True)):
        atexit.register(run)


def _providers() -> tuple[object, ...]:
    """Those that are handed in were made before; only global ones may come later."""
    return get_tracer_provider(), get_meter_provider(), get_logger_provider()
