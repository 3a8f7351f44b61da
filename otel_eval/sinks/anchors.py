"""The anchor of an evaluation as OpenTelemetry's API knows spans."""

from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    set_span_in_context,
)

from otel_eval.model import Anchor

SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def has_real_ids(anchor: Anchor) -> bool:
    """Whether the anchor is a span that others can find: decode writes made-up ids with a `#`."""
    trace_id, span_id = anchor.trace_id, anchor.span_id
    return len(trace_id) == 32 and len(span_id) == 16 and "#" not in (trace_id[0], span_id[0])


def raw_ids(anchor: Anchor) -> tuple[bytes, bytes] | None:
    """Trace id and span id as OTLP has them; None where decode had to make them up."""
    if not has_real_ids(anchor):
        return None
    return bytes.fromhex(anchor.trace_id), bytes.fromhex(anchor.span_id)


def span_context(anchor: Anchor) -> SpanContext | None:
    """The anchor's identity; None where decode had to make up its ids."""
    trace_id, span_id = _number(anchor.trace_id), _number(anchor.span_id)
    found = SpanContext(trace_id, span_id, is_remote=False, trace_flags=SAMPLED)
    return found if found.is_valid else None


def context(anchor: Anchor) -> Context:
    """A context in which the anchor is the current span.

    Never an empty context: the API would take that for "none given" and use the caller's own span.
    """
    identity = span_context(anchor)
    span = INVALID_SPAN if identity is None else NonRecordingSpan(identity)
    return set_span_in_context(span, Context())


def _number(hex_id: str) -> int:
    """The id as OpenTelemetry's API has it; 0, which is never valid, for what is no hex."""
    try:
        return int(hex_id, 16)
    except ValueError:
        return 0
