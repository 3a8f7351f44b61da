import subprocess
import sys
from enum import IntEnum, StrEnum
from typing import Any

import orjson
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from otel_eval.decode import decode_json, decode_protobuf, decode_sdk, decode_spans
from otel_eval.errors import DecodeError
from tests.conftest import span
from tests.decode.encoders import to_json

REMOTE = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))


def recorded_spans() -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "shop", "pids": [1, 2]}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("shop.agent", "1.2")
    remote = set_span_in_context(NonRecordingSpan(REMOTE))
    with tracer.start_as_current_span(
        "serve", remote, SpanKind.SERVER, links=[Link(REMOTE, {"a": 1})]
    ):
        with tracer.start_as_current_span(
            "tool", attributes={"n": 1, "x": 0.5, "b": False}
        ) as tool:
            tool.set_attribute("many", ["a", "b"])
            tool.add_event("retry", {"count": 2})
            tool.set_status(Status(StatusCode.ERROR, "no stock"))
        with tracer.start_as_current_span("done") as done:
            done.set_status(StatusCode.OK)
    provider.get_tracer("plain").start_span("root", kind=SpanKind.CLIENT).end()
    provider.shutdown()
    return list(exporter.get_finished_spans())


def test_sdk_protobuf_and_json_agree_on_real_spans() -> None:
    recorded = recorded_spans()

    from_sdk = decode_sdk(recorded)

    by_id = {each.span_id: each for each in from_sdk}
    from_protobuf = decode_protobuf(encode_spans(recorded).SerializeToString())
    assert {each.span_id: each for each in from_protobuf} == by_id
    assert decode_json(to_json(from_sdk)) == from_sdk


def test_real_spans_are_told_in_the_models_words() -> None:
    tool, done, serve, root = decode_sdk(recorded_spans())

    assert (serve.parent_id, serve.parent_remote) == (f"{0xDEF:016x}", True)
    assert (tool.parent_id, tool.parent_remote) == (serve.span_id, False)
    assert (root.parent_id, root.parent_remote) == (None, None)
    assert [each.kind for each in (serve, tool, root)] == ["server", "internal", "client"]
    assert (tool.status.code, tool.status.message) == ("error", "no stock")
    assert (done.status.code, root.status.code) == ("ok", "unset")
    assert tool.attributes == {"n": 1, "x": 0.5, "b": False, "many": ["a", "b"]}
    assert tool.events[0].attributes == {"count": 2}
    assert serve.links[0].trace_id == f"{0xABC:032x}"
    assert (serve.scope.name, serve.scope.version) == ("shop.agent", "1.2")


def test_resource_and_scope_are_shared() -> None:
    tool, done, serve, _ = decode_sdk(recorded_spans())

    assert tool.resource is serve.resource
    assert tool.scope is done.scope


def test_spans_without_a_context_are_one_trace_and_no_duplicates() -> None:
    seeds = [
        ReadableSpan(name="f", start_time=0, end_time=1, attributes={"n": n}) for n in range(3)
    ]

    first, second = decode_sdk(seeds), decode_sdk(seeds)

    assert [each.span_id for each in first] == ["#000001", "#000002", "#000003"]
    assert len({each.trace_id for each in first}) == 1
    assert first[0].trace_id.startswith("#")
    assert first[0].trace_id != second[0].trace_id
    assert [each.attributes["n"] for each in first] == [0, 1, 2]


def test_spans_without_anything_have_the_dull_defaults() -> None:
    (found,) = decode_sdk([ReadableSpan(name="bare", resource=Resource({}))])

    assert (found.start_ns, found.end_ns, found.events, found.links) == (0, 0, (), ())
    assert (found.attributes, found.resource, found.parent_id) == ({}, {}, None)


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 1


class Silent:
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("a", 1), ["a", 1]),
        ({"k": (1, {"deep": b"\x00\xff"})}, {"k": [1, {"deep": "AP8="}]}),
        (b"\x00\xff", "AP8="),
        (None, None),
        (True, True),
        (Colour.RED, "red"),
        (SpanKind, str(SpanKind)),
        ({3: 4}, {"3": 4}),
        (Size.BIG, 1),
        (2**63 - 1, 2**63 - 1),
        (2**63, "9223372036854775808"),
        (10**5000, "<int>"),
        ("größer", "größer"),
        ("cut \ud83d", "cut \ufffd"),
        (Silent(), "<Silent>"),
    ],
    ids=[
        *("tuple", "nested", "bytes", "none", "bool", "enum", "object", "key", "int enum"),
        *("64 bits", "65 bits", "endless int", "unicode", "surrogate", "no text"),
    ],
)
def test_values_become_json(given: Any, found: Any) -> None:
    (decoded,) = decode_sdk([ReadableSpan(name="f", attributes={"v": given})])

    assert decoded.attributes["v"] == found
    assert orjson.dumps(decoded.attributes)


def endless() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    return loop


def test_what_the_sdk_takes_in_other_types_is_read_in_the_models() -> None:
    trace_id = 5
    given = ReadableSpan(
        name="agent",
        context=SpanContext(trace_id, 1, is_remote=False),
        parent=SpanContext(trace_id, 2, is_remote=1),  # type: ignore[arg-type]  # not checked there
        start_time=1.5e9,  # type: ignore[arg-type]  # such as time.time() * 1e9
        end_time=2.5e9,  # type: ignore[arg-type]
    )

    (found,) = decode_sdk([given])

    assert (found.parent_remote, found.start_ns, found.end_ns) == (
        True,
        1_500_000_000,
        2_500_000_000,
    )
    assert [type(each) for each in (found.parent_remote, found.start_ns)] == [bool, int]


def test_endless_values_are_decode_errors() -> None:
    with pytest.raises(DecodeError, match="nested too deeply"):
        decode_sdk([ReadableSpan(name="f", attributes={"v": endless()})])


def test_the_ids_made_up_keep_the_order_of_the_spans() -> None:
    found = decode_sdk([ReadableSpan(name="f") for _ in range(12)])

    ids = [each.span_id for each in found]
    assert sorted(ids) == ids


def test_a_mix_is_one_list_and_its_invalid_ids_one_trace() -> None:
    given = span()
    seed = ReadableSpan(name="seed")
    zero = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"zero"}]}]}]}'

    found = decode_spans([given, seed, zero, zero.decode()])

    assert found[0] is given
    assert [each.name for each in found[1:]] == ["seed", "zero", "zero"]
    assert [each.span_id for each in found[1:]] == ["#000001", "#000002", "#000003"]
    assert len({each.trace_id for each in found[1:]}) == 1


@pytest.mark.parametrize("request_", [to_json([span()]), to_json([span()]).decode()])
def test_one_request_may_stand_for_the_list(request_: bytes | str) -> None:
    assert decode_spans(request_) == [span()]


@pytest.mark.parametrize("item", [3, None, {"name": "x"}, "\ud800", b"[3]", "{"], ids=repr)
def test_what_is_no_span_is_a_decode_error(item: Any) -> None:
    with pytest.raises(DecodeError):
        decode_spans([item])


def test_importing_decode_imports_nothing_heavy() -> None:
    code = """
import sys, otel_eval.decode
heavy = {"google.protobuf", "orjson", "opentelemetry.sdk", "zstandard"} & set(sys.modules)
sys.exit(str(heavy) if heavy else 0)
"""

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
