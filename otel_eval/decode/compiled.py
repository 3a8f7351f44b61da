"""The compiled decoder of OTLP/protobuf, `native.c`, told what the model looks like."""

from base64 import b64encode
from collections.abc import Callable
from typing import Final

from otel_eval.decode.terms import KINDS, REMOTE, STATUS_CODES
from otel_eval.model import NO_SCOPE, UNSET, Event, Link, Scope, Span, Status
from otel_eval.native import NATIVE

Decode = Callable[[bytes], list[Span] | None]


def _decoder() -> Decode | None:
    if NATIVE is None:
        return None
    try:
        decoder = NATIVE.Decoder(
            span=Span,
            event=Event,
            link=Link,
            status=Status,
            scope=Scope,
            unset=UNSET,
            no_scope=NO_SCOPE,
            kinds=tuple(KINDS[number] for number in range(len(KINDS))),
            status_codes=tuple(STATUS_CODES[number] for number in range(len(STATUS_CODES))),
            remote=tuple(REMOTE[bits << 8] for bits in range(4)),
            base64=_base64,
        )
    except TypeError:
        # An interpreter that lays classes out in another way.
        return None
    decode: Decode = decoder.decode
    return decode


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()


decode_natively: Final = _decoder()
"""The spans of a request, or None where it had better be read in Python: what is no request, or an
unusual one. The whole is None where there is no compiled decoder."""
