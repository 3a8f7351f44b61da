"""Bytes from a file or stdin, decompressed as they are read."""

import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from otel_eval.errors import DecodeError

CHUNK: Final = 1 << 16
PIECE: Final = 128  # of compressed data, which may grow ten thousandfold
GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
ZSTD_MISSING: Final = (
    "zstd-compressed, and zstandard is not installed: pip install 'otel-eval[sidecar]'"
)


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The file, or stdin for `-`; whatever the system says against it is a DecodeError."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115  # closed below; only opening may fail here
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise DecodeError(_refusal(error), source=str(path)) from error
    with file:
        yield file


def _refusal(error: OSError | ValueError) -> str:
    match error:
        case FileNotFoundError():
            return "no such file; expected a file of OTLP traces, or - for stdin"
        case IsADirectoryError():
            return "is a directory; expected a file of OTLP traces"
        case PermissionError():
            return "may not be read: permission denied"
        case OSError(strerror=str(reason)):
            return f"cannot be read: {reason}"
        case _:
            return f"cannot be read: {error}"


class Plain(io.RawIOBase):
    """The decompressed bytes. Damage ends the stream early and is kept in `damage`.

    So what came before the damage is read like a file that just ends there.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self.damage: str | None = None
        self._chunks = self._guarded(decompressed(_chunks(raw)))
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        filled = 0
        while filled < len(buffer) and self._has_more():
            size = min(len(buffer) - filled, len(self._rest))
            buffer[filled : filled + size] = self._rest[:size]
            self._rest = self._rest[size:]
            filled += size
        return filled

    def _has_more(self) -> bool:
        while not self._rest and (chunk := next(self._chunks, None)) is not None:
            self._rest = memoryview(chunk)
        return bool(self._rest)

    def _guarded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from chunks
        except DecodeError as error:
            self.damage = error.message
        except OSError as error:
            self.damage = f"cannot be read on: {error.strerror or error}"


def decompressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Chunks of gzip or zstd, told by their first bytes, decompressed; others as they are."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= len(ZSTD_MAGIC):
            break
    whole = _after(head, chunks)
    if head.startswith(GZIP_MAGIC):
        yield from _inflated(whole, "gzip", lambda: zlib.decompressobj(wbits=31))
    elif head.startswith(ZSTD_MAGIC):
        yield from _inflated(whole, "zstd", _zstd())
    else:
        yield from whole


def _chunks(raw: BinaryIO) -> Iterator[bytes]:
    while chunk := raw.read(CHUNK):
        yield chunk


def _after(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from chunks


def _inflated(chunks: Iterator[bytes], form: str, decoder: Callable[[], Any]) -> Iterator[bytes]:
    """Both formats are sequences of members; each member takes a decoder of its own."""
    member = decoder()
    try:
        for piece in _pieces(chunks):
            rest = piece
            while rest:
                if member.eof:
                    member = decoder()
                yield member.decompress(rest)
                rest = member.unused_data if member.eof else b""
    except Exception as error:  # zstandard is optional, so its error type cannot be named here
        raise DecodeError(f"the {form} data is damaged: {error}") from error
    if not member.eof:
        raise DecodeError(f"the {form} data is cut off; what came before was read")


def _pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield from (chunk[start : start + PIECE] for start in range(0, len(chunk), PIECE))


def _zstd() -> Callable[[], Any]:
    try:
        import zstandard
    except ImportError as error:
        raise DecodeError(ZSTD_MISSING) from error
    return lambda: zstandard.ZstdDecompressor().decompressobj()
