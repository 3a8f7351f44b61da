"""Spans that wait for their scores: `attach` mode.

Only spans that an evaluation may be about are held. They leave when their trace is scored, or when
they have waited too long; then the scores go out as spans of their own. What leaves is the bytes
that came, with events added: links, trace state, flags and unknown fields are still in them.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from google.protobuf.message import Message
from opentelemetry.proto.trace.v1 import trace_pb2

from otel_eval.decode.wire import with_bytes
from otel_eval.engine import ClosedTrace
from otel_eval.model import Evaluation, Span
from otel_eval.sidecar.forward import Forwarder
from otel_eval.sidecar.own_requests import with_event
from otel_eval.sidecar.parcels import Parcel, Put, joined, origins, together
from otel_eval.sidecar.signals import TRACES
from otel_eval.sinks import event
from otel_eval.sinks.event import ResultEvent

RECORD_BYTES: Final = 300
"""What is kept about a held span beside the span."""

Copied = TypeVar("Copied", bound=Message)

_traces: Final = with_bytes(
    trace_pb2.DESCRIPTOR, package="otel_eval.attach", fields={"ScopeSpans.spans"}
)
_TracesData: Final = _traces("TracesData")
_ResourceSpans: Final = _traces("ResourceSpans")


@dataclass(eq=False, slots=True)
class _Held:
    """A span alone, with its resource and its scope, as bytes: a message takes many times more."""

    span_id: str
    wire: bytes
    until: float
    origin: int | None
    """The request of the journal that it came in."""
    events: list[bytes] = field(default_factory=list)
    """As spans with nothing else."""
    gone: bool = False

    @property
    def size(self) -> int:
        return len(self.wire) + RECORD_BYTES

    def message(self) -> Any:
        """A ResourceSpans: what is joined to the bytes of a message is added to the message."""
        message = _ResourceSpans.FromString(self.wire)
        message.scope_spans[0].spans[0] += b"".join(self.events)
        return message


class Holder:
    """Lives in the event loop; what it holds counts as queued."""

    def __init__(
        self,
        forwarder: Forwarder,
        form: ResultEvent,
        *,
        max_hold: float,
        may_anchor: Callable[[Span], bool],
    ) -> None:
        self._forwarder = forwarder
        self._form = form
        self._max_hold = max_hold
        self._may_anchor = may_anchor
        self._traces: dict[str, list[_Held]] = {}
        self._order: deque[tuple[str, _Held]] = deque()
        self._leaving: list[Parcel] = []
        """Of this turn of the event loop: many traces are scored at a time, and one request has
        room for all of their anchors."""

    def take(
        self, body: bytes, spans: Sequence[Span], now: float, origin: int | None = None
    ) -> None:
        """Hold what may be an anchor and send on the rest; without anchors, the body as it is."""
        anchors = [self._may_anchor(span) for span in spans]
        if not any(anchors):
            self._forwarder.put(
                Parcel(
                    signal=TRACES,
                    body=body,
                    spans=len(spans),
                    origins=origins(origin, len(spans)),
                    stored=origin is not None,
                )
            )
            return
        data = _TracesData.FromString(body)
        decoded = iter(zip(spans, anchors, strict=True))
        for group in data.resource_spans:
            around = _without(group, "scope_spans")
            for scoped in group.scope_spans:
                self._hold_from(around, scoped, decoded, now, origin)
        if rest := anchors.count(False):
            body, left = data.SerializeToString(), origins(origin, rest)
            self._forwarder.put(Parcel(signal=TRACES, body=body, spans=rest, origins=left))

    def release(self, closed: ClosedTrace, put: Put | None = None) -> list[Evaluation]:
        """The trace was scored: what is held of it leaves with its events, by way of `put`.

        Answers with the evaluations that do not, because their anchor is not, or no longer, here.
        """
        wanted = set(closed.span_ids)
        mine = [each for each in self._traces.get(closed.trace_id, ()) if each.span_id in wanted]
        held = {each.span_id: each for each in mine}
        unattached: list[Evaluation] = []
        for evaluation in filter(event.is_told, closed.evaluations):
            anchor = held.get(evaluation.anchor.span_id)
            if anchor is None:
                unattached.append(evaluation)
            else:
                anchor.events.append(with_event(evaluation, self._form))
        self._send(closed.trace_id, mine, put)
        return unattached

    def due(self, now: float) -> None:
        """Let go of what has waited long enough."""
        while self._order and (self._order[0][1].gone or self._order[0][1].until <= now):
            trace_id, held = self._order.popleft()
            if not held.gone:
                self._send(trace_id, [held])

    def drain(self) -> None:
        for trace_id, held in list(self._traces.items()):
            self._send(trace_id, held)
        self._leave()

    def _hold_from(
        self,
        around: Any,
        scoped: Any,
        decoded: Iterator[tuple[Span, bool]],
        now: float,
        origin: int | None,
    ) -> None:
        marked = [(raw, *next(decoded)) for raw in scoped.spans]
        if not any(anchor for _, _, anchor in marked):
            return
        scope = _without(scoped, "spans")
        for raw, span, anchor in marked:
            if anchor:
                self._hold(span, _alone(around, scope, raw), now, origin)
        scoped.spans[:] = [raw for raw, _, anchor in marked if not anchor]

    def _hold(self, span: Span, wire: bytes, now: float, origin: int | None) -> None:
        held = _Held(span.span_id, wire, now + self._max_hold, origin)
        self._traces.setdefault(span.trace_id, []).append(held)
        self._order.append((span.trace_id, held))
        self._forwarder.hold(size=held.size, spans=1)

    def _send(self, trace_id: str, leaving: Sequence[_Held], put: Put | None = None) -> None:
        if not leaving:
            return
        for each in leaving:
            each.gone = True
            self._forwarder.hold(size=-each.size, spans=-1)
        staying = [each for each in self._traces.pop(trace_id) if not each.gone]
        if staying:
            self._traces[trace_id] = staying
        data = _TracesData(resource_spans=[each.message() for each in leaving])
        for each in leaving:
            each.wire = b""  # those before it in the order may keep it there for a while
        body, came_in = data.SerializeToString(), Counter(each.origin for each in leaving)
        (put or self._leave_soon)(
            Parcel(
                signal=TRACES,
                body=body,
                spans=len(leaving),
                origins=tuple((id, spans) for id, spans in came_in.items() if id is not None),
            )
        )

    def _leave_soon(self, parcel: Parcel) -> None:
        self._forwarder.hold(size=parcel.size, spans=parcel.spans)
        if not self._leaving:
            asyncio.get_running_loop().call_soon(self._leave)
        self._leaving.append(parcel)

    def _leave(self) -> None:
        leaving, self._leaving = self._leaving, []
        for parcels in together(leaving):
            parcel = joined(parcels)
            self._forwarder.hold(size=-parcel.size, spans=-parcel.spans)
            self._forwarder.put(parcel)


def _alone(around: Any, scope: Any, span: bytes) -> bytes:
    """The span with all that is around it, and without the others that are."""
    message = _copy(around)
    scoped = message.scope_spans.add()
    scoped.CopyFrom(scope)
    scoped.spans.append(span)
    written: bytes = message.SerializeToString()
    return written


def _without(message: Copied, field: str) -> Copied:
    """A copy, because only that has what a later version of OTLP put there."""
    copied = _copy(message)
    copied.ClearField(field)
    return copied


def _copy(message: Copied) -> Copied:
    copied = type(message)()
    copied.CopyFrom(message)
    return copied
