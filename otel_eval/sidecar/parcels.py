"""What is forwarded, and what became of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from otel_eval.sidecar.signals import Form, Signal

MOST_TOGETHER: Final = 1 << 20
"""How many bytes are put together in one request. Targets may refuse more than 4 MiB."""

Loss: TypeAlias = Literal["queue_full", "rejected", "expired", "shutdown", "damaged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One request on its way out."""

    signal: Signal
    body: bytes
    form: Form = "protobuf"
    spans: int = 0
    """How many received spans are in it; none in what we made ourselves."""
    origins: tuple[tuple[int, int], ...] = ()
    """The requests of the journal that it is made of, and how much of each is in it."""
    stored: bool = False
    """Whether the journal has the same body, as that of its one origin."""

    @property
    def size(self) -> int:
        """What it takes in memory."""
        return len(self.body)

    @property
    def is_on_disk(self) -> bool:
        return self.stored and not self.body

    def left_on_disk(self) -> "Parcel":
        return replace(self, body=b"")


def origins(id: int | None, spans: int) -> tuple[tuple[int, int], ...]:
    """All of one request, or that many of its spans; a request without spans is one unit."""
    return () if id is None else ((id, max(spans, 1)),)


def together(parcels: Iterable[Parcel]) -> Iterator[list[Parcel]]:
    """Lists of parcels that are small enough to be one; a large one is alone."""
    batch: list[Parcel] = []
    size = 0
    for parcel in parcels:
        size += parcel.size
        if batch and size > MOST_TOGETHER:
            yield batch
            batch, size = [], parcel.size
        batch.append(parcel)
    if batch:
        yield batch


def joined(parcels: Sequence[Parcel]) -> Parcel:
    """One request with all that is in these, of one signal and in protobuf, where messages that
    are joined are one message."""
    units: Counter[int] = Counter()
    for parcel in parcels:
        units.update(dict(parcel.origins))
    return Parcel(
        signal=parcels[0].signal,
        body=b"".join(parcel.body for parcel in parcels),
        spans=sum(parcel.spans for parcel in parcels),
        origins=tuple(units.items()),
    )


Put: TypeAlias = Callable[[Parcel], None]
"""Takes a parcel, and never waits."""


@dataclass(frozen=True, slots=True)
class Delivered:
    rejected: int = 0
    """How many items the target took note of but did not want."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Not now. `after` is what the target asked for, in seconds."""

    reason: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Never: sending it again would not help."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The target has no place for this signal."""

    reason: str


Reply: TypeAlias = Delivered | Retry | Rejected | Unknown
