"""The compiled decoder gives what Python gives, or nothing; and of what is usual, always that."""

import os
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from otel_eval.decode.compiled import Decode, decode_natively
from otel_eval.decode.otlp import decode_in_python
from otel_eval.model import NO_SCOPE, UNSET, Event, Link, Scope, Span, Status
from otel_eval.native import NATIVE
from otel_eval.sidecar.signals import TRACES
from otel_eval.sidecar.transcode import to_protobuf as from_json
from tests.decode.encoders import to_protobuf, with_length
from tests.decode.strategies import spans
from tests.decode.wires import change, parsed, written

law = settings(deadline=None, max_examples=150)
CAPTURES = sorted((Path(__file__).parent.parent / "captures").glob("*.otlp.jsonl"))
TRACE, SPAN, PARENT = b"0123456789abcdef", b"span-one", b"span-two"
bodies = st.lists(spans(), min_size=1, max_size=3).map(to_protobuf)


def absent() -> None:
    reason = "otel_eval was installed without its compiled part"
    if os.environ.get("OTEL_EVAL_CI") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def native() -> Decode:
    if decode_natively is None:
        absent()
    assert decode_natively is not None
    return decode_natively


def assert_same(found: list[Span], body: bytes) -> None:
    """With the types and the order of everything: 1 is neither True nor 1.0, and NaN is NaN."""
    assert repr(found) == repr(decode_in_python(body))


def assert_same_or_none(native: Decode, body: bytes) -> None:
    found = native(body)
    if found is not None:
        assert_same(found, body)


@law
@given(bodies)
def test_what_writers_write_is_decoded_as_in_python(native: Decode, body: bytes) -> None:
    found = native(body)

    assert found is not None
    assert_same(found, body)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.split(".")[0])
def test_captures_are_decoded_as_in_python(native: Decode, path: Path) -> None:
    for line in path.read_bytes().splitlines():
        body = from_json(TRACES, line)

        found = native(body)

        assert found is not None
        assert_same(found, body)


def message(**fields: Any) -> ExportTraceServiceRequest:
    made = ExportTraceServiceRequest()
    scoped = made.resource_spans.add().scope_spans.add()
    scoped.spans.add(**{"trace_id": TRACE, "span_id": SPAN, **fields})
    return made


def full() -> ExportTraceServiceRequest:
    """A request with every field that OTLP has."""
    value = AnyValue(
        array_value=ArrayValue(
            values=[
                AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="é", value=AnyValue())])),
                AnyValue(double_value=float("nan")),
                AnyValue(double_value=-0.0),
                AnyValue(int_value=-1),
                AnyValue(bool_value=True),
                AnyValue(bytes_value=b"\0\xff"),
            ]
        )
    )
    pairs = [KeyValue(key="list", value=value), KeyValue(key="none"), KeyValue()]
    made = message(
        parent_span_id=PARENT,
        trace_state="a=b",
        flags=0x301,
        name="näme",
        kind=3,
        start_time_unix_nano=2**64 - 1,
        end_time_unix_nano=1,
        attributes=[*pairs, KeyValue(key="list", value=AnyValue(string_value="x" * 100))],
        dropped_attributes_count=1,
        events=[{"name": "e", "time_unix_nano": 2, "attributes": pairs}],
        dropped_events_count=1,
        links=[{"trace_id": TRACE, "span_id": PARENT, "trace_state": "é", "attributes": pairs}],
        dropped_links_count=1,
        status={"code": 2, "message": "no"},
    )
    group = made.resource_spans[0]
    group.resource.attributes.extend(pairs)
    group.resource.dropped_attributes_count = 1
    group.schema_url = "https://resource"
    scoped = group.scope_spans[0]
    scoped.scope.name, scoped.scope.version, scoped.schema_url = "lib", "1", "https://scope"
    scoped.scope.attributes.extend(pairs)
    return made


def test_every_field_is_read(native: Decode) -> None:
    body = full().SerializeToString()

    found = native(body)

    assert found is not None
    assert_same(found, body)


def test_a_request_that_ends_too_soon_is_declined_wherever_it_ends(native: Decode) -> None:
    body = full().SerializeToString()

    assert [size for size in range(len(body)) if native(body[:size]) is not None] == [0]


@law
@given(bodies, st.randoms(use_true_random=False))
def test_odd_requests_are_declined_or_decoded_as_in_python(
    native: Decode, body: bytes, random: Random
) -> None:
    fields = parsed(body + full().SerializeToString())
    for _ in range(random.randint(1, 4)):
        change(fields, random)

    assert_same_or_none(native, written(fields, random, padded=random.choice((0, 0, 0.05))))


@law
@given(bodies, st.data())
def test_damaged_requests_are_declined_or_decoded_as_in_python(
    native: Decode, body: bytes, data: st.DataObject
) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(body))] * 2)))
    piece = data.draw(st.binary(max_size=6) | st.sampled_from([body[start:end] * 2, b"\xff" * 10]))
    end = data.draw(st.sampled_from([start, start + len(piece), end]))

    assert_same_or_none(native, body[:start] + piece + body[end:])


def deep(levels: int) -> list[KeyValue]:
    value = AnyValue(int_value=1)
    for _ in range(levels):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    return [KeyValue(key="deep", value=value)]


def in_span(raw: bytes) -> bytes:
    """A request whose span has this after its ids."""
    span = b"\x0a\x10" + TRACE + b"\x12\x08" + SPAN + raw
    for tag in (b"\x12", b"\x12", b"\x0a"):
        span = tag + with_length(span)
    return span


def in_value(raw: bytes) -> bytes:
    """A request with an attribute that has this for its value."""
    pair = b"\x0a\x01k\x12" + with_length(raw)
    return in_span(b"\x4a" + with_length(pair))


DECLINED = {
    "text": b"hello",
    "a group": in_span(b"\xa3\x01\xa4\x01"),
    "a field without a number": in_span(b"\x02\x00"),
    "no UTF-8 in a name": in_span(b"\x2a\x01\xff"),
    "no UTF-8 in what is not read": in_span(b"\x1a\x01\xff"),
    "half of a surrogate pair": in_span(b"\x2a\x03\xed\xa0\x80"),
    "values in values in values": message(attributes=deep(33)).SerializeToString(),
    "two names": in_span(b"\x2a\x01a\x2a\x01b"),
    "two statuses": in_span(b"\x7a\x02\x18\x01\x7a\x02\x18\x02"),
    "two values": in_value(b"\x0a\x01a\x18\x01"),
    "a value of an unknown kind": in_value(b"\x40\x01"),
    "a truth beyond 1": in_value(b"\x10\x02"),
    "a kind below 0": message(kind=-1).SerializeToString(),
    "no trace id": message(trace_id=b"").SerializeToString(),
    "a zero span id": message(span_id=bytes(8)).SerializeToString(),
    "a link without ids": message(links=[{}]).SerializeToString(),
    "a scope behind its spans": b"\x0a\x08\x12\x06\x12\x00\x0a\x02\x0a\x00",
    "two resources": b"\x0a\x04\x0a\x00\x0a\x00",
    "entities of a resource": b"\x0a\x04\x0a\x02\x1a\x00",
}


@pytest.mark.parametrize("body", DECLINED.values(), ids=DECLINED.keys())
def test_what_is_broken_or_unusual_is_left_to_python(native: Decode, body: bytes) -> None:
    assert native(body) is None


@pytest.mark.parametrize("body", [bytearray(), "", None], ids=repr)
def test_what_is_no_bytes_is_left_to_python(native: Any, body: object) -> None:
    assert native(body) is None


UNUSUAL = {
    "an unknown field": in_span(b"\xf8\x7f\x01\xf9\x7f12345678\xfa\x7f\x01\xff\xfd\x7f1234"),
    "a known field of another type": in_span(b"\x28\x01\x32\x01\xff"),
    "a later kind": message(kind=99).SerializeToString(),
    "a later status": message(status={"code": 77}).SerializeToString(),
    "an invalid parent": message(parent_span_id=b"1234", flags=0x300).SerializeToString(),
    "a zero parent": message(parent_span_id=bytes(8), flags=0x300).SerializeToString(),
    "many values in values": message(attributes=deep(32)).SerializeToString(),
    "an empty value": in_value(b""),
    "a resource behind its spans": b"\x0a"
    + with_length(message().SerializeToString()[2:] + b"\x0a\0"),
}


@pytest.mark.parametrize("body", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_what_is_unusual_and_clear_is_decoded_as_in_python(native: Decode, body: bytes) -> None:
    found = native(body)

    assert found is not None
    assert_same(found, body)


def pair(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def one(native: Decode, **fields: Any) -> Span:
    found = native(message(**fields).SerializeToString())
    assert found is not None
    return found[0]


@pytest.mark.parametrize("text", ["short", "größe", "漢字"])
def test_names_keys_and_short_texts_are_shared_between_requests(native: Decode, text: str) -> None:
    fields = {"name": text, "attributes": [pair(text + ".key", text)]}

    first, second = one(native, **fields), one(native, **fields)

    (key, value), (other_key, other_value) = *first.attributes.items(), *second.attributes.items()
    assert key is other_key
    assert value is other_value
    assert first.name is second.name


def test_spans_share_ids_with_their_children(native: Decode) -> None:
    child, parent = one(native, parent_span_id=PARENT), one(native, span_id=PARENT)

    assert child.parent_id is parent.span_id
    assert child.trace_id is parent.trace_id


def test_what_is_not_there_is_the_same_for_all(native: Decode) -> None:
    found = one(native)

    assert found.status is UNSET
    assert found.scope is NO_SCOPE
    assert (found.events, found.links) == ((), ())


def test_texts_beyond_those_that_are_kept_are_read_as_well(native: Decode) -> None:
    many = {f"key.{number}": f"value {number}" for number in range(20_000)}

    for _ in range(2):
        found = one(native, attributes=[pair(key, value) for key, value in many.items()])

        assert found.attributes == many


def test_nothing_is_left_behind(native: Decode) -> None:
    whole = full().SerializeToString()
    tried = [*(whole[:size] for size in range(len(whole) + 1)), *DECLINED.values()]
    for body in tried:
        native(body)

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        for body in tried:
            native(body)
    left = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert left < 10 * len(tried)


GIVEN = {
    "span": Span,
    "event": Event,
    "link": Link,
    "status": Status,
    "scope": Scope,
    "unset": UNSET,
    "no_scope": NO_SCOPE,
    "kinds": ("",),
    "status_codes": ("",),
    "remote": (None,) * 4,
    "base64": bytes.hex,
}


@dataclass(frozen=True, slots=True)
class MoreThanStatus:
    code: str
    message: str
    more: str


@pytest.mark.parametrize("other", [Span, int, MoreThanStatus], ids=lambda each: each.__name__)
@pytest.mark.usefixtures("native")
def test_classes_with_other_slots_are_refused(other: type) -> None:
    assert NATIVE.Decoder(**GIVEN).decode(b"") == []

    with pytest.raises(TypeError, match=f"{other.__name__} has other slots than expected"):
        NATIVE.Decoder(**{**GIVEN, "status": other})


ASKING = "from otel_eval.native import NATIVE; print(NATIVE)"


@pytest.mark.usefixtures("native")
def test_it_is_left_alone_where_the_environment_says_so() -> None:
    command = [sys.executable, "-c", ASKING]

    asked = subprocess.run(
        command, env={**os.environ, "OTEL_EVAL_PURE": "1"}, capture_output=True, check=True
    )

    assert asked.stdout.strip() == b"None"


def test_that_of_another_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "_otel_eval_native.py").write_text("VERSION = 0\n")
    asking = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {ASKING}"

    asked = subprocess.run([sys.executable, "-c", asking], capture_output=True, check=True)

    assert asked.stdout.strip() == b"None"
