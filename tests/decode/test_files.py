import gzip
import io
import os
import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson
import pytest
import zstandard

from otel_eval.decode.files import read
from otel_eval.errors import DecodeError
from otel_eval.model import Span
from tests.conftest import span
from tests.decode.encoders import to_json, to_protobuf, with_length

SPANS = [span(f"step {number}", span_id=f"{number:016x}") for number in range(1, 4)]
BODIES = [to_protobuf([each]) for each in SPANS]
LINES = [to_json([each]) for each in SPANS]
BROKEN = b'{"resourceSpans": 3}'


def pretty(line: bytes) -> bytes:
    return orjson.dumps(orjson.loads(line), option=orjson.OPT_INDENT_2)


def with_four_bytes(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(body)


FORMS: dict[str, bytes] = {
    "one document": to_json(SPANS),
    "lines": b"\n".join(LINES),
    "lines with an end": b"\n".join(LINES) + b"\n",
    "windows lines": b"\r\n".join(LINES),
    "blank lines": b"\n\n" + b"\n \n".join(LINES) + b"\n\n",
    "byte order mark": b"\xef\xbb\xbf" + b"\n".join(LINES),
    "pretty": pretty(to_json(SPANS)),
    "pretty with a mark": b"\xef\xbb\xbf" + pretty(to_json(SPANS)),
    "pretty, one after the other": b"\n".join(map(pretty, LINES)),
    "pretty and lines": b"\n".join([pretty(LINES[0]), LINES[1], pretty(LINES[2])]),
    "list": b"[" + b",".join(LINES) + b"]",
    "pretty list": pretty(b"[" + b",".join(LINES) + b"]"),
    "resourceSpans objects": b"\n".join(
        orjson.dumps(orjson.loads(line)["resourceSpans"][0]) for line in LINES
    ),
    "protobuf": to_protobuf(SPANS),
    "varint lengths": b"".join(map(with_length, BODIES)),
    "four-byte lengths": b"".join(map(with_four_bytes, BODIES)),
    "four-byte lengths, gzip each": b"".join(with_four_bytes(gzip.compress(b)) for b in BODIES),
    "four-byte lengths, zstd each": b"".join(with_four_bytes(zstd(body)) for body in BODIES),
    "four-byte lengths, JSON": b"".join(map(with_four_bytes, LINES)),
    "four-byte lengths, empty first": bytes(4) + b"".join(map(with_four_bytes, BODIES)),
}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstd,
    "gzip members": lambda body: gzip.compress(body[:50]) + gzip.compress(body[50:]),
    "zstd frames": lambda body: zstd(body[:50]) + zstd(body[50:]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spans"


def read_all(path: Path | str) -> tuple[list[Span], list[DecodeError]]:
    errors: list[DecodeError] = []
    return [each for found in read(path, errors.append) for each in found], errors


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_is_told_by_its_content(
    path: Path, form: bytes, compress: Callable[[bytes], bytes]
) -> None:
    path.write_bytes(compress(form))

    assert read_all(path) == (SPANS, [])


@pytest.mark.parametrize("size", [*range(1, 20), *range(100, 160), 5000])
def test_protobuf_of_any_length_is_told_apart(path: Path, size: int) -> None:
    body = to_protobuf([span("x" * size, resource={"k": "v" * (size % 7)})])

    for form in (body, with_length(body) * 2, with_four_bytes(body) * 2):
        path.write_bytes(form)
        found, errors = read_all(path)
        assert {each.name for each in found} == {"x" * size}
        assert not errors


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_dash_is_stdin(form: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(form)))

    assert read_all("-") == (SPANS, [])


def test_errors_of_stdin_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"oops")))

    with pytest.raises(DecodeError, match=r"^<stdin>:1: no JSON"):
        read_all("-")


def test_one_bad_line_is_reported_with_its_place_and_the_others_are_read(path: Path) -> None:
    path.write_bytes(b"\n".join([LINES[0], b"oops", LINES[1], BROKEN, LINES[2]]))

    found, errors = read_all(path)

    assert found == SPANS
    assert [(error.source, error.line) for error in errors] == [(str(path), 2), (str(path), 4)]
    assert str(errors[0]).startswith(f"{path}:2: no JSON")
    assert "expected an OTLP/JSON trace request" in str(errors[0])
    assert "a list was expected" in str(errors[1])


@pytest.mark.parametrize(
    "bad",
    [b"oops", b"{", LINES[0][:40], LINES[0][:-3], b"\xff\xfe", b'{"a": 1}', b"3", b"x\n  y"],
    ids=repr,
)
@pytest.mark.parametrize("position", [0, 1, 3])
def test_a_bad_line_anywhere_costs_no_other(path: Path, bad: bytes, position: int) -> None:
    path.write_bytes(b"\n".join([*LINES[:position], bad, *LINES[position:]]) + b"\n")

    found, errors = read_all(path)

    assert found == SPANS
    assert errors[0].line == position + 1


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_bad_document_over_many_lines_costs_no_other(path: Path, position: int) -> None:
    documents = [pretty(line) for line in LINES]
    documents[position] = documents[position].replace(b'"name": "step', b'"name": step')
    path.write_bytes(b"\n".join(documents))

    found, errors = read_all(path)

    assert found == [each for number, each in enumerate(SPANS) if number != position]
    assert len(errors) == 1
    assert errors[0].line == 1 + position * (documents[0].count(b"\n") + 1)


def test_a_bad_record_between_lengths_costs_no_other(path: Path) -> None:
    bodies = [BODIES[0], b"\x0a\xff", BODIES[1], BODIES[2]]
    path.write_bytes(b"".join(map(with_length, bodies)))

    found, errors = read_all(path)

    assert found == SPANS
    assert "record 2" in str(errors[0])
    assert "expected an ExportTraceServiceRequest" in str(errors[0])


@pytest.mark.parametrize(
    "form", ["protobuf", "varint lengths", "four-byte lengths", "lines"], ids=str
)
@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_what_breaks_off_is_read_up_to_there(
    path: Path, form: str, compress: Callable[[bytes], bytes]
) -> None:
    path.write_bytes(compress(FORMS[form][:-5]))

    found, errors = read_all(path)

    assert found == SPANS[:2]
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (b"\x12\x00", "record 4: a field with the tag 12; expected resource_spans"),
        (b"\x0a", "record 4: breaks off within a length"),
        (b"\x0a\xff", "record 4: breaks off within a length"),
        (b"\x0a\x05abc", "record 4: breaks off after 3 of 5 bytes"),
        (b"\x0a" + b"\xff" * 8 + b"\x01", "record 4: a length of .* bytes; expected at most"),
    ],
    ids=["tag", "no length", "half a length", "cut off", "endless"],
)
def test_a_bad_end_of_protobuf_is_reported(path: Path, rest: bytes, message: str) -> None:
    path.write_bytes(FORMS["protobuf"] + rest)

    found, errors = read_all(path)

    assert found == SPANS
    assert re.search(message, str(errors[0]))


@pytest.mark.parametrize(
    ("form", "rest"),
    [("varint lengths", b"\xff"), ("four-byte lengths", b"\0\0")],
    ids=["varint", "four bytes"],
)
def test_a_length_that_breaks_off_is_reported(path: Path, form: str, rest: bytes) -> None:
    path.write_bytes(FORMS[form] + rest)

    found, errors = read_all(path)

    assert found == SPANS
    assert "breaks off within a length" in str(errors[0])


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_damaged_compression_is_reported(path: Path, compress: Callable[[bytes], bytes]) -> None:
    lines = b"\n".join(LINES) + b"\n"
    path.write_bytes(compress(lines) + compress(lines)[:-6])

    found, errors = read_all(path)

    assert found[:3] == SPANS
    assert "cut off" in str(errors[-1])


def test_other_signals_and_empty_requests_have_no_spans(path: Path) -> None:
    path.write_bytes(b'{"resourceLogs": []}\n{"resourceMetrics": []}\n{}\n' + LINES[0])

    assert read_all(path) == (SPANS[:1], [])


def test_spans_without_ids_are_one_trace_per_file(path: Path) -> None:
    nameless = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"},{"name":"b"}]}]}]}'
    path.write_bytes(nameless + b"\n" + nameless)

    first, second = read_all(path)[0], read_all(path)[0]

    assert len({each.span_id for each in first}) == 4
    assert len({each.trace_id for each in first}) == 1
    assert first[0].trace_id != second[0].trace_id


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; expected OTLP traces"),
        (b" \n\n", "is empty; expected OTLP traces"),
        (b"oops", "no JSON"),
        (b"oops\nmore", "nothing after it is readable"),
        (b'{"spans": []}', "an object with 'spans'; expected one with \"resourceSpans\""),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary data of another kind"),
        (gzip.compress(b"oops"), "no JSON"),
        (gzip.compress(LINES[0])[:30], "the gzip data is cut off"),
        (b"\x1f\x8bnot gzip at all", "the gzip data is damaged"),
        (b"\x28\xb5\x2f\xfdnot zstd at all", "the zstd data is damaged"),
    ],
    ids=[
        *("empty", "blank", "text", "texts", "another object", "image"),
        *("gzip of text", "cut gzip", "no gzip", "no zstd"),
    ],
)
def test_a_file_with_nothing_readable_is_an_error(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)

    with pytest.raises(DecodeError, match=message) as caught:
        read_all(path)
    assert caught.value.source == str(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing", "no such file"), (".", "is a directory"), ("a\0b", "cannot be read")],
)
def test_what_cannot_be_opened_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        read_all(tmp_path / name)


def test_zstd_without_its_library_names_the_extra(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(zstd(LINES[0]))
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(DecodeError, match=r"pip install 'otel-eval\[sidecar\]'"):
        read_all(path)


def fail(error: DecodeError) -> None:
    raise error


def repeated(form: Sequence[bytes], times: int) -> Iterator[bytes]:
    for _ in range(times):
        yield from form


BIG = [to_json([span("x" * 200, attributes={"content": os.urandom(2000).hex()})]) for _ in range(9)]
BIG_BODIES = [to_protobuf([span("x", attributes={"c": os.urandom(2000).hex()})]) for _ in range(9)]


@pytest.mark.parametrize(
    ("records", "compress"),
    [
        ([line + b"\n" for line in BIG], bytes),
        ([pretty(line) + b"\n" for line in BIG], bytes),
        ([line + b"\n" for line in BIG], gzip.compress),
        ([line + b"\n" for line in BIG], zstd),
        (BIG_BODIES, bytes),
        (list(map(with_length, BIG_BODIES)), bytes),
        (list(map(with_four_bytes, BIG_BODIES)), bytes),
    ],
    ids=["lines", "pretty", "gzip", "zstd", "protobuf", "varint lengths", "four-byte lengths"],
)
def test_a_big_file_needs_the_memory_of_one_record(
    path: Path, records: list[bytes], compress: Callable[[bytes], bytes]
) -> None:
    whole = io.BytesIO()
    whole.writelines(repeated(records, 200))
    path.write_bytes(compress(whole.getvalue()))
    size = whole.tell()

    tracemalloc.start()
    count = sum(len(found) for found in read(path, fail))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == 1800
    assert peak < size / 2
