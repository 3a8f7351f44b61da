"""The many ways in which OTLP/JSON is written."""

from typing import Any

import orjson
import pytest

from otel_eval.decode import decode_json
from otel_eval.errors import DecodeError
from otel_eval.model import UNSET, Event, Link, Scope, Span, Status
from tests.conftest import SPAN_ID, TRACE_ID

PARENT = "00f067aa0ba902b7"


def request(**fields: Any) -> dict[str, Any]:
    span = {"traceId": TRACE_ID, "spanId": SPAN_ID, **fields}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def decode_one(**fields: Any) -> Span:
    (found,) = decode_json(orjson.dumps(request(**fields)))
    return found


def decode_value(value: Any) -> Any:
    return decode_one(attributes=[{"key": "v", "value": value}]).attributes["v"]


FULL = """{"resourceSpans": [{
  "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
  "scopeSpans": [{
    "scope": {"name": "agent", "version": "1.2", "attributes": []},
    "spans": [{
      "traceId": "0AF7651916CD43DD8448EB211C80319C", "spanId": "B7AD6B7169203331",
      "parentSpanId": "00F067AA0BA902B7", "flags": 769, "traceState": "a=b", "name": "tool",
      "kind": 3, "startTimeUnixNano": "1700000000000000001", "endTimeUnixNano": 1700000000000000002,
      "attributes": [{"key": "n", "value": {"intValue": "3"}}], "droppedAttributesCount": 1,
      "events": [{"name": "e", "timeUnixNano": "5", "attributes": []}],
      "links": [{"traceId": "0AF7651916CD43DD8448EB211C80319C", "spanId": "B7AD6B7169203331"}],
      "status": {"code": 2, "message": "no stock"}, "fromTheFuture": {"x": [1]}
    }],
    "schemaUrl": "https://opentelemetry.io/schemas/1.30.0"
  }]
}]}"""
SNAKE = (
    FULL.replace("resourceSpans", "resource_spans")
    .replace("scopeSpans", "scope_spans")
    .replace("traceId", "trace_id")
    .replace("parentSpanId", "parent_span_id")
    .replace("spanId", "span_id")
    .replace("TimeUnixNano", "_time_unix_nano")
    .replace("timeUnixNano", "time_unix_nano")
    .replace("stringValue", "string_value")
    .replace("intValue", "int_value")
)
BARE = FULL.removeprefix('{"resourceSpans": [').removesuffix("]}")


@pytest.mark.parametrize("text", [FULL, SNAKE, BARE], ids=["camel", "snake", "bare"])
@pytest.mark.parametrize("form", [str, str.encode], ids=["text", "bytes"])
def test_a_full_request_is_read_in_every_spelling(text: str, form: Any) -> None:
    (found,) = decode_json(form(text))

    assert found == Span(
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        parent_id=PARENT,
        parent_remote=True,
        name="tool",
        kind="client",
        start_ns=1_700_000_000_000_000_001,
        end_ns=1_700_000_000_000_000_002,
        status=Status(code="error", message="no stock"),
        attributes={"n": 3},
        events=[Event(name="e", time_ns=5)],
        links=[Link(trace_id=TRACE_ID, span_id=SPAN_ID)],
        resource={"service.name": "shop"},
        scope=Scope(name="agent", version="1.2"),
    )


VALUES: dict[str, tuple[Any, Any]] = {
    "text": ({"stringValue": "a"}, "a"),
    "no text": ({"stringValue": ""}, ""),
    "int as text": ({"intValue": "-9223372036854775808"}, -(2**63)),
    "int as number": ({"intValue": 9223372036854775807}, 2**63 - 1),
    "int as float": ({"intValue": 3.0}, 3),
    "zero": ({"intValue": 0}, 0),
    "false": ({"boolValue": False}, False),
    "double": ({"doubleValue": 0.5}, 0.5),
    "double as int": ({"doubleValue": 2}, 2.0),
    "double as text": ({"doubleValue": "0.25"}, 0.25),
    "infinity": ({"doubleValue": "Infinity"}, float("inf")),
    "-infinity": ({"doubleValue": "-Infinity"}, float("-inf")),
    "bytes": ({"bytesValue": "AP8="}, "AP8="),
    "array": ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
    "no array": ({"arrayValue": {}}, []),
    "kvlist": (
        {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
        {"k": "v"},
    ),
    "no kvlist": ({"kvlistValue": {"values": None}}, {}),
    "unset": ({}, None),
    "null": (None, None),
    "null text": ({"stringValue": None}, None),
    "unknown": ({"futureValue": 1}, None),
    "unknown too": ({"futureValue": 1, "intValue": 2}, 2),
}


@pytest.mark.parametrize(("value", "found"), VALUES.values(), ids=VALUES)
def test_values(value: Any, found: Any) -> None:
    decoded = decode_value(value)

    assert decoded == found
    assert type(decoded) is type(found)


def test_nan_is_written_as_text() -> None:
    decoded = decode_value({"doubleValue": "NaN"})

    assert decoded != decoded


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (0, "unspecified"),
        (1, "internal"),
        (5, "consumer"),
        ("2", "server"),
        ("SPAN_KIND_CLIENT", "client"),
        ("producer", "producer"),
        ("SPAN_KIND_UNSPECIFIED", "unspecified"),
        ("SPAN_KIND_NEW", "unspecified"),
        (99, "unspecified"),
        (None, "unspecified"),
    ],
)
def test_kinds(written: Any, kind: str) -> None:
    assert decode_one(kind=written).kind == kind


@pytest.mark.parametrize(
    ("written", "status"),
    [
        (None, UNSET),
        ({}, UNSET),
        ({"code": 1}, Status(code="ok")),
        ({"code": "STATUS_CODE_ERROR", "message": "x"}, Status(code="error", message="x")),
        ({"code": "Ok"}, Status(code="ok")),
        ({"code": 9}, UNSET),
        ({"message": "x"}, Status(message="x")),
    ],
    ids=str,
)
def test_statuses(written: Any, status: Status) -> None:
    assert decode_one(status=written).status == status


@pytest.mark.parametrize(
    ("flags", "remote"),
    [(None, None), (0, None), (256, False), (768, True), (512, None), ("769", True)],
)
def test_flags_say_whether_the_parent_is_remote(flags: Any, remote: bool | None) -> None:
    assert decode_one(parentSpanId=PARENT, flags=flags).parent_remote is remote
    assert decode_one(flags=flags).parent_remote is None


@pytest.mark.parametrize(
    "invalid", ["", "0" * 16, "xyz", "b7ad", "b7ad6b716920333", None, "１" * 16]
)
def test_invalid_ids_are_made_up_and_invalid_parents_none(invalid: str | None) -> None:
    found = decode_one(spanId=invalid, parentSpanId=invalid)

    assert found.trace_id == TRACE_ID
    assert found.span_id.startswith("#")
    assert found.parent_id is None


@pytest.mark.parametrize(
    "document",
    [{}, {"resourceSpans": []}, {"resourceSpans": None}, {"resourceSpans": [None, {}]}],
    ids=str,
)
def test_empty_requests_have_no_spans(document: Any) -> None:
    assert decode_json(orjson.dumps(document)) == []


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"name": 3}, "name: a number where text was expected"),
    "time": ({"startTimeUnixNano": "soon"}, "startTimeUnixNano: text where an integer"),
    "time below zero": ({"endTimeUnixNano": -1}, "does not fit into 64 bits"),
    "huge time": ({"endTimeUnixNano": "1" * 5000}, "endTimeUnixNano"),
    "kind": ({"kind": []}, "kind: a list where an integer was expected"),
    "status": ({"status": "ok"}, "status: text where an object was expected"),
    "attributes": ({"attributes": {"a": 1}}, "attributes: an object where a list was expected"),
    "pair": ({"attributes": ["a"]}, "attributes: text where an object was expected"),
    "value": ({"attributes": [{"key": "k", "value": 3}]}, "value: a number where an object"),
}
WRONG_VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"stringValue": 3}, "stringValue: a number where text was expected"),
    "65 bits": ({"intValue": "9223372036854775808"}, "intValue: an integer that does not fit"),
    "fraction": ({"intValue": 0.5}, "intValue: a number where an integer was expected"),
    "true": ({"intValue": True}, "intValue: true or false where an integer was expected"),
    "bool": ({"boolValue": "true"}, "boolValue: text where true or false was expected"),
    "double": ({"doubleValue": "much"}, "doubleValue: text where a number was expected"),
    "array": ({"arrayValue": []}, "arrayValue: a list where an object was expected"),
}


@pytest.mark.parametrize(("fields", "message"), WRONG.values(), ids=WRONG)
def test_fields_of_the_wrong_type_are_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_one(**fields)


@pytest.mark.parametrize(("value", "message"), WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_values_of_the_wrong_type_are_named(value: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_value(value)


def deep(levels: int) -> bytes:
    return (
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"k","value":'
        + b'{"arrayValue":{"values":[' * levels
        + b"]}}" * levels
        + b"}]}]}]}]}"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b'{"resourceSpans": NaN}', "no JSON"),
        (b'{"a": "\xff"}', "no JSON"),
        ("\ud800", "no JSON"),
        (b"[]", 'a list where .* an object with "resourceSpans"'),
        (b"3", "a number where"),
        (b"null", "null where"),
        (b'{"resourceSpans": 3}', "resourceSpans: a number where a list was expected"),
        (deep(101), "arrayValue: nested too deeply; expected at most 100 levels"),
        (deep(5000), "no JSON"),
        (b"[" * 100_000, "no JSON"),
    ],
    ids=[
        *("empty", "cut off", "NaN", "no UTF-8", "surrogate", "list", "number", "null", "wrong"),
        *("deep", "deeper", "abyss"),
    ],
)
def test_what_is_no_request_is_a_decode_error(body: bytes | str, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_json(body)


def test_a_hundred_levels_are_read() -> None:
    assert len(decode_json(deep(100))) == 1


def test_errors_do_not_quote_values() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_value({"intValue": "card 4111"})

    assert "4111" not in str(caught.value)
