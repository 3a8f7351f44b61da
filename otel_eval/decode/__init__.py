"""Spans from wherever they come: OTLP in protobuf or JSON, the SDK, files.

OTLP is imported when it is first needed: inside an agent's process it never is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from otel_eval.decode.sdk import SdkReader, decode_sdk
from otel_eval.decode.terms import MadeUp
from otel_eval.errors import DecodeError
from otel_eval.model import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["decode_json", "decode_protobuf", "decode_sdk", "decode_spans"]


def decode_protobuf(body: bytes) -> list[Span]:
    """The spans of an ExportTraceServiceRequest or, the same on the wire, a TracesData."""
    from otel_eval.decode import otlp

    return otlp.decode_protobuf(body)


def decode_json(body: bytes | str) -> list[Span]:
    """The spans of an OTLP/JSON trace request, of TracesData or of one resourceSpans object."""
    from otel_eval.decode import otlp_json

    return otlp_json.decode_json(body)


def decode_spans(
    spans: bytes | str | Iterable[ReadableSpan | Span | bytes | str],
) -> list[Span]:
    """A mix of ReadableSpans, Spans and OTLP requests as one list, in the order given.

    Spans without valid ids are one trace, wherever in the mix they are.
    """
    items = [spans] if isinstance(spans, bytes | bytearray | memoryview | str) else spans
    made_up = MadeUp()
    sdk = SdkReader(made_up)
    decoded: list[Span] = []
    for item in items:
        decoded += _decode(item, sdk, made_up)
    return decoded


def _decode(item: Any, sdk: SdkReader, made_up: MadeUp) -> list[Span]:
    if isinstance(item, Span):
        return [item]
    if isinstance(item, str):
        return _decode_otlp(item.encode(errors="surrogatepass"), made_up)
    if isinstance(item, bytes | bytearray | memoryview):
        return _decode_otlp(bytes(item), made_up)
    if hasattr(item, "get_span_context") and hasattr(item, "instrumentation_scope"):
        return [sdk.read(item)]
    raise DecodeError(
        f"a {type(item).__name__} among the spans; expected ReadableSpans, Spans or OTLP bytes"
    )


def _decode_otlp(body: bytes, made_up: MadeUp) -> list[Span]:
    from otel_eval.decode.otlp import decode_otlp

    return decode_otlp(body, made_up=made_up)
