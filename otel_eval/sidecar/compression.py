"""Bodies that may be compressed, in pieces, and never larger than a limit when unpacked."""

import gzip
import zlib
from collections.abc import Callable
from typing import Final, Protocol

import zstandard

from otel_eval.errors import DecodeError

PIECE: Final = 1024 * 1024
"""How much is unpacked at a time: what a bomb gets hold of before the limit stops it."""


class TooLargeError(Exception):
    """More bytes than the limit, counted after decompression."""


class Unpacker(Protocol):
    """Takes a body piece by piece; gives it whole, or raises DecodeError or TooLargeError."""

    size: int
    """How much it has unpacked."""

    def add(self, piece: bytes) -> None: ...

    def finish(self) -> bytes: ...


class _Collector:
    """A body as it is."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._limit:
            self._pieces.clear()
            raise TooLargeError
        self._pieces.append(piece)

    def finish(self) -> bytes:
        return b"".join(self._pieces)


class _Zlib(_Collector):
    """gzip (of any number of members) and deflate, with zlib's header or, as some send it, bare."""

    def __init__(self, limit: int, wbits: int) -> None:
        super().__init__(limit)
        self._wbits = wbits
        self._stream = zlib.decompressobj(wbits)
        self._started = False

    def add(self, piece: bytes) -> None:
        try:
            self._unpack(piece)
        except zlib.error as error:
            if self._started or self._wbits != zlib.MAX_WBITS:
                raise DecodeError(f"broken compressed body ({error})") from error
            self._wbits = -zlib.MAX_WBITS
            self._stream = zlib.decompressobj(self._wbits)
            self.add(piece)

    def _unpack(self, piece: bytes) -> None:
        while piece:
            if self._stream.eof:
                self._stream = zlib.decompressobj(self._wbits)
            super().add(self._stream.decompress(piece, PIECE))
            self._started = True
            piece = self._stream.unconsumed_tail or self._stream.unused_data

    def finish(self) -> bytes:
        if not self._stream.eof:
            raise DecodeError("broken compressed body (it ends too early)")
        return super().finish()


class _Zstd(_Collector):
    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._new = zstandard.ZstdDecompressor(max_window_size=8 * PIECE).decompressobj
        self._stream = self._new()

    def add(self, piece: bytes) -> None:
        """In small pieces, for zstandard has no bound on what comes out of one."""
        for start in range(0, len(piece), 1024):
            self._unpack(piece[start : start + 1024])

    def _unpack(self, piece: bytes) -> None:
        try:
            while piece:
                if self._stream.eof:
                    self._stream = self._new()
                super().add(self._stream.decompress(piece))
                piece = self._stream.unused_data
        except zstandard.ZstdError as error:
            raise DecodeError(f"broken compressed body ({error})") from error

    def finish(self) -> bytes:
        if not self._stream.eof:
            raise DecodeError("broken compressed body (it ends too early)")
        return super().finish()


_UNPACKERS: Final[dict[str, Callable[[int], Unpacker]]] = {
    "": _Collector,
    "identity": _Collector,
    "none": _Collector,
    "gzip": lambda limit: _Zlib(limit, 16 + zlib.MAX_WBITS),
    "x-gzip": lambda limit: _Zlib(limit, 16 + zlib.MAX_WBITS),
    "deflate": lambda limit: _Zlib(limit, zlib.MAX_WBITS),
    "zstd": _Zstd,
}

_PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": lambda body: gzip.compress(body, compresslevel=1, mtime=0),
    "deflate": lambda body: zlib.compress(body, 1),
    "zstd": lambda body: zstandard.ZstdCompressor(level=1).compress(body),
}


def coding_of(body: bytes) -> str:
    """By its first bytes, which no OTLP request in protobuf begins with."""
    if body.startswith(b"\x1f\x8b"):
        return "gzip"
    is_zlib = body.startswith(b"\x78") and int.from_bytes(body[:2]) % 31 == 0
    return "deflate" if is_zlib else ""


def unpacker(coding: str, limit: int) -> Unpacker | None:
    """None for a content coding that is not known."""
    make = _UNPACKERS.get(coding.strip().lower())
    return make(limit) if make else None


def pack(body: bytes, coding: str) -> bytes:
    return _PACKERS[coding](body) if coding in _PACKERS else body
