"""Durations, sizes and addresses, as people write them."""

import re
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from otel_eval.evaluators.matchers import compile_regex
from otel_eval.rule import seconds

MIB: Final = 1024 * 1024

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?b|b)", re.IGNORECASE)
_BYTES: Final = {
    "b": 1,
    "kb": 10**3,
    "kib": 2**10,
    "mb": 10**6,
    "mib": MIB,
    "gb": 10**9,
    "gib": 2**30,
}
_HOST: Final = r"(?:\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+)"
_LISTEN: Final = re.compile(rf"{_HOST}?:(\d{{1,5}})")
_TARGET: Final = re.compile(rf"(?:https?://)?{_HOST}(?::(\d{{1,5}}))?(?:/\S*)?")


def mebibytes(value: object) -> object:
    """`64` is MiB already; `500KB` and `2GiB` are read by their units."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise ValueError("no size; write a number of MiB, or a size like 64MiB or 2GiB")
    return float(found[1]) * _BYTES[found[2].lower()] / MIB


def _duration(value: object) -> object:
    """A number in quotes is a number too: variables in a flow mapping are written in quotes."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return seconds(value)
    return value


def _no_truth(value: object) -> object:
    """True would be read as 1."""
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


def _listens(value: str) -> str:
    found = _LISTEN.fullmatch(value)
    if found is None or int(found[1]) > 65535:
        raise ValueError("no address to listen on; write host:port, such as 127.0.0.1:4317")
    return value


def _reaches(value: str) -> str:
    found = _TARGET.fullmatch(value)
    is_full = "://" in value or (found is not None and found[1] is not None)
    if found is None or not is_full or int(found[1] or 0) > 65535:
        raise ValueError("no endpoint; write it like http://collector:4317")
    return value


def _compiles(value: str) -> str:
    compile_regex(value)
    return value


def _number_or(pattern: str) -> dict[str, Any]:
    number = {"type": "number", "minimum": 0}
    return {"anyOf": [number, {"type": "string", "pattern": pattern}]}


Truthless: Final = BeforeValidator(_no_truth)
DURATION_SCHEMA: Final = _number_or(r"^((\d+(\.\d+)?(ms|s|m|h|d))+|\d+(\.\d+)?|\$\{.*)$")
Duration: TypeAlias = Annotated[
    float,
    BeforeValidator(_duration),
    Truthless,
    Field(ge=0, allow_inf_nan=False),
    WithJsonSchema(DURATION_SCHEMA),
]
"""Seconds, or text such as `500ms`, `15m`, `1h30m`."""
Positive: TypeAlias = Annotated[Duration, Field(gt=0)]
Mib: TypeAlias = Annotated[
    float,
    BeforeValidator(mebibytes),
    Truthless,
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema(_number_or(r"^(\d+(\.\d+)?(\s*([kKmMgG][iI]?)?[bB])?|\$\{.*)$")),
]
"""Mebibytes, or text such as `500KB`, `64MiB`, `2GiB`."""
Count: TypeAlias = Annotated[int, Truthless, Field(ge=1)]
Listen: TypeAlias = Annotated[str, AfterValidator(_listens)]
Target: TypeAlias = Annotated[str, AfterValidator(_reaches)]
Regex: TypeAlias = Annotated[str, AfterValidator(_compiles)]


def to_bytes(mib: float) -> int:
    return int(mib * MIB)


def host_and_port(endpoint: str) -> tuple[str, int]:
    """Of an address to listen on; no host means every interface."""
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]") or "0.0.0.0", int(port)
