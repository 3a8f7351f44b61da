"""The sidecar's life: startup → run → drain."""

import asyncio
import logging
import signal
from collections.abc import Callable

from otel_eval.config import Config
from otel_eval.errors import ConfigError
from otel_eval.sidecar import garbage, logs
from otel_eval.sidecar.banner import banner as banner_text
from otel_eval.sidecar.sidecar import Reload, Sidecar
from otel_eval.workers import suppressed

log = logging.getLogger(__name__)


def serve(
    config: Config, *, banner: Callable[[str], None] = print, reload: Reload | None = None
) -> int:
    """Run until SIGTERM or SIGINT; SIGHUP calls `reload` for a new configuration.

    The exit code: 0 if everything was delivered, 1 if it was not, 2 if it could not start, as when
    a port is in use or a certificate cannot be read.
    """
    logs.configure(config.log)
    with suppressed():
        return asyncio.run(_serve(config, banner, reload or (lambda: config)))


async def _serve(config: Config, banner: Callable[[str], None], reload: Reload) -> int:
    try:
        sidecar = Sidecar(config)
        stop = _handle_signals(sidecar, reload)
        await sidecar.start()
    except (OSError, ConfigError) as error:
        log.error("%s", error)
        return 2
    garbage.tune()
    banner(banner_text(config, sidecar.ports))
    await stop.wait()
    log.info("draining")
    if await sidecar.drain():
        log.info("drained: nothing is left to score or to send")
        return 0
    log.error("time ran out before everything was scored and delivered")
    return 1


def _handle_signals(sidecar: Sidecar, reload: Reload) -> asyncio.Event:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, stop.set)
    loop.add_signal_handler(signal.SIGHUP, sidecar.reload, reload)
    return stop
