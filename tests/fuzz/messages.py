"""OTLP messages made from nothing but their definition, and ones that are almost right."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

TEXTS: Final = (
    "",
    "x",
    "execute_tool search",
    "gen_ai.tool.name",
    "tool",
    "ÄÖ 漢字 🙂",
    "{",
    "null",
)
SIZES: Final = (0, 1, 8, 16, 17)
MAX_DEPTH: Final = 9
MAX_REPEATED: Final = 3

_INTS: Final[dict[int, tuple[int, int]]] = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_OTHERS: Final[dict[int, Callable[[Random], Any]]] = {
    FieldDescriptor.CPPTYPE_BOOL: lambda random: random.random() < 0.5,
    FieldDescriptor.CPPTYPE_DOUBLE: lambda random: random.choice(DOUBLES),
    FieldDescriptor.CPPTYPE_FLOAT: lambda random: random.choice((0.0, 1.5)),
    FieldDescriptor.CPPTYPE_ENUM: lambda random: random.choice((0, 1, 2, 3, 5, 99)),
}
DOUBLES: Final = (0.0, -1.5, 1e308, float("inf"), float("nan"))


def fill(message: Message, random: Random, depth: int = 0) -> None:
    """Each of its fields, or not; a union's last one stays."""
    for field in message.DESCRIPTOR.fields:
        if random.random() < 0.7:
            change(message, field, random, depth)


def change(message: Message, field: FieldDescriptor, random: Random, depth: int = 0) -> None:
    """Something else in this field."""
    name = field.name
    is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
    if is_message and depth >= MAX_DEPTH:
        return
    if not field.is_repeated:
        if is_message:
            fill(getattr(message, name), random, depth + 1)
        else:
            setattr(message, name, _scalar(field, random))
        return
    for _ in range(random.randint(1, MAX_REPEATED)):
        if is_message:
            fill(getattr(message, name).add(), random, depth + 1)
        else:
            getattr(message, name).append(_scalar(field, random))


def mutate(message: Message, random: Random) -> None:
    """One field, wherever in it."""
    inside = _inside(message)
    if inside and random.random() < 0.85:
        mutate(random.choice(inside), random)
        return
    field = random.choice(message.DESCRIPTOR.fields)
    if random.random() < 0.3:
        message.ClearField(field.name)
    else:
        change(message, field, random, MAX_DEPTH - 2)


def _inside(message: Message) -> Sequence[Message]:
    found: list[Message] = []
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            found += value if field.is_repeated else [value]
    return found


def _scalar(field: FieldDescriptor, random: Random) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return random.randbytes(random.choice(SIZES))
    if field.type == FieldDescriptor.TYPE_STRING:
        return random.choice(TEXTS)
    if bounds := _INTS.get(field.cpp_type):
        return (
            random.choice((*bounds, 0, 1, 0x300))
            if bounds[0] == 0
            else random.choice((*bounds, 0, 7))
        )
    return _OTHERS[field.cpp_type](random)
