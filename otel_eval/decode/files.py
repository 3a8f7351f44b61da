"""Recorded OTLP in every form it is kept in, told by content and never by name.

JSON (a document, a list of them, or lines), protobuf (bare or with lengths), plain, gzip or zstd.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from otel_eval.decode import framing
from otel_eval.decode.json_text import documents
from otel_eval.decode.otlp_json import RESOURCE_SPANS, SCOPE_SPANS, decode_document
from otel_eval.decode.streams import Plain, decompressed, opened
from otel_eval.decode.terms import MadeUp
from otel_eval.errors import DecodeError
from otel_eval.model import Json, Span

OnError: TypeAlias = Callable[[DecodeError], None]
Record: TypeAlias = list[Span] | DecodeError

EXPECTED: Final = "expected OTLP traces in JSON, JSON lines or protobuf, plain, gzip or zstd"
BUFFER: Final = 1 << 16
_MAX_WAITING: Final = 100
_SPANS: Final = RESOURCE_SPANS | SCOPE_SPANS
_OTHER_SIGNALS: Final = {
    "resourceLogs",
    "resource_logs",
    "resourceMetrics",
    "resource_metrics",
    "resourceProfiles",
    "resource_profiles",
}


def read(path: str | Path, on_error: OnError) -> Iterator[list[Span]]:
    """The spans of each request of a file, or of stdin for `-`, holding one request at a time.

    What cannot be read goes to `on_error` and the rest is read; where nothing can, the first such
    error is raised instead.
    """
    with opened(path) as raw:
        yield from read_stream(raw, path, on_error)


def read_stream(raw: BinaryIO, path: str | Path, on_error: OnError) -> Iterator[list[Span]]:
    """The same of a file that is open already; `path` is what it is called in errors."""
    source = "<stdin>" if str(path) == "-" else str(path)
    yield from _readable(_Records(source).read(raw), on_error, source)


def _readable(records: Iterator[Record], on_error: OnError, source: str) -> Iterator[list[Span]]:
    """Errors wait until something was readable: until then they may be the whole file's."""
    readable = False
    waiting: list[DecodeError] = []
    for record in records:
        if isinstance(record, list):
            _report(waiting, on_error)
            readable = True
            yield record
        elif readable or len(waiting) == _MAX_WAITING:
            on_error(record)
        else:
            waiting.append(record)
    if not readable:
        raise _unreadable(waiting, source)


def _report(waiting: list[DecodeError], on_error: OnError) -> None:
    for error in waiting:
        on_error(error)
    waiting.clear()


def _unreadable(waiting: list[DecodeError], source: str) -> DecodeError:
    if not waiting:
        return DecodeError(f"is empty; {EXPECTED}", source=source)
    first, more = waiting[0], len(waiting) > 1
    message = f"{first.message}, and nothing after it is readable" if more else first.message
    return DecodeError(message, source=source, line=first.line)


class _Records:
    """What one file holds. Its spans without valid ids are one list, and so one trace."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._made_up = MadeUp()

    def read(self, raw: BinaryIO) -> Iterator[Record]:
        plain = Plain(raw)
        stream = io.BufferedReader(plain, BUFFER)
        head = stream.peek(framing.HEAD)
        if frames := framing.sniff(head):
            yield from self._protobuf(frames(stream))
        elif b"\0" in head:
            yield self._error(f"binary data of another kind; {EXPECTED}")
        else:
            yield from self._json(stream)
        if plain.damage:
            yield self._error(plain.damage)

    def _protobuf(self, bodies: Iterator[bytes]) -> Iterator[Record]:
        number = 0
        try:
            for number, body in enumerate(bodies, 1):
                yield self._request(body, number)
        except DecodeError as error:
            yield self._error(f"record {number + 1}: {error.message}")

    def _request(self, body: bytes, number: int) -> Record:
        from otel_eval.decode.otlp import decode_otlp

        try:
            return decode_otlp(b"".join(decompressed(iter([body]))), made_up=self._made_up)
        except DecodeError as error:
            return self._error(f"record {number}: {error.message}")

    def _json(self, stream: BinaryIO) -> Iterator[Record]:
        for document in documents(stream):
            if isinstance(document.found, DecodeError):
                yield self._error(document.found.message, document.line)
                continue
            many = document.found if isinstance(document.found, list) else [document.found]
            yield from (self._document(each, document.line) for each in many)

    def _document(self, document: Json, line: int) -> Record:
        try:
            return _spans(document, self._made_up)
        except DecodeError as error:
            return self._error(error.message, line)

    def _error(self, message: str, line: int | None = None) -> DecodeError:
        return DecodeError(message, source=self._source, line=line)


def _spans(document: Json, made_up: MadeUp) -> list[Span]:
    """Other signals of a mixed file have no spans; an object of another kind is a mistake."""
    if isinstance(document, dict) and document and not document.keys() & _SPANS:
        if document.keys() & _OTHER_SIGNALS:
            return []
        keys = ", ".join(repr(key[:40]) for key in list(document)[:3])
        raise DecodeError(f'an object with {keys}; expected one with "resourceSpans"')
    return decode_document(document, made_up=made_up)
