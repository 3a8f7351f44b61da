"""Frozen records, made quickly."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from types import new_class
from typing import Any, ParamSpec, TypeVar

from otel_eval.native import RECORDS

P = ParamSpec("P")
T = TypeVar("T")


def quick(record: Callable[P, T]) -> Callable[P, T]:
    """The constructor of a frozen, slotted dataclass, but several times as fast as its own.

    For records that are made several times per trace; fields with a default factory must be given.
    """
    if RECORDS is None:
        return drafted(record)
    given = _fields(record)
    names = tuple(each.name for each in given)
    defaults = tuple(each.default for each in given)
    try:
        made: Callable[P, T] = RECORDS.Maker(record, names, defaults, MISSING)
    except TypeError:
        # An interpreter that lays classes out in another way.
        return drafted(record)
    return made


def drafted(record: Callable[P, T]) -> Callable[P, T]:
    """The same in Python.

    A frozen class sets its fields in ten times the time that a plain class takes. So the fields are
    set on a draft, an object of a plain class with the same slots, which then changes its class.
    """
    given = _fields(record)
    known = {f"default_{each.name}": each.default for each in given}
    parameters = [
        each.name if each.default is MISSING else f"{each.name}=default_{each.name}"
        for each in given
    ]
    lines = [
        f"def make(*, {', '.join(parameters)}):",
        "draft = Draft()",
        *(f"draft.{each.name} = {each.name}" for each in given),
        "draft.__class__ = record",
        "return draft",
    ]
    slots = {"__slots__": [each.name for each in given]}
    # The bases too must be the same, for the one to become the other.
    draft = new_class(
        "Draft", getattr(record, "__orig_bases__", ()), None, lambda body: body.update(slots)
    )
    scope: dict[str, Any] = {"Draft": draft, "record": record, **known}
    exec("\n    ".join(lines), scope)
    made: Callable[P, T] = scope["make"]
    return made


def _fields(record: Callable[..., object]) -> tuple[Field[Any], ...]:
    return fields(record)  # type: ignore[arg-type]  # a dataclass
