"""What OTLP/protobuf alone can carry; what both encodings share is in test_laws."""

from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from otel_eval.decode import decode_protobuf, decode_spans
from otel_eval.decode.otlp import MOST_KEPT
from otel_eval.decode.wire import TracesData
from otel_eval.errors import DecodeError
from otel_eval.model import NO_SCOPE, UNSET, Span
from tests.conftest import SPAN_ID, TRACE_ID
from tests.decode.encoders import with_length

TRACE, SPAN = bytes.fromhex(TRACE_ID), bytes.fromhex(SPAN_ID)


def request(*spans: dict[str, Any]) -> bytes:
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.add(key="service.name", value=AnyValue(string_value="shop"))
    scoped = group.scope_spans.add()
    for fields in spans:
        scoped.spans.add(**{"trace_id": TRACE, "span_id": SPAN, **fields})
    return made.SerializeToString()


def decode_one(**fields: Any) -> Span:
    (found,) = decode_protobuf(request(fields))
    return found


def test_an_empty_request_has_no_spans() -> None:
    assert decode_protobuf(b"") == []


def test_a_bare_span_has_the_zero_values() -> None:
    found = decode_one()

    assert found == Span(
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        kind="unspecified",
        resource={"service.name": "shop"},
    )
    assert found.scope is NO_SCOPE
    assert found.status is UNSET


def test_spans_are_frozen_like_any_other() -> None:
    with pytest.raises(AttributeError):
        decode_one().name = "other"  # type: ignore[misc]  # that it is refused is the point


def test_what_spans_have_in_common_is_shared() -> None:
    first, second = decode_protobuf(request({}, {"span_id": b"12345678"}))

    assert first.resource is second.resource
    assert first.scope is second.scope
    assert first.trace_id is second.trace_id


@pytest.mark.parametrize(
    ("flags", "remote"),
    [(0, None), (1, None), (0x100, False), (0x101, False), (0x200, None), (0x300, True)],
    ids=str,
)
def test_flags_say_whether_the_parent_is_remote(flags: int, remote: bool | None) -> None:
    assert decode_one(parent_span_id=b"12345678", flags=flags).parent_remote is remote
    assert decode_one(flags=flags).parent_remote is None


@pytest.mark.parametrize("parent", [b"", bytes(8), b"1234", b"123456789"], ids=repr)
def test_an_invalid_parent_is_none(parent: bytes) -> None:
    found = decode_one(parent_span_id=parent, flags=0x300)

    assert (found.parent_id, found.parent_remote) == (None, None)


@pytest.mark.parametrize("trace_id", [b"", bytes(16), b"short"], ids=repr)
def test_spans_without_a_valid_trace_id_are_one_trace(trace_id: bytes) -> None:
    first, second, third = decode_protobuf(request(*[{"trace_id": trace_id}] * 2, {}))

    assert first.trace_id == second.trace_id
    assert first.trace_id.startswith("#")
    assert (first.span_id, second.span_id) == (SPAN_ID, "#000001")
    assert third.trace_id == TRACE_ID


def test_spans_without_a_valid_span_id_are_no_duplicates() -> None:
    zero = request({"span_id": bytes(8)}, {"span_id": bytes(8)})

    found = decode_protobuf(zero) + decode_protobuf(zero)

    assert {each.trace_id for each in found} == {TRACE_ID}
    assert len({each.span_id for each in found}) == 4
    assert all(each.span_id.startswith("#") for each in found)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (AnyValue(), None),
        (AnyValue(string_value=""), ""),
        (AnyValue(int_value=0), 0),
        (AnyValue(bool_value=False), False),
        (AnyValue(double_value=0.0), 0.0),
        (AnyValue(double_value=float("-inf")), float("-inf")),
        (AnyValue(bytes_value=b"\x00\xff"), "AP8="),
        (AnyValue(bytes_value=b""), ""),
        (AnyValue(array_value=ArrayValue()), []),
        (AnyValue(kvlist_value=KeyValueList()), {}),
    ],
    ids=str,
)
def test_every_kind_of_value_is_read_also_when_it_is_zero(value: AnyValue, found: object) -> None:
    decoded = decode_one(attributes=[KeyValue(key="v", value=value)]).attributes["v"]

    assert decoded == found
    assert type(decoded) is type(found)


def test_numbers_of_a_later_version_mean_unset() -> None:
    found = decode_one(kind=99, status={"code": 77})

    assert (found.kind, found.status) == ("unspecified", UNSET)


def deep(levels: int) -> bytes:
    """A request whose resource has lists in lists; the library refuses to build one."""
    value = b""
    for _ in range(levels):
        value = b"\x2a" + with_length(b"\x0a" + with_length(value))
    attribute = b"\x0a" + with_length(b"\x12" + with_length(value))
    return b"\x0a" + with_length(b"\x0a" + with_length(attribute))


@pytest.mark.parametrize(
    "body",
    [
        b"hello",
        b"\x0a\xff",
        request({"name": "half"})[:-3],
        request({"name": "Gr\u00fc\u00dfe"}).replace("\u00fc".encode(), b"\xff\xff"),
        deep(60),
    ],
    ids=["text", "broken length", "cut off", "no UTF-8", "deep"],
)
def test_what_is_no_request_is_a_decode_error_that_says_what_was_expected(body: bytes) -> None:
    with pytest.raises(DecodeError, match="expected an ExportTraceServiceRequest"):
        decode_protobuf(body)


def test_unknown_fields_are_ignored() -> None:
    unknown = b"\xfa\x01\x03abc"

    assert len(decode_protobuf(request({}) + unknown)) == 1


@pytest.mark.parametrize("brace", [b"{", b"["])
def test_a_length_that_reads_as_a_brace_is_no_json(brace: bytes) -> None:
    bodies = [request({"name": "x" * size}) for size in range(1, 100)]
    (body,) = [each for each in bodies if each.startswith(b"\n" + brace)]

    assert decode_spans(body) == decode_protobuf(body)


def attribute(key: str, **value: Any) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(**value))


def test_an_attribute_that_comes_again_is_read_once() -> None:
    pairs = [attribute("tool.name", string_value="get_" + "weather")]

    first, second = decode_one(attributes=pairs), decode_one(attributes=pairs)

    assert first.attributes["tool.name"] is second.attributes["tool.name"]
    assert first.attributes is not second.attributes


def test_values_that_could_be_changed_are_not_shared() -> None:
    pairs = [attribute("list", array_value=ArrayValue(values=[AnyValue(int_value=1)]))]

    first, second = decode_one(attributes=pairs), decode_one(attributes=pairs)
    first.attributes["list"].append(2)

    assert second.attributes["list"] == [1]


def test_more_attributes_than_are_remembered_are_all_read() -> None:
    many = {f"key.{number}": number for number in range(2 * MOST_KEPT)}

    found = decode_one(attributes=[attribute(key, int_value=each) for key, each in many.items()])

    assert found.attributes == many
    assert list(found.attributes) == list(many)


def test_an_attribute_that_is_no_protobuf_is_refused() -> None:
    name = attribute("tool.name", string_value="search").SerializeToString()
    body = request({"attributes": [attribute("tool.name", string_value="search")]})

    with pytest.raises(DecodeError, match="expected an ExportTraceServiceRequest"):
        decode_protobuf(body.replace(name, name[:-6] + b"s\xffarch"))


@pytest.mark.parametrize("key_length", [1, 44, 60, 127, 128, 200])
def test_texts_of_every_length_are_read_when_their_key_comes_again(key_length: int) -> None:
    lengths = [*range(300), 16_383, 16_384]
    for letter in ("x", "y", "é"):
        pairs = [attribute("k" * key_length, string_value=letter * each) for each in lengths]
        spans = decode_protobuf(request(*({"attributes": [pair]} for pair in pairs)))

        found = [text for span in spans for text in span.attributes.values()]

        assert found == [letter * each for each in lengths]


def raw_attribute(raw: bytes) -> bytes:
    """A request whose only span has this for its only attribute."""
    span = {"trace_id": TRACE, "span_id": SPAN, "attributes": [raw]}
    made = TracesData(resource_spans=[{"scope_spans": [{"spans": [span]}]}])
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("behind", "found"),
    [
        pytest.param(attribute("other"), "other", id="another key"),
        pytest.param(KeyValue(value=AnyValue(string_value="no")), "input.value", id="no key"),
    ],
)
def test_what_follows_a_text_counts_where_the_text_was_seen_before(
    behind: KeyValue, found: str
) -> None:
    long = attribute("input.value", string_value="x" * 50).SerializeToString()
    decode_protobuf(raw_attribute(long))

    raw = long + behind.SerializeToString()
    (span,) = decode_protobuf(raw_attribute(raw))

    pair = KeyValue.FromString(raw)
    assert span.attributes == {found: pair.value.string_value}


def test_a_text_that_is_no_utf8_is_refused_where_its_key_was_seen_before() -> None:
    long = attribute("input.value", string_value="x" * 50).SerializeToString()
    decode_protobuf(raw_attribute(long))

    with pytest.raises(DecodeError, match="expected an ExportTraceServiceRequest"):
        decode_protobuf(raw_attribute(long[:-1] + b"\xff"))
