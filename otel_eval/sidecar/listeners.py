"""Sockets and HTTP servers inside the one event loop of the sidecar."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import uvicorn
from starlette.applications import Starlette

from otel_eval.quantities import host_and_port

GRACE_SECONDS: Final = 2
KEEP_ALIVE_SECONDS: Final = 75
"""Longer than the pause between two batches, or every batch would need a new connection."""


class _Server(uvicorn.Server):
    """Leaves signals alone: the sidecar handles them, for all servers at once."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpListener:
    """An application on a socket that is bound at once, so that its port is known."""

    def __init__(self, app: Starlette, endpoint: str, tls: ssl.SSLContext | None = None) -> None:
        self._socket = bind(endpoint)
        self.port: Final[int] = self._socket.getsockname()[1]
        self._server = _Server(_config(app, tls))
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise OSError("the HTTP server ended before it had begun")
            await asyncio.sleep(0.005)

    def abandon(self) -> None:
        """Instead of a start."""
        self._socket.close()

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()


def _config(app: Starlette, tls: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # it warns of every client that offers HTTP/2, and advises to install
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_context_factory=(lambda _config, _default: tls) if tls is not None else None,
    )


def bind(endpoint: str) -> socket.socket:
    """Raises OSError, with the endpoint in its text, where that is not possible."""
    host, port = host_and_port(endpoint)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio switches Nagle's algorithm off for what it accepts. Else each
    # answer with a body, an error or the scrape page, would wait 40 ms for an acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise OSError(f"cannot listen on {endpoint}: {error.strerror}") from error
    listening.setblocking(False)
    return listening


def is_loopback(endpoint: str) -> bool:
    return is_loopback_host(host_and_port(endpoint)[0])


def is_loopback_host(host: str) -> bool:
    return host.strip("[]") in ("localhost", "::1") or host.startswith("127.")
