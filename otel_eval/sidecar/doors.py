"""The three listening ports of a sidecar."""

import asyncio
from contextlib import ExitStack
from math import inf
from typing import Final

import grpc
from starlette.applications import Starlette

from otel_eval.quantities import MIB, host_and_port, to_bytes
from otel_eval.settings import Admin, Auth, Grpc, Otlp, ServerTls
from otel_eval.sidecar.answers import Refused
from otel_eval.sidecar.intake import Intake
from otel_eval.sidecar.listeners import HttpListener, bind, is_loopback
from otel_eval.sidecar.otlp_grpc import grpc_server
from otel_eval.sidecar.otlp_http import http_app
from otel_eval.sidecar.ports import Ports
from otel_eval.sidecar.receiver import Receiver
from otel_eval.sidecar.tls import ReloadingContext, server_credentials, within
from otel_eval.sidecar.tokens import Tokens
from otel_eval.sidecar.under_way import UnderWay

GRACE_SECONDS: Final = 1.0
LEAST_UNDER_WAY: Final = 8 * MIB
"""Requests on their way in get that much even where the budgets are tiny."""


class Doors:
    """Bound when made, so that a port in use is known before anything starts."""

    def __init__(
        self,
        settings: Otlp,
        admin: Admin,
        *,
        intake: Intake,
        tokens: Tokens,
        pages: Starlette,
        refused: Refused | None = None,
        budget: float = inf,
    ) -> None:
        """`budget` is what all else may take of the memory: requests on their way in add to it."""
        refused = Refused() if refused is None else refused
        http, grpc_ = settings.http, settings.grpc
        under_way = UnderWay(_most_under_way(settings, budget))
        taker = Receiver(intake, tokens, under_way, max_bytes=to_bytes(grpc_.max_message_mib))
        self._grpc = grpc_server(taker, refused)
        with within("receivers.otlp.grpc"):
            port = _bind(self._grpc, grpc_)
        taker = Receiver(intake, tokens, under_way, max_bytes=to_bytes(http.max_message_mib))
        with within("receivers.otlp.http"):
            context = _context(http.tls)
        with ExitStack() as unwind:
            self._http = HttpListener(http_app(taker, refused), http.endpoint, context)
            unwind.callback(self._http.abandon)
            self._admin = HttpListener(pages, admin.endpoint)
            unwind.pop_all()
        self.ports: Final = Ports(grpc=port, http=self._http.port, admin=self._admin.port)

    async def open(self) -> None:
        await self._admin.start()
        await self._http.start()
        await self._grpc.start()

    async def close(self) -> None:
        """Requests under way are answered first."""
        await asyncio.gather(self._grpc.stop(GRACE_SECONDS), self._http.stop(), self._admin.stop())


def _most_under_way(settings: Otlp, budget: float) -> int:
    """Two of the largest requests, where the budget is not too small for that."""
    largest = to_bytes(max(settings.grpc.max_message_mib, settings.http.max_message_mib))
    return int(min(2 * largest, max(budget / 2, LEAST_UNDER_WAY)))


def _context(tls: ServerTls) -> ReloadingContext | None:
    return None if tls.cert_file is None else ReloadingContext.of(tls)


def _bind(server: grpc.aio.Server, settings: Grpc) -> int:
    host, port = host_and_port(settings.endpoint)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if settings.tls.cert_file is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, server_credentials(settings.tls))
    except RuntimeError as error:
        bind(settings.endpoint).close()  # gRPC does not say why, and this does
        raise OSError(f"cannot listen on {settings.endpoint}: {error}") from error


def unguarded(settings: Otlp, auth: Auth) -> list[str]:
    """The endpoints that others than this machine can reach, with neither token nor certificate."""
    if auth.bearer_tokens or auth.token_file:
        return []
    return [
        each.endpoint
        for each in (settings.grpc, settings.http)
        if not is_loopback(each.endpoint) and each.tls.client_ca_file is None
    ]
