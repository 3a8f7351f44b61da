"""What an application may put into a span's attributes in spite of their types."""

from collections.abc import Sequence
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan


class _NoText:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class _Word(StrEnum):
    ONE = "one"


class _Number(IntEnum):
    ONE = 1


OBJECTS: Final[Sequence[Any]] = (
    *(
        _NoText(),
        _Word.ONE,
        _Number.ONE,
        2**70,
        -(2**70),
        b"\xff\x00",
        bytearray(b"x"),
        memoryview(b"y"),
    ),
    *(
        "\ud800",
        "a\udfffb",
        {1, 2},
        frozenset("a"),
        (1, (2,)),
        MappingProxyType({"a": 1}),
        {1: {2: 3}},
    ),
    *(float("nan"), float("inf"), 1j, object, None, range(3)),
)


def with_odd_objects(spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    """One in each attribute of each span, in turn."""
    for number, span in enumerate(spans):
        attributes = dict(span.attributes or {})
        for at, key in enumerate(attributes):
            if (at + number) % 3 == 0:
                attributes[key] = OBJECTS[(at + 5 * number) % len(OBJECTS)]
        span._attributes = attributes
    return list(spans)
