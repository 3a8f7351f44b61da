"""The seam between receivers and what is behind them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from otel_eval.model import Event, Span
from otel_eval.sidecar.answers import Refusal
from otel_eval.sidecar.signals import Form, Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a log record says about one span: the messages that went in and out of a model."""

    trace_id: str
    span_id: str
    event: Event
    size: int = 0
    """In bytes, near enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request, as it came and as it was understood."""

    signal: Signal
    body: bytes
    form: Form = "protobuf"
    spans: Sequence[Span] = ()
    contents: Sequence[Content] = ()


class Intake(Protocol):
    """Takes what arrives, or refuses it. Its methods run in the event loop, and are quick."""

    def refusal(self, signal: Signal, size: int) -> Refusal | None:
        """Why a request of that size would be refused; asked before it is decoded."""
        ...

    async def take(self, arrival: Arrival) -> Refusal | None:
        """None: taken, and acknowledged to the sender. Where there is a journal, it is in it."""
        ...

    def wants_protobuf(self) -> bool:
        """Whether what arrives as JSON must be turned into protobuf."""
        ...
