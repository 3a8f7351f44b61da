"""Models that do not change, and remember what follows from them."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel


class Frozen(BaseModel, frozen=True):
    """What its cached properties worked out is true of itself only: a copy works it out anew."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied
