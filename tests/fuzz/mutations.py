"""Documents that are almost right: changed in one place or a few, on every level there is.

A document is JSON, and so is much of the text in it: a change may be inside of that too.
"""

from ast import literal_eval
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, TypeAlias

import orjson

from otel_eval.model import Json

Object: TypeAlias = dict[str, Json]

ODD: Final[Sequence[Json]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, -0.0, 1e308),
    *(
        "",
        " ",
        "0",
        "-1",
        "1e999",
        "NaN",
        "-Infinity",
        "null",
        "true",
        "[]",
        "{}",
        "[1, 2",
        '{"a":',
    ),
    *(
        "{'a': None, 'b': (1, 2)}",
        "{'a': [True, 'x",
        '"\\"{}\\""',
        '"text"',
        "ÄÖ 漢字 🙂",
        "\x00",
        "é",
    ),
    *(
        "[" + "9" * 5000,
        '{"a": ' + "9" * 5000 + "}",
        "{'a': b'x', 1: (2,)}",
        "[" * 5000,
        '{"a": NaN}',
    ),
    *("9" * 40, "9" * 5000, "0" * 32, "f" * 32, "0" * 16, "a" * 16, "not hex", "\x1b[31m"),
    *(
        [],
        [None],
        [1, "a", None, {}],
        [[[]]],
        {},
        {"": None},
        {"a": {"b": [1]}},
        {"type": "tool_call"},
    ),
    *(
        {"stringValue": 1},
        {"intValue": "1.5"},
        {"doubleValue": "x"},
        {"kvlistValue": {"values": [None]}},
    ),
    *(
        {"arrayValue": {"values": [{"intValue": "7"}, {}]}},
        {"boolValue": "true"},
        {"bytesValue": "AA=="},
    ),
)
MAX_TEXT: Final = 20_000


class Mutator:
    """`others` are values of other documents, `keys` those that something is known to read."""

    def __init__(self, random: Random, others: Sequence[Json], keys: Sequence[str]) -> None:
        self._random = random
        self._others = others
        self._keys = keys

    def mutated(self, document: Json) -> Json:
        for _ in range(self._random.randint(1, 4)):
            document = self._changed(document)
        return document

    def _changed(self, value: Json) -> Json:
        """Down into it, mostly; the further down, the more there is to meet."""
        if self._random.random() < 0.06:
            return self._another(value)
        match value:
            case dict() if value:
                return self._changed_object(value)
            case list() if value:
                return self._changed_list(value)
            case str():
                return self._changed_text(value)
        return self._another(value)

    def _changed_object(self, value: Object) -> Json:
        key = self._random.choice(list(value))
        rest = {name: each for name, each in value.items() if name != key}
        match self._random.randrange(12):
            case 0:
                return rest
            case 1:
                return {**rest, self._key(): value[key]}
            case 2:
                return {**value, self._key(): self._another(value[key])}
        return {**value, key: self._changed(value[key])}

    def _changed_list(self, value: list[Json]) -> Json:
        at = self._random.randrange(len(value))
        match self._random.randrange(12):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return value[: at + 1] + value[at:]
            case 2:
                return value[at:] + value[:at]
            case 3:
                return [*value[:at], self._another(value[at]), *value[at:]]
        return [*value[:at], self._changed(value[at]), *value[at + 1 :]]

    def _changed_text(self, text: str) -> Json:
        inner = _inner(text)
        if isinstance(inner, dict | list) and inner and self._random.random() < 0.8:
            return self._written(self._changed(inner))
        match self._random.randrange(6):
            case 0:
                return text[: self._random.randrange(len(text) + 1)]
            case 1:
                return self._random.choice(self._keys)
            case 2:
                return self._written(inner if isinstance(inner, dict | list) else text)
            case 3:
                return text.upper() if text.islower() else text.lower()
        return self._another(text)

    def _written(self, value: Json) -> str:
        """As JSON, as Python has it, twice over, or cut off."""
        text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        match self._random.randrange(8):
            case 0:
                return repr(value)
            case 1:
                return orjson.dumps(text).decode()
            case 2:
                return text[: self._random.randrange(len(text) + 1)]
        return text

    def _another(self, value: Json) -> Json:
        match self._random.randrange(8):
            case 0 | 1:
                return self._random.choice(self._others)
            case 2:
                return [value, value]
            case 3:
                return {self._key(): value}
            case 4:
                return self._nested(value)
        return self._random.choice(ODD)

    def _nested(self, value: Json) -> Json:
        """Deeper than anybody means to."""
        depth = self._random.choice((3, 30, 110))
        for _ in range(depth):
            value = [value] if self._random.random() < 0.5 else {"a": value}
        return value

    def _key(self) -> str:
        return self._random.choice(self._keys)


def _inner(text: str) -> Json:
    """The document that a text is, or the text."""
    if not text.startswith(("{", "[", '"')) or len(text) > MAX_TEXT:
        return text
    try:
        return orjson.loads(text)
    except ValueError:
        return _literal(text)


def _literal(text: str) -> Json:
    try:
        found = literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return found if isinstance(found, Mapping | list) else text


def damaged(body: bytes, random: Random) -> bytes:
    """Bytes gone, changed, doubled or cut off; mostly none."""
    match random.randrange(12):
        case 0:
            return body[: random.randrange(len(body) + 1)]
        case 1 | 2:
            return _spliced(body, random, random.randbytes(random.randint(1, 4)))
        case 3:
            at = random.randrange(len(body) + 1)
            return body[:at] + body[at // 2 : at] + body[at:]
        case 4:
            return _spliced(body, random, random.choice(SNAGS))
    return body


SNAGS: Final = (
    *(
        b"\x00",
        b"\xff\xff\xff\xff\x0f",
        b"\xff" * 10,
        b"\x80" * 11,
        b"\x0a\x00",
        b"\x1f\x8b",
        b"\n",
    ),
    *(b"\xed\xa0\x80", b"\\ud800", b'"\\udfff"', b"\xef\xbb\xbf", b"1e400", b"9" * 400, b"{", b"]"),
    *(b'"', b"\r\n", b"\x28\xb5\x2f\xfd", b"[" * 2000, b'{"a":' * 2000),
)


def _spliced(body: bytes, random: Random, piece: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    over = random.choice((0, len(piece)))
    return body[:at] + piece + body[at + over :]
