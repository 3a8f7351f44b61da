"""Log records that carry the messages of a model call, brought together with the call's span.

Instrumentations may write prompts and answers as log records instead of span attributes. Such a
record becomes an event of its span, whichever of the two arrives first. Extraction happens when the
trace closes; until then the span that was fed shares its list of events with `Contents`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1 import trace_pb2

from otel_eval.decode.otlp import decode_protobuf
from otel_eval.model import Event, Span
from otel_eval.sidecar.intake import Content

EVENT: Final = "gen_ai.client.inference.operation.details"
MAX_SPANS: Final = 100_000
MAX_WAITING: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024
"""For the content of all open spans together: the engine weighs spans as they were fed to it."""
WAITS_SECONDS: Final = 300.0

Key: TypeAlias = tuple[str, str]


def contents_of(request: ExportLogsServiceRequest) -> list[Content]:
    """Read by way of spans that have nothing but an event, so that values are decoded alike."""
    carrier = trace_pb2.TracesData()
    spans = carrier.resource_spans.add().scope_spans.add().spans
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            spans.extend(_as_span(each) for each in scope.log_records if _is_content(each))
    decoded = decode_protobuf(carrier.SerializeToString())
    return [
        Content(
            trace_id=span.trace_id,
            span_id=span.span_id,
            event=span.events[0],
            size=message.ByteSize(),
        )
        for span, message in zip(decoded, spans, strict=True)
    ]


def _is_content(record: LogRecord) -> bool:
    if len(record.trace_id) != 16 or len(record.span_id) != 8:
        return False
    return record.event_name == EVENT or any(
        pair.key == "event.name" and pair.value.string_value == EVENT for pair in record.attributes
    )


def _as_span(record: LogRecord) -> trace_pb2.Span:
    """Some put the messages into the body, some into the attributes."""
    pairs = [*record.body.kvlist_value.values, *record.attributes]
    event = trace_pb2.Span.Event(name=EVENT, time_unix_nano=record.time_unix_nano, attributes=pairs)
    return trace_pb2.Span(trace_id=record.trace_id, span_id=record.span_id, events=[event])


@dataclass(slots=True)
class _Entry:
    since: float
    events: list[Event] = field(default_factory=list)
    size: int = 0


class Contents:
    """Spans that may still get content, and content whose span has not come yet."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spans: OrderedDict[Key, _Entry] = OrderedDict()
        self._waiting: OrderedDict[Key, _Entry] = OrderedDict()
        self._bytes = 0
        self.unmatched = 0

    def add(self, contents: Iterable[Content]) -> None:
        now = self._clock()
        self._forget(now)
        for content in contents:
            self._add(content, now)

    def attached(self, spans: Sequence[Span]) -> list[Span]:
        """The same spans; model calls with the content that is known, and open for what comes."""
        return [self._attached(span) if _may_have_content(span) else span for span in spans]

    def left(self, trace_id: str, span_ids: Iterable[str]) -> None:
        """These spans were scored: what comes for them now comes too late."""
        for span_id in span_ids:
            if entry := self._spans.pop((trace_id, span_id), None):
                self._bytes -= entry.size

    def _add(self, content: Content, now: float) -> None:
        key = (content.trace_id, content.span_id)
        entry = self._spans.get(key) or self._waiting.get(key)
        full = entry is None and len(self._waiting) >= MAX_WAITING
        if full or self._bytes + content.size > MAX_BYTES:
            self.unmatched += 1
            return
        if entry is None:
            entry = self._waiting[key] = _Entry(now)
        entry.events.append(content.event)
        entry.size += content.size
        self._bytes += content.size

    def _attached(self, span: Span) -> Span:
        key = (span.trace_id, span.span_id)
        entry = self._waiting.pop(key, None) or _Entry(self._clock())
        entry.events = [*span.events, *entry.events]
        self._spans[key] = entry
        if len(self._spans) > MAX_SPANS:
            self._bytes -= self._spans.popitem(last=False)[1].size
        return replace(span, events=entry.events)

    def _forget(self, now: float) -> None:
        while self._waiting:
            key, entry = next(iter(self._waiting.items()))
            if now - entry.since < WAITS_SECONDS:
                return
            del self._waiting[key]
            self._bytes -= entry.size
            self.unmatched += len(entry.events)


def _may_have_content(span: Span) -> bool:
    return "gen_ai.operation.name" in span.attributes or "gen_ai.request.model" in span.attributes
