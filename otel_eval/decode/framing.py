"""How OTLP protobuf requests follow each other in a file, told by the first bytes."""

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, TypeAlias

from otel_eval.decode.streams import GZIP_MAGIC, ZSTD_MAGIC
from otel_eval.errors import DecodeError

Frames: TypeAlias = Callable[[BinaryIO], Iterator[bytes]]

HEAD: Final = 64
MAX_RECORD: Final = 1 << 30
BOM: Final = b"\xef\xbb\xbf"

_TEXT: Final = b"\t\n\r" + bytes(range(0x20, 0x100))
_RESOURCE_SPANS: Final = b"\x0a"  # the tag of a request's one field
_IN_RESOURCE_SPANS: Final = (b"\x0a", b"\x12", b"\x1a")  # resource, scope_spans, schema_url
_MAX_VARINT: Final = 10


def sniff(head: bytes) -> Frames | None:
    """Which framing these first bytes begin; None where they begin no protobuf."""
    if _is_text(head):
        return None
    if _begins_request(head, MAX_RECORD):
        return bare
    if _begins_delimited(head):
        return delimited
    if _begins_prefixed(head):
        return prefixed
    return None


def bare(stream: BinaryIO) -> Iterator[bytes]:
    """One request, a resource at a time: each is a request of its own and none has to wait."""
    while tag := stream.read(1):
        if tag != _RESOURCE_SPANS:
            raise DecodeError(f"a field with the tag {tag.hex()}; expected resource_spans, tag 0a")
        coded = _coded_length(stream, stream.read(1))
        yield tag + coded + _exactly(stream, _varint(coded)[0])


def delimited(stream: BinaryIO) -> Iterator[bytes]:
    """Each request has its length before it as a varint."""
    while first := stream.read(1):
        yield _exactly(stream, _varint(_coded_length(stream, first))[0])


def prefixed(stream: BinaryIO) -> Iterator[bytes]:
    """Each request has its length before it in four bytes: the Collector's file exporter."""
    while prefix := stream.read(4):
        if len(prefix) < 4:
            raise DecodeError("breaks off within a length; expected four bytes")
        yield _exactly(stream, int.from_bytes(prefix, "big"))


def _coded_length(stream: BinaryIO, coded: bytes) -> bytes:
    """The whole varint that begins with this byte."""
    while coded and coded[-1] & 0x80 and len(coded) < _MAX_VARINT and (more := stream.read(1)):
        coded += more
    if not coded or coded[-1] & 0x80:
        raise DecodeError("breaks off within a length; expected a varint")
    return coded


def _exactly(stream: BinaryIO, size: int) -> bytes:
    if size > MAX_RECORD:
        raise DecodeError(f"a length of {size} bytes; expected at most {MAX_RECORD}")
    body = stream.read(size)
    if len(body) < size:
        raise DecodeError(f"breaks off after {len(body)} of {size} bytes")
    return body


def _is_text(head: bytes) -> bool:
    """Whether JSON begins here. A length may read as a brace too, but control bytes follow then."""
    text = head[:HEAD].removeprefix(BOM)
    return text.lstrip()[:1] in (b"{", b"[") and not text.translate(None, _TEXT)


def _begins_delimited(head: bytes) -> bool:
    size, used = _varint(head)
    return used > 0 and _begins_request(head[used:], size)


def _begins_prefixed(head: bytes) -> bool:
    size, body = int.from_bytes(head[:4], "big"), head[4:]
    if head[:4] == bytes(4):
        return True
    # The Collector compresses each request by itself, and may write JSON between lengths.
    return _begins_request(body, size) or (
        head[:1] == b"\0" and body.startswith((ZSTD_MAGIC, GZIP_MAGIC, b"{"))
    )


def _begins_request(body: bytes, size: int) -> bool:
    """Whether a request of this size may begin so: with a field that fits and has known fields."""
    if not body.startswith(_RESOURCE_SPANS) or size > MAX_RECORD:
        return False
    length, used = _varint(body[1:])
    fits = used > 0 and 1 + used + length <= size
    return fits and (length == 0 or body[1 + used : 2 + used] in _IN_RESOURCE_SPANS)


def _varint(coded: bytes) -> tuple[int, int]:
    """The number these bytes begin with and how many bytes it takes; none where it breaks off."""
    number = 0
    for position, byte in enumerate(coded[:_MAX_VARINT]):
        number |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return number, position + 1
    return 0, 0
