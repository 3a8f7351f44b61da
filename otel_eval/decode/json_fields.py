"""Typed access to the fields of OTLP/JSON objects.

A field that is absent or null has its type's zero value, as in protobuf. One of the wrong type is
a DecodeError that names the field and the types, not the value: values may be confidential.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from otel_eval.errors import DecodeError
from otel_eval.model import Json

_NOTHING: Final[dict[str, Any]] = {}
_INT64: Final = range(-(2**63), 2**63)
_UINT64: Final = range(2**64)


def what(found: Json) -> str:
    """The type of a JSON value, in words."""
    match found:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"


def text(owner: Mapping[str, Any], key: str, other: str = "") -> str:
    found = _get(owner, key, other)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise DecodeError(f"{key}: {what(found)} where text was expected")
    return found


def objects(owner: Mapping[str, Any], key: str, other: str = "") -> list[dict[str, Any]]:
    """A list of objects; null in the list stands for an empty one."""
    found = _get(owner, key, other)
    if found is None:
        return []
    if not isinstance(found, list):
        raise DecodeError(f"{key}: {what(found)} where a list was expected")
    return [each if isinstance(each, dict) else _empty(each, key) for each in found]


def one_object(owner: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = owner.get(key)
    return found if isinstance(found, dict) else _empty(found, key)


def time(owner: Mapping[str, Any], key: str, other: str) -> int:
    """Nanoseconds since 1970."""
    found = _get(owner, key, other)
    return 0 if found is None else integer(found, key, _UINT64)


def integer(found: Json, key: str, allowed: range = _INT64) -> int:
    """A 64-bit integer, written as a number or as text."""
    number = _whole(found)
    if number is None:
        raise DecodeError(f"{key}: {what(found)} where an integer was expected")
    if number not in allowed:
        raise DecodeError(f"{key}: an integer that does not fit into 64 bits")
    return number


def double(found: Json, key: str) -> float:
    """A number, or text such as "NaN" and "-Infinity"."""
    if isinstance(found, int | float | str) and not isinstance(found, bool):
        try:
            return float(found)
        except (ValueError, OverflowError):  # a number of hundreds of digits
            pass
    raise DecodeError(f"{key}: {what(found)} where a number was expected")


def _whole(found: Json) -> int | None:
    if type(found) is int:
        return found
    if isinstance(found, float):
        return int(found) if isfinite(found) and found.is_integer() else None
    if not isinstance(found, str):
        return None
    try:
        return int(found)
    except ValueError:  # also more digits than Python converts
        return None


def _get(owner: Mapping[str, Any], key: str, other: str) -> Json:
    found = owner.get(key)
    return owner.get(other) if found is None and other else found


def _empty(found: Json, key: str) -> dict[str, Any]:
    if found is not None:
        raise DecodeError(f"{key}: {what(found)} where an object was expected")
    return _NOTHING
