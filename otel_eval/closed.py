"""What is told of a group that closed, and what is remembered of it."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from otel_eval.drafts import quick
from otel_eval.model import ClosedBy

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Generic[K, T]):
    """A group, or a further part of one, that takes no more items."""

    key: K
    items: Sequence[T]
    by: ClosedBy
    part: int
    whole: bool
    late: bool
    """A further part without a root of its own: what is in it belongs to a part already scored."""
    after: ClosedBy | None
    """What closed the part before this one."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is remembered of a closed group; `ids` are sorted hashes."""

    parts: int
    by: ClosedBy
    whole: bool
    ids: Sequence[int]

    def holds(self, item_id: str) -> bool:
        wanted = hash(item_id)
        at = bisect_left(self.ids, wanted)
        return at < len(self.ids) and self.ids[at] == wanted


make_closed = quick(Closed)
make_past = quick(Past)
