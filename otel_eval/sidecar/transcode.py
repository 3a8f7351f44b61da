"""OTLP/JSON as protobuf: for targets that speak gRPC, and to change a span that came as JSON."""

from base64 import b64encode, urlsafe_b64decode
from typing import Final

from google.protobuf.json_format import ParseDict, ParseError

from otel_eval.decode.otlp_json import RESOURCE_SPANS, SCOPE_SPANS, load
from otel_eval.errors import DecodeError
from otel_eval.model import Json
from otel_eval.sidecar.signals import TRACES, Signal

_IDS: Final = frozenset(
    {"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"}
)
_BYTES: Final = frozenset({"bytesValue", "bytes_value"})
_KINDS: Final = _BYTES | {
    f"{kind}{end}"
    for kind in ("string", "int", "bool", "double", "array", "kvlist")
    for end in ("Value", "_value")
}


def to_protobuf(signal: Signal, body: bytes) -> bytes:
    """The same request in protobuf; what OTLP does not know is left out, as its JSON rules say."""
    document = load(body)
    if not isinstance(document, dict):
        raise DecodeError(f"no object where an OTLP/JSON {signal.name} request was expected")
    message = signal.request()
    try:
        ParseDict(_mended(_request(signal, document)), message, ignore_unknown_fields=True)
    # The parser trips over wrong shapes in several ways of its own.
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"no OTLP/JSON {signal.name} request ({error})") from error
    return message.SerializeToString()


def _request(signal: Signal, document: dict[str, Json]) -> dict[str, Json]:
    """One resourceSpans object may stand for the request that would hold it alone."""
    is_bare = document.keys() & SCOPE_SPANS and not document.keys() & RESOURCE_SPANS
    return {"resourceSpans": [document]} if signal is TRACES and is_bare else document


def _mended(value: Json) -> Json:
    """As protobuf's JSON has it, and without what its parser trips over but our decoder does not.

    Otherwise it would hang on the forward target whether a request is taken.
    """
    if isinstance(value, list):
        return [{} if each is None else _mended(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _field(key, each) for key, each in _of_one_kind(value).items()}


def _field(key: str, value: Json) -> Json:
    if key in _IDS and isinstance(value, str):
        return _base64(value)
    if key in _BYTES and isinstance(value, str):
        return _valid_base64(value)
    return _mended(value)


def _of_one_kind(value: dict[str, Json]) -> dict[str, Json]:
    """Of an attribute's value with several types, the first counts."""
    if len(value) < 2:
        return value
    kinds = [key for key in value if key in _KINDS and value[key] is not None]
    return {key: each for key, each in value.items() if key not in kinds[1:]}


def _base64(hex_id: str) -> str:
    """OTLP writes ids in hex; one that is none is written as missing."""
    try:
        return b64encode(bytes.fromhex(hex_id)).decode()
    except ValueError:
        return ""


def _valid_base64(text: str) -> str:
    try:
        urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return ""
    return text
