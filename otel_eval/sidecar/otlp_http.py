"""OTLP over HTTP: protobuf and JSON, plain or compressed, at one path per signal."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from otel_eval.errors import DecodeError
from otel_eval.sidecar import answers
from otel_eval.sidecar.answers import MEDIA, Refusal, Refused
from otel_eval.sidecar.compression import TooLargeError, Unpacker, unpacker
from otel_eval.sidecar.logs import place_of
from otel_eval.sidecar.receiver import Receiver, crowded
from otel_eval.sidecar.signals import SIGNALS, Form, Signal

log = logging.getLogger(__name__)

MAX_AGE_SECONDS: Final = 600.0
"""How long a connection is kept: now and then a client must ask the balancer again."""
BODY_SECONDS: Final = 60.0
"""A sender that stops within a body must not keep its part of the memory."""
MAX_CONNECTIONS: Final = 10_000
DRAINED_BYTES: Final = 64 * 1024 * 1024
"""How much of a refused body is still read: many clients read the answer only after sending."""
DRAINED_SECONDS: Final = 5.0

_FORMS: Final[dict[str, Form]] = {media: form for form, media in MEDIA.items()}
_EMPTY: Final[dict[Form, bytes]] = {"protobuf": b"", "json": b"{}"}


def http_app(receiver: Receiver, refused: Refused) -> Starlette:
    ages = ConnectionAges(MAX_AGE_SECONDS)
    routes = [Route(signal.path, _endpoint(receiver, signal, ages, refused)) for signal in SIGNALS]
    for route in routes:
        route.methods = None  # every method comes in, so that the answer is OTLP's
    handlers = {HTTPException: _not_found, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False  # exporters do not follow redirects
    return app


def _endpoint(
    receiver: Receiver, signal: Signal, ages: "ConnectionAges", refused: Refused
) -> Callable[[Request], Awaitable[Response]]:
    async def export(request: Request) -> Response:
        form = _form(request)
        try:
            refusal = await _export(receiver, signal, request, form)
        # By the server, which has waited long enough for its last requests.
        except asyncio.CancelledError:
            refusal = _shutting_down()
        if refusal is not None:
            refused.count("http", refusal)
        return _answer(refusal, form or "json", ages.headers(request))

    return export


async def _export(
    receiver: Receiver, signal: Signal, request: Request, form: Form | None
) -> Refusal | None:
    refusal = _first_look(receiver, signal, request, form)
    if refusal is not None:
        return await _drained(request, refusal)
    coding = request.headers.get("content-encoding", "")
    unpack = unpacker(coding, receiver.max_bytes)
    if unpack is None:
        return await _drained(request, answers.wrong_coding(coding))
    return await _read(receiver, signal, request, form or "json", unpack)


def _first_look(
    receiver: Receiver, signal: Signal, request: Request, form: Form | None
) -> Refusal | None:
    """What the headers tell; the body is not worth reading then."""
    if request.method != "POST":
        return answers.wrong_method(request.method)
    if refusal := receiver.admission(request.headers.get("authorization")):
        return refusal
    if form is None:
        return answers.wrong_type(request.headers.get("content-type", ""))
    if _size(request) > receiver.max_bytes:
        return answers.too_large(receiver.max_bytes)
    return receiver.precheck(signal, _size(request))


async def _read(
    receiver: Receiver, signal: Signal, request: Request, form: Form, unpack: Unpacker
) -> Refusal | None:
    stream = request.stream()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _collect(receiver, stream, unpack)
    except TimeoutError:
        message = f"the body did not come within {BODY_SECONDS:.0f} s"
        return answers.busy(message, "slow", closes=True)
    except TooLargeError:
        return await _skipped(stream, answers.too_large(receiver.max_bytes))
    except DecodeError as error:
        return await _skipped(stream, answers.undecodable(str(error)))
    except ClientDisconnect:
        return answers.undecodable("the connection was closed within the body")
    if body is None:
        return await _skipped(stream, crowded())
    return await receiver.receive(signal, body, form, request.headers.get("authorization"))


async def _collect(
    receiver: Receiver, stream: AsyncIterator[bytes], unpack: Unpacker
) -> bytes | None:
    """None where there are too many large bodies at a time."""
    with receiver.under_way.reading() as fits:
        async for piece in stream:
            unpack.add(piece)
            if not fits(unpack.size):
                return None
        return unpack.finish()


async def _drained(request: Request, refusal: Refusal) -> Refusal:
    """Who asks before it sends the body is not made to send it."""
    if request.headers.get("expect", "").lower() == "100-continue":
        return replace(refusal, closes=True)
    return await _skipped(request.stream(), refusal)


async def _skipped(stream: AsyncIterator[bytes], refusal: Refusal) -> Refusal:
    try:
        async with asyncio.timeout(DRAINED_SECONDS):
            is_read = await _skip(stream)
    except (TimeoutError, ClientDisconnect):
        is_read = False
    return replace(refusal, closes=not is_read)


async def _skip(stream: AsyncIterator[bytes]) -> bool:
    """Whether that was all of it."""
    left = DRAINED_BYTES
    async for piece in stream:
        left -= len(piece)
        if left < 0:
            return False
    return True


def _shutting_down() -> Refusal:
    return answers.busy("shutting down", "shutdown", closes=True)


def _size(request: Request) -> int:
    """As the sender says; 0 where it does not."""
    size = request.headers.get("content-length", "")
    return int(size) if size.isdecimal() else 0


def _form(request: Request) -> Form | None:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return _FORMS.get(media)


def _answer(refusal: Refusal | None, form: Form, headers: dict[str, str]) -> Response:
    if refusal is None:
        return Response(_EMPTY[form], media_type=MEDIA[form], headers=headers)
    return Response(
        refusal.body(form),
        refusal.http,
        media_type=MEDIA[form],
        headers={**headers, **refusal.headers()},
    )


async def _not_found(request: Request, _error: Exception) -> Response:
    paths = ", ".join(signal.path for signal in SIGNALS)
    refusal = answers.unimplemented(f"nothing is at {request.url.path}; there are {paths}")
    try:
        refusal = await _drained(request, refusal)
    except asyncio.CancelledError:
        refusal = replace(refusal, closes=True)
    return _answer(refusal, _form(request) or "json", {})


async def _failed(request: Request, error: Exception) -> Response:
    """A bug of ours; with 500 the sender would throw its spans away."""
    log.error("a request failed: %s", place_of(error))
    return _answer(
        answers.busy("an internal error; try again", "error"), _form(request) or "json", {}
    )


class ConnectionAges:
    """Tells clients to close connections that have lasted long, with the answer they wait for."""

    def __init__(self, max_age: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_age = max_age
        self._clock = clock
        self._opened: OrderedDict[tuple[str, int], float] = OrderedDict()

    def headers(self, request: Request) -> dict[str, str]:
        if request.client is None:
            return {}
        client = (request.client.host, request.client.port)
        opened = self._opened.setdefault(client, self._clock())
        if self._clock() - opened < self._max_age:
            self._trim()
            return {}
        del self._opened[client]
        return {"Connection": "close"}

    def _trim(self) -> None:
        """Of connections that were closed nobody tells; the oldest are forgotten."""
        if len(self._opened) > MAX_CONNECTIONS:
            self._opened.popitem(last=False)
