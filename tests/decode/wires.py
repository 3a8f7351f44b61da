"""Requests taken apart into their fields, and put together again in ways that no writer would."""

from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

VARINT, FIXED64, BYTES, GROUP, FIXED32 = 0, 1, 2, 3, 5


@dataclass(slots=True)
class Field:
    number: int
    type: int
    value: "int | bytes | Message"


Message: TypeAlias = list[Field]

_WIDTHS: Final = {FIXED64: 8, FIXED32: 4}
_ODD: Final[tuple[tuple[int, int | bytes], ...]] = (
    *((VARINT, number) for number in (0, 1, 2, 5, 6, 127, 2**31 - 1, 2**31, 2**32 + 1, 2**64 - 1)),
    *((FIXED32, number) for number in (0, 0x100, 0x200, 0x300, 2**32 - 1)),
    *((FIXED64, number) for number in (0, 0x7FF8 << 48, 2**64 - 1)),
    *((BYTES, raw) for raw in (b"", b"x", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\0" * 8)),
    *((BYTES, raw) for raw in (b"\x0a\x00", b"\x10\x01", b"\0" * 16, b"12345678", b"x" * 60)),
    (GROUP, b""),
)


def parsed(body: bytes, of: Descriptor = TracesData.DESCRIPTOR) -> Message:
    """The fields of a request as its writer wrote it."""
    fields, at = [], 0
    while at < len(body):
        tag, at = _read_varint(body, at)
        field = Field(tag >> 3, tag & 7, 0)
        if field.type == VARINT:
            field.value, at = _read_varint(body, at)
        elif field.type == BYTES:
            size, at = _read_varint(body, at)
            raw, at = body[at : at + size], at + size
            held = of.fields_by_number[field.number].message_type
            field.value = raw if held is None else parsed(raw, held)
        else:
            width = _WIDTHS[field.type]
            field.value, at = int.from_bytes(body[at : at + width], "little"), at + width
        fields.append(field)
    return fields


def written(message: Message, random: Random, padded: float = 0.0) -> bytes:
    """As bytes; a share of the varints is longer than it need be."""

    def varint(number: int) -> bytes:
        coded = bytearray()
        while number > 0x7F:
            coded.append(number & 0x7F | 0x80)
            number >>= 7
        coded.append(number)
        if random.random() < padded:
            coded[-1] |= 0x80
            coded += b"\x80" * random.randrange(10 - min(len(coded), 9)) + b"\0"
        return bytes(coded)

    parts = []
    for field in message:
        parts.append(varint(field.number << 3 | field.type))
        if isinstance(field.value, int):
            width = _WIDTHS.get(field.type)
            raw = field.value.to_bytes(width, "little") if width else varint(field.value)
            parts.append(raw)
            continue
        raw = written(field.value, random, padded) if isinstance(field.value, list) else field.value
        parts += [varint(len(raw)), raw] if field.type == BYTES else [raw]
    return b"".join(parts)


def change(message: Message, random: Random) -> None:
    """One thing in it, on any level: fields gone, doubled, moved, renumbered or made up."""
    inner = [field.value for field in message if isinstance(field.value, list)]
    if inner and random.random() < 0.8:
        change(random.choice(inner), random)
        return
    at = random.randrange(len(message)) if message else 0
    match random.randrange(6) if message else 5:
        case 0:
            del message[at]
        case 1:
            message.insert(random.randrange(len(message) + 1), message[at])
        case 2:
            random.shuffle(message)
        case 3:
            message[at] = Field(random.randrange(18), message[at].type, message[at].value)
        case 4:
            type_, value = random.choice(_ODD)
            message[at] = Field(message[at].number, type_, value)
        case _:
            type_, value = random.choice(_ODD)
            message.insert(at, Field(random.choice((*range(18), 2**29 - 1)), type_, value))


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte, at = body[at], at + 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
