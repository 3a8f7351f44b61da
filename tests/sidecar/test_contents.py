from dataclasses import replace

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_eval.model import Event
from otel_eval.sidecar import contents as module
from otel_eval.sidecar.contents import EVENT, Contents, contents_of
from otel_eval.sidecar.intake import Content
from tests.conftest import SPAN_ID, TRACE_ID, span
from tests.sidecar import otlp

MODEL = span("chat", attributes={"gen_ai.operation.name": "chat"})


def content(text: str = "hi", span_id: str = SPAN_ID) -> Content:
    event = Event(name=EVENT, attributes={"gen_ai.output.messages": text})
    return Content(trace_id=TRACE_ID, span_id=span_id, event=event)


def request(*, name: str = EVENT, in_body: bool = False, named_by: str = "field") -> object:
    made = otlp.logs()
    record = made.resource_logs[0].scope_logs[0].log_records[0]
    record.trace_id, record.span_id = bytes.fromhex(TRACE_ID), bytes.fromhex(SPAN_ID)
    record.time_unix_nano = 5
    pairs = otlp.attributes({"gen_ai.output.messages": "[]"})
    if in_body:
        record.body.kvlist_value.values.extend(pairs)
    else:
        record.attributes.extend(pairs)
    if named_by == "field":
        record.event_name = name
    else:
        record.attributes.extend(otlp.attributes({"event.name": name}))
    return made


@pytest.mark.parametrize("in_body", [True, False], ids=["in the body", "in attributes"])
@pytest.mark.parametrize("named_by", ["field", "attribute"])
def test_a_record_of_either_shape_is_read(in_body: bool, named_by: str) -> None:
    made = request(in_body=in_body, named_by=named_by)
    assert isinstance(made, ExportLogsServiceRequest)

    (found,) = contents_of(made)

    assert (found.trace_id, found.span_id, found.event.time_ns) == (TRACE_ID, SPAN_ID, 5)
    assert found.event.attributes["gen_ai.output.messages"] == "[]"
    assert found.size > 40


def test_other_records_and_those_without_a_span_are_left_alone() -> None:
    other = request(name="something.else")
    loose = request()
    assert isinstance(other, ExportLogsServiceRequest)
    assert isinstance(loose, ExportLogsServiceRequest)
    loose.resource_logs[0].scope_logs[0].log_records[0].span_id = b""

    assert contents_of(other) == contents_of(loose) == []


def test_content_that_comes_first_waits_for_its_span() -> None:
    contents = Contents(lambda: 0.0)

    contents.add([content("a"), content("b")])
    (found,) = contents.attached([MODEL])

    assert [event.attributes["gen_ai.output.messages"] for event in found.events] == ["a", "b"]


def test_content_that_comes_later_is_on_the_span_that_was_fed() -> None:
    contents = Contents(lambda: 0.0)
    (found,) = contents.attached([MODEL])

    contents.add([content()])

    assert len(found.events) == 1


def test_spans_of_no_model_are_left_as_they_are() -> None:
    plain = span()

    assert Contents(lambda: 0.0).attached([plain]) == [plain]


def test_content_for_a_span_that_left_is_counted_when_it_has_waited_long_enough() -> None:
    now = [0.0]
    contents = Contents(lambda: now[0])
    contents.attached([MODEL])
    contents.left(TRACE_ID, [SPAN_ID])

    contents.add([content()])
    before = contents.unmatched
    now[0] = 301.0
    contents.add([])

    assert (before, contents.unmatched) == (0, 1)


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    contents = Contents(lambda: 0.0)

    contents.add([content(span_id=f"{number:016x}") for number in range(1, 6)])

    assert contents.unmatched == 3


def test_content_is_bounded_in_bytes_and_room_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    contents = Contents(lambda: 0.0)
    (found,) = contents.attached([MODEL])
    large = replace(content(), size=60)

    contents.add([large, large])
    refused = contents.unmatched
    contents.left(TRACE_ID, [SPAN_ID])
    contents.add([large])

    assert (len(found.events), refused, contents.unmatched) == (1, 1, 1)


def test_spans_that_may_get_content_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SPANS", 1)
    contents = Contents(lambda: 0.0)

    first, second = contents.attached(
        [MODEL, span("chat", span_id="00f067aa0ba902b7", attributes=MODEL.attributes)]
    )
    contents.add([content(), content(span_id="00f067aa0ba902b7")])

    assert (len(first.events), len(second.events)) == (0, 1)
