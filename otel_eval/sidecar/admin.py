"""What operators and their tools ask: metrics, whether it lives, whether it takes work."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

Page = Callable[[str], tuple[bytes, str]]
"""A scrape page and its content type, for an Accept header."""


def admin_app(*, page: Page, ready: Callable[[], bool]) -> Starlette:
    async def metrics(request: Request) -> Response:
        body, content_type = page(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    async def healthz(_request: Request) -> Response:
        """An answer at all is the answer: the loop that gives it is the one that does the work."""
        return PlainTextResponse("alive")

    async def readyz(_request: Request) -> Response:
        is_ready = ready()
        return PlainTextResponse("ready" if is_ready else "not ready", 200 if is_ready else 503)

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ]
    )
