"""The file that the demo leaves behind: OTLP as JSON lines, as a Collector would write it."""

from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_eval.model import Json

_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})


class TraceFile:
    """Written line by line, so that it is good at any moment; several agents share it."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._lock = Lock()

    def write(self, spans: Sequence[ReadableSpan]) -> None:
        request = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
        line = orjson.dumps(_with_hex_ids(request)) + b"\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        self._file.close()


class FileExporter(SpanExporter):
    """One agent's way into the file, which outlives the agent."""

    def __init__(self, file: TraceFile) -> None:
        self._file = file

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._file.write(spans)
        return SpanExportResult.SUCCESS


def _with_hex_ids(value: Json) -> Json:
    """OTLP writes ids in hex where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [_with_hex_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: b64decode(each).hex() if key in _IDS else _with_hex_ids(each)
        for key, each in value.items()
    }
