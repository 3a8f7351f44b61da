"""An OTLP endpoint that is reached over HTTP."""

import asyncio
import http.client
import ssl
import time
from collections import deque
from contextlib import suppress
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import Final
from urllib.parse import urlsplit

from otel_eval.errors import ConfigError
from otel_eval.settings import OtlpTarget
from otel_eval.sidecar.answers import MEDIA
from otel_eval.sidecar.compression import pack
from otel_eval.sidecar.parcels import Delivered, Parcel, Rejected, Reply, Retry, Unknown
from otel_eval.sidecar.partial import rejected_items
from otel_eval.sidecar.signals import TRACES
from otel_eval.sidecar.tls import client_context, watched_files
from otel_eval.workers import suppressed

RETRYABLE: Final = frozenset({408, 429, 502, 503, 504})
MAX_ANSWER: Final = 1024 * 1024
_TRANSPORT: Final = (OSError, http.client.HTTPException, ConfigError)


class HttpTarget:
    """Connections are kept and used again, one per request under way."""

    takes_json = True

    def __init__(self, endpoint: str, settings: OtlpTarget) -> None:
        self.endpoint = endpoint
        url = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        self._host = url.hostname or ""
        self._port = url.port
        self._path = url.path.rstrip("/").removesuffix(TRACES.path)
        self._tls = client_context(settings.tls) if url.scheme == "https" else None
        self._files = watched_files(settings.tls)
        self._settings = settings
        self._idle: deque[http.client.HTTPConnection] = deque()

    async def send(self, parcel: Parcel) -> Reply:
        """In a daemon thread, not in a pool: at exit Python waits for pools, however long."""
        done: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        Thread(target=self._run, args=(parcel, done), daemon=True).start()
        return await done

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _run(self, parcel: Parcel, done: "asyncio.Future[Reply]") -> None:
        reply = self._send(parcel)
        with suppress(RuntimeError):  # the loop is gone, and nobody asks any more
            done.get_loop().call_soon_threadsafe(_settle, done, reply)

    def _send(self, parcel: Parcel) -> Reply:
        with suppressed():
            reused = bool(self._idle)
            try:
                return self._post(parcel)
            except _TRANSPORT as error:
                # The target closes connections that were idle; that says nothing about the target.
                if not reused:
                    return Retry(f"{type(error).__name__}: {error}")
            try:
                return self._post(parcel, fresh=True)
            except _TRANSPORT as error:
                return Retry(f"{type(error).__name__}: {error}")

    def _post(self, parcel: Parcel, *, fresh: bool = False) -> Reply:
        connection = self._connect() if fresh or not self._idle else self._idle.pop()
        body = pack(parcel.body, self._settings.compression)
        try:
            connection.request("POST", self._path + parcel.signal.path, body, self._headers(parcel))
            response = connection.getresponse()
            answer = response.read(MAX_ANSWER)
        except BaseException:
            connection.close()
            raise
        if response.isclosed() and not response.will_close:
            self._idle.append(connection)
        else:
            connection.close()
        return _reply(parcel, response, answer)

    def _connect(self) -> http.client.HTTPConnection:
        timeout = self._settings.timeout
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        if self._files.changed():
            self._tls = client_context(self._settings.tls)
        return _secure(self._host, self._port, timeout, self._tls)

    def _headers(self, parcel: Parcel) -> dict[str, str]:
        coding = self._settings.compression
        return {
            "Content-Type": MEDIA[parcel.form],
            "User-Agent": "otel-eval",
            **({} if coding == "none" else {"Content-Encoding": coding}),
            **self._settings.headers,
        }


def _settle(done: "asyncio.Future[Reply]", reply: Reply) -> None:
    if not done.done():
        done.set_result(reply)


def _secure(
    host: str, port: int | None, timeout: float, context: ssl.SSLContext
) -> http.client.HTTPConnection:
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)


def _reply(parcel: Parcel, response: http.client.HTTPResponse, answer: bytes) -> Reply:
    status = response.status
    if 200 <= status < 300:
        return Delivered(rejected_items(parcel.signal, answer, parcel.form))
    reason = f"{status} {response.reason}"
    if status in RETRYABLE:
        return Retry(reason, _retry_after(response.headers.get("Retry-After")))
    return Unknown(reason) if status in (404, 405, 501) else Rejected(reason)


def _retry_after(header: str | None) -> float | None:
    """Seconds, or a date."""
    if header is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(header))
    with suppress(ValueError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return None
