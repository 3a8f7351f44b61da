"""Attributes that are worked out when they are first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  # used like `property`
    """`functools.cached_property` without the lock of Python 3.11, which takes a microsecond.

    For objects of one thread that are made for every trace.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, owner: object | None, _class: type) -> T:
        if owner is None:
            return self  # type: ignore[return-value]  # asked of the class, by documentation tools
        made = owner.__dict__[self._name] = self._make(owner)
        return made
