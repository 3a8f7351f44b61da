"""JSON documents from text: one per line, or printed over many lines, or both mixed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from otel_eval.decode.framing import BOM
from otel_eval.decode.otlp_json import load
from otel_eval.errors import DecodeError
from otel_eval.model import Json

MAX_DOCUMENT: Final = 1 << 30
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NEW_REQUEST: Final = re.compile(rb'\{\s*"resource_?(?:spans|logs|metrics|profiles)"', re.I)


@dataclass(frozen=True, slots=True)
class Document:
    """What was found at a line: JSON, or the reason why there is none."""

    line: int
    found: Json | DecodeError


def documents(stream: BinaryIO) -> Iterator[Document]:
    """Every document; a broken one costs no other."""
    open_lines = _OpenDocument()
    for number, line in enumerate(_lines(stream), 1):
        if open_lines and not open_lines.broken_by(line):
            open_lines.add(line)
        else:
            yield from open_lines.give_up()
            if (alone := _alone(line, number)) is not None:
                yield alone
                continue
            open_lines.begin(line, number)
        yield from open_lines.finished()
    yield from open_lines.give_up()


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    line = stream.readline(MAX_DOCUMENT).removeprefix(BOM)
    while line:
        yield line
        line = stream.readline(MAX_DOCUMENT)


def _alone(line: bytes, number: int) -> Document | None:
    """The document of a line that holds one; None for a line that is blank or begins one."""
    try:
        return Document(number, load(line))
    except DecodeError as error:
        return None if not line.strip() or _begins_document(line) else Document(number, error)


def _begins_document(line: bytes) -> bool:
    return line.lstrip().startswith((b"{", b"[")) and (_opened(line) or 0) > 0


def _opened(line: bytes) -> int | None:
    """How many brackets stay open; None where a text does, which JSON never breaks over lines."""
    bare = _STRINGS.sub(b"", line)
    if b'"' in bare:
        return None
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")


class _OpenDocument:
    """The lines of a document printed over many, until its brackets are closed."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lines: list[bytes] = []
        self._first = 0
        self._depth = 0
        self._size = 0
        self._broken = False

    def __bool__(self) -> bool:
        return bool(self._lines)

    def begin(self, line: bytes, number: int) -> None:
        if line.strip():
            self._first = number
            self.add(line)

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        opened = _opened(line)
        self._broken = self._broken or opened is None
        self._depth += opened or 0
        self._size += len(line)

    def broken_by(self, line: bytes) -> bool:
        """No request holds another, so one that begins here means that this one was cut off."""
        in_list = self._lines[0].lstrip().startswith(b"[")
        if self._broken and line.rstrip() == b"{":
            return True
        return not in_list and _NEW_REQUEST.match(line) is not None

    def finished(self) -> Iterator[Document]:
        if self._lines and (self._closed() or self._size > MAX_DOCUMENT):
            yield from self.give_up()

    def _closed(self) -> bool:
        return self._depth <= 0 and not self._broken

    def give_up(self) -> Iterator[Document]:
        """What the lines so far make, whether closed or cut off."""
        if not self._lines:
            return
        text, first = b"".join(self._lines), self._first
        self._reset()
        try:
            yield Document(first, load(text))
        except DecodeError as error:
            yield Document(first, error)
