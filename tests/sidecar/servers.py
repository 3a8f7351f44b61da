"""Real servers on port 0: receivers whose intake only remembers, which also serve as targets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette

from otel_eval.model import Span
from otel_eval.settings import Admin, Otlp
from otel_eval.sidecar.answers import Refusal
from otel_eval.sidecar.doors import Doors
from otel_eval.sidecar.intake import Arrival
from otel_eval.sidecar.ports import Ports
from otel_eval.sidecar.signals import Signal
from otel_eval.sidecar.tokens import Tokens
from tests.sidecar.loops import LoopThread, loop_thread

ANY_PORT = {"endpoint": "127.0.0.1:0"}


@dataclass
class Recorder:
    """An intake that takes everything, or does as it is told."""

    arrivals: list[Arrival] = field(default_factory=list)
    refuse: Callable[[Signal], Refusal | None] = lambda _signal: None
    protobuf: bool = False
    taking: Callable[[], None] = lambda: None

    def refusal(self, signal: Signal, _size: int) -> Refusal | None:
        return self.refuse(signal)

    async def take(self, arrival: Arrival) -> Refusal | None:
        self.taking()
        self.arrivals.append(arrival)
        return None

    def wants_protobuf(self) -> bool:
        return self.protobuf

    @property
    def spans(self) -> list[Span]:
        return [span for arrival in self.arrivals for span in arrival.spans]

    def reset(self) -> None:
        vars(self).update(vars(Recorder()))

    def of(self, signal: Signal) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival.signal is signal]


@dataclass
class Receiving:
    recorder: Recorder
    ports: Ports
    loop: LoopThread
    tokens: Tokens


@contextmanager
def receiving(
    *,
    http: dict[str, Any] | None = None,
    grpc: dict[str, Any] | None = None,
    tokens: Tokens | None = None,
    recorder: Recorder | None = None,
) -> Iterator[Receiving]:
    settings = Otlp.model_validate(
        {"http": {**ANY_PORT, **(http or {})}, "grpc": {**ANY_PORT, **(grpc or {})}}
    )
    recorder, tokens = recorder or Recorder(), tokens or Tokens()
    with loop_thread() as loop:
        doors = loop.call(
            lambda: Doors(
                settings,
                Admin.model_validate(ANY_PORT),
                intake=recorder,
                tokens=tokens,
                pages=Starlette(),
            )
        )
        loop.run(doors.open())
        try:
            yield Receiving(recorder, doors.ports, loop, tokens)
        finally:
            loop.run(doors.close())
