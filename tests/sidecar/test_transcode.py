import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_eval.decode.otlp import decode_protobuf
from otel_eval.decode.otlp_json import decode_json
from otel_eval.errors import DecodeError
from otel_eval.sidecar.signals import LOGS, TRACES
from otel_eval.sidecar.transcode import to_protobuf
from tests.sidecar.otlp import TRACE_ID, json_request


def span_of(document: object) -> object:
    body = to_protobuf(TRACES, orjson.dumps(document))
    return ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans[0]


def test_ids_are_hex_and_64_bit_integers_text_or_numbers() -> None:
    links = [{"traceId": TRACE_ID.upper(), "spanId": "00F067AA0BA902B7"}]
    span = span_of(json_request(startTimeUnixNano="1", endTimeUnixNano=2, links=links))

    assert (span.trace_id.hex(), span.span_id.hex()) == (TRACE_ID, "00f067aa0ba902b7")
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (1, 2)
    assert span.links[0].trace_id.hex() == TRACE_ID


def test_values_of_attributes_called_like_ids_stay_as_they_are() -> None:
    attributes = [{"key": "traceId", "value": {"stringValue": "not hex"}}]

    assert (
        span_of(json_request(attributes=attributes)).attributes[0].value.string_value == "not hex"
    )


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(json_request(traceId=5), id="a number as id"),
        pytest.param({"resourceSpans": 5}, id="no list"),
        pytest.param({"resourceSpans": [5]}, id="no object"),
        pytest.param([], id="a list"),
        pytest.param(None, id="null"),
    ],
)
def test_what_is_no_request_says_so(document: object) -> None:
    with pytest.raises(DecodeError):
        to_protobuf(TRACES, orjson.dumps(document))


def with_value(value: object) -> dict[str, object]:
    return json_request(attributes=[{"key": "k", "value": value}])


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(json_request(traceId="zz"), id="no hex"),
        pytest.param(json_request(spanId="0"), id="half a byte"),
        pytest.param(json_request(parentSpanId=None), id="null as id"),
        pytest.param(json_request(links=[{"traceId": "zz"}, None]), id="a link to nowhere"),
        pytest.param(with_value({"stringValue": "a", "intValue": "1"}), id="two kinds"),
        pytest.param(with_value({"intValue": None, "stringValue": "a"}), id="null and a kind"),
        pytest.param(with_value({"arrayValue": {"values": [None]}}), id="null in a list"),
        pytest.param(with_value({"bytesValue": "x"}), id="no base64"),
        pytest.param({"resourceSpans": [None]}, id="null as group"),
        pytest.param(json_request()["resourceSpans"][0], id="a bare group"),
    ],
)
def test_what_the_decoder_takes_is_taken_for_every_target(document: object) -> None:
    body = orjson.dumps(document)

    there = decode_protobuf(to_protobuf(TRACES, body))

    here = decode_json(body)
    assert [span.name for span in there] == [span.name for span in here]
    assert [len(span.links) for span in there] == [len(span.links) for span in here]


def test_of_two_kinds_the_first_counts_here_and_there() -> None:
    document = with_value({"stringValue": "a", "intValue": "1"})

    assert span_of(document).attributes[0].value.string_value == "a"
    assert decode_json(orjson.dumps(document))[0].attributes == {"k": "a"}


def test_an_id_that_is_no_hex_is_written_as_missing() -> None:
    span = span_of(json_request(traceId="zz"))

    assert (span.trace_id, span.span_id.hex()) == (b"", "00f067aa0ba902b7")


def test_logs_are_read_the_same_way() -> None:
    record = {"traceId": TRACE_ID, "body": {"stringValue": "hi"}}
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}

    request = LOGS.request.FromString(to_protobuf(LOGS, orjson.dumps(document)))

    found = request.resource_logs[0].scope_logs[0].log_records[0]
    assert found.trace_id.hex() == TRACE_ID
