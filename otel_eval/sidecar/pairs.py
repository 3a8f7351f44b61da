"""Attributes on the wire: serialized KeyValues, written once for all that have the same."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from otel_eval.model import Json

LONGEST_KEPT: Final = 64
MOST_KEPT: Final = 4096
"""How many attributes are remembered, and up to which length of their keys and values."""
DEEPEST: Final = 24
"""Readers of protobuf refuse messages nested 100 deep; each level here is up to three of them."""


def pairs(attributes: Mapping[str, Json]) -> list[bytes]:
    """All but what is nested too deeply: it would cost the request that it is in."""
    return [
        _kept(key, value) if _is_kept(key, value) else _pair(key, value).SerializeToString()
        for key, value in attributes.items()
        if not isinstance(value, list | dict) or _can_be_read(value, DEEPEST)
    ]


def _is_kept(key: str, value: Json) -> bool:
    if len(key) > LONGEST_KEPT or isinstance(value, list | dict):
        return False
    return not isinstance(value, str) or len(value) <= LONGEST_KEPT


def _can_be_read(value: Json, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_can_be_read(each, levels - 1) for each in inner)


@lru_cache(maxsize=MOST_KEPT, typed=True)
def _kept(key: str, value: str | bool | int | float | None) -> bytes:
    """`typed`: 1, 1.0 and True are equal, and three attributes."""
    return _pair(key, value).SerializeToString()


def _pair(key: str, value: Json) -> KeyValue:
    return KeyValue(key=_text(key), value=_value(value))


def _value(value: Json) -> AnyValue:
    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=map(_value, value)))
        case dict():
            values = [_pair(key, each) for key, each in value.items()]
            return AnyValue(kvlist_value=KeyValueList(values=values))
        case _:
            return AnyValue(string_value=_text(value))


def _text(text: str) -> str:
    """Half a surrogate pair, as literals in an agent's text may hold, is no text for protobuf."""
    return text.encode("utf-8", "replace").decode()
