"""What a target took without wanting all of it."""

from typing import Any

from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import DecodeError

from otel_eval.sidecar.signals import Form, Signal


def rejected_items(signal: Signal, answer: bytes, form: Form) -> int:
    """How many spans, records or points the answer says were rejected; an answer of nonsense, 0."""
    response: Any = signal.response()
    try:
        if form == "protobuf":
            response.ParseFromString(answer)
        elif answer:
            Parse(answer, response, ignore_unknown_fields=True)
    except (DecodeError, ParseError, UnicodeDecodeError):
        return 0
    partial = response.partial_success
    counts = [value for field, value in partial.ListFields() if field.name.startswith("rejected_")]
    return int(sum(counts))
