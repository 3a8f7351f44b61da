"""What holds for every input: nothing is lost, and nothing but a DecodeError is raised."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_eval.decode import decode_json, decode_protobuf, decode_sdk, decode_spans
from otel_eval.decode.files import read
from otel_eval.decode.otlp import decode_otlp
from otel_eval.errors import DecodeError
from otel_eval.model import Span
from tests.decode.encoders import to_json, to_protobuf, to_sdk
from tests.decode.strategies import sdk_spans, spans

law = settings(deadline=None, max_examples=60)
CAPTURES = sorted((Path(__file__).parent.parent / "captures").glob("*.otlp.jsonl"))
KEYS = [
    *("resourceSpans", "resource", "scopeSpans", "scope", "spans", "attributes", "key", "value"),
    *("traceId", "spanId", "parentSpanId", "flags", "name", "kind", "status", "code", "events"),
    *("links", "startTimeUnixNano", "stringValue", "intValue", "doubleValue", "arrayValue"),
    *("kvlistValue", "values"),
]
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


def assert_harmless(decode: Callable[[bytes], list[Span]], body: bytes) -> None:
    with suppress(DecodeError):
        assert all(isinstance(each, Span) for each in decode(body))


@law
@given(st.lists(spans(), max_size=3))
def test_protobuf_comes_back_as_it_went(given_spans: list[Span]) -> None:
    assert decode_protobuf(to_protobuf(given_spans)) == given_spans


@law
@given(st.lists(spans(), max_size=3))
def test_json_comes_back_as_it_went(given_spans: list[Span]) -> None:
    assert decode_json(to_json(given_spans)) == given_spans


@law
@given(sdk_spans())
def test_sdk_spans_come_back_as_they_went(given_spans: list[Span]) -> None:
    assert decode_sdk(to_sdk(given_spans)) == given_spans


@law
@given(st.lists(spans(), min_size=1, max_size=2))
def test_the_encoding_is_told_by_content(given_spans: list[Span]) -> None:
    bodies = [to_protobuf(given_spans), to_json(given_spans), b"\n " + to_json(given_spans)]

    assert decode_spans(bodies) == given_spans * 3


@law
@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_random_bytes_give_spans_or_a_decode_error(body: bytes) -> None:
    for decode in (decode_protobuf, decode_json, decode_otlp):
        assert_harmless(decode, body)


@law
@given(documents)
def test_random_json_gives_spans_or_a_decode_error(document: object) -> None:
    assert_harmless(decode_json, json.dumps(document).encode())


@law
@given(st.binary(max_size=300), st.integers(0, 3))
def test_random_files_give_spans_or_a_decode_error(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, shift: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "random"
    path.write_bytes([b"", b"\x0a", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd"][shift] + body)

    errors: list[DecodeError] = []
    try:
        found = list(read(path, errors.append))
    except DecodeError as error:
        found = []
        errors.append(error)

    assert found or errors
    assert {error.source for error in errors} <= {str(path)}


@law
@given(st.lists(spans(), min_size=1, max_size=2), st.data())
def test_damaged_protobuf_gives_spans_or_a_decode_error(
    given_spans: list[Span], data: st.DataObject
) -> None:
    body = bytearray(to_protobuf(given_spans))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    assert_harmless(decode_protobuf, bytes(body))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.split(".")[0])
def test_captures_decode_and_go_through_protobuf_unchanged(path: Path) -> None:
    errors: list[DecodeError] = []

    found = [span for spans in read(path, errors.append) for span in spans]

    assert found
    assert not errors
    assert decode_protobuf(to_protobuf(found)) == found
