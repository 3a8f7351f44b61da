"""Every way in, and what must hold there whatever comes in.

A way in takes bytes and raises nothing. What it documents to raise, DecodeError and ConfigError,
it has dealt with; everything else is a finding.
"""

import http.client
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import grpc

from otel_eval.alerts import groups
from otel_eval.config import Config, load
from otel_eval.decode import decode_json, decode_protobuf, decode_sdk, decode_spans
from otel_eval.decode.compiled import decode_natively
from otel_eval.decode.files import read
from otel_eval.decode.otlp import decode_in_python, decode_otlp
from otel_eval.errors import ConfigError, DecodeError
from otel_eval.extract import extract, trajectories
from otel_eval.model import Failure, Span
from otel_eval.offline import evaluate
from otel_eval.sidecar.answers import Refusal
from otel_eval.sidecar.intake import Arrival
from otel_eval.sidecar.signals import SIGNALS
from tests.decode.encoders import to_sdk
from tests.extract.captures import spans_of
from tests.fuzz import inputs
from tests.fuzz.odd_objects import with_odd_objects
from tests.sidecar.running import Running, forward_to, running
from tests.sidecar.servers import Recorder, receiving

Check = Callable[[bytes], None]

TYPES: Final = {"application/x-protobuf": inputs.requests, "application/json": inputs.documents}
ANSWERS: Final = {200, 400, 413, 503}
CODES: Final = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
}
OUR_FAULT: Final = "internal error"
"""What a bug is answered with, so that the sender keeps its spans."""


def check_json(body: bytes) -> None:
    for decode in (decode_json, decode_otlp, _decode_mixed):
        _harmless(decode, body)


def _decode_mixed(body: bytes) -> list[Span]:
    """As text, as bytes and as spans in one list."""
    text = body.decode(errors="surrogateescape")
    return decode_spans([text, bytearray(body), *to_sdk(spans_of("plain_otel_repr")[:1])])


def check_protobuf(body: bytes) -> None:
    for decode in (decode_protobuf, decode_otlp):
        _harmless(decode, body)
    if decode_natively is not None and (spans := decode_natively(body)) is not None:
        assert repr(spans) == repr(decode_in_python(body))


def _harmless(decode: Callable[[bytes], list[Span]], body: bytes) -> None:
    with suppress(DecodeError):
        assert all(type(each) is Span for each in decode(body))


def check_dialects(body: bytes) -> None:
    """Everything that can be asked of the spans of a request."""
    spans = _spans(body)
    trajectories(spans)
    for trace_id in {span.trace_id for span in spans}:
        found = extract([span for span in spans if span.trace_id == trace_id])
        assert found.trace is not None
        found.runs()
        for agent in found.agents:
            found.by_agent(agent)
            found.by_agent(agent, nested=False)


def check_sdk(body: bytes) -> None:
    """The same spans as an SDK has them, with what only Python can put into them."""
    spans = [each for each in _spans(body) if _may_be_an_sdks(each)]
    trajectories(decode_sdk(with_odd_objects(to_sdk(spans))))


def _may_be_an_sdks(span: Span) -> bool:
    ids = (span.trace_id, span.span_id, *(link.trace_id and link.span_id for link in span.links))
    return span.kind != "unspecified" and all(each and each[0] != "#" for each in ids)


def check_scores(body: bytes) -> None:
    """No evaluator of ours fails, whatever the trajectory."""
    _assert_none_failed(_spans(body), _every_evaluator())


def _assert_none_failed(spans: list[Span], config: Config) -> None:
    failed = [each for each in evaluate(spans, config) if isinstance(each.outcome, Failure)]
    assert not failed, [(each.evaluator, each.outcome) for each in failed]


@cache
def _every_evaluator() -> Config:
    return load(inputs.CORPUS / "config" / "good-every-evaluator.yaml")


def _spans(body: bytes) -> list[Span]:
    try:
        return decode_json(body)
    except DecodeError:
        return []


@contextmanager
def checking_files() -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recorded"

        def check(body: bytes) -> None:
            path.write_bytes(body)
            assert _read(path)

        for odd in (Path(folder), path / "below", Path(folder) / "missing", "a\0b", "x" * 5000):
            assert not _read(odd)
        yield check


def _read(path: str | Path) -> bool:
    """Whether it could be opened; what was wrong with it has its name."""
    errors: list[DecodeError] = []
    found = 0
    try:
        found = sum(1 for _ in read(path, errors.append))
    except DecodeError as error:
        errors.append(error)
    assert found or errors
    assert {error.source for error in errors} <= {str(path)}
    return not any(error.__cause__ for error in errors)


@contextmanager
def checking_configs() -> Iterator[Check]:
    """What loads can be run: an evaluator that was let in must not fail on a trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "otel-eval.yaml"

        def check(body: bytes) -> None:
            path.write_bytes(body)
            with suppress(ConfigError):
                _use(load(path))

        yield check


def _use(config: Config) -> None:
    config.labels(), config.keys(), config.grouping_limits(), config.result_event(), groups(config)
    assert config.hash
    rules = config.rules or ()
    if not any(each.needs_model for rule in rules for each in rule.evaluators):
        _assert_none_failed(spans_of("plain_otel_repr"), config)


class Forgetful(Recorder):
    """A target that takes what it can read, and keeps none of it."""

    async def take(self, arrival: Arrival) -> Refusal | None:
        assert arrival.body is not None
        return None


class Errors(logging.Handler):
    """What the sidecar says of itself while it is fed: an error is a finding."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextmanager
def checking_sidecar(kind: str) -> Iterator[Check]:
    """A whole sidecar with a target; in the end all that was taken is accounted for."""
    errors, log = Errors(), logging.getLogger("otel_eval")
    log.addHandler(errors)
    with receiving(recorder=Forgetful()) as far, running(forward=forward_to(far)) as run:
        with _CLIENTS[kind](run) as send:

            def check(body: bytes) -> None:
                send(body)
                assert not errors.said, errors.said

            yield check
        run.drain(10)
        assert run.value("otel_eval_forward_requests_total", result="rejected") == 0
        assert run.value("otel_eval_evaluations_total", verdict="error") == 0
        for reason in ("error", "undecodable"):
            assert run.value("otel_eval_spans_unevaluated_total", reason=reason) == 0
    log.removeHandler(errors)
    assert not errors.said, errors.said


@contextmanager
def _grpc(run: Running) -> Iterator[Check]:
    with grpc.insecure_channel(f"127.0.0.1:{run.ports.grpc}") as channel:

        def send(body: bytes) -> None:
            for signal in SIGNALS:
                answer = channel.unary_unary(signal.method).future(body, timeout=20)
                assert answer.code() in CODES, answer.code()
                assert OUR_FAULT not in (answer.details() or "")

        yield send


@contextmanager
def _http(run: Running, content_type: str, codings: tuple[str, ...] = ("",)) -> Iterator[Check]:
    connection = http.client.HTTPConnection("127.0.0.1", run.ports.http, timeout=20)

    def send(body: bytes) -> None:
        for coding in codings:
            for signal in SIGNALS:
                headers = {"Content-Type": content_type, "Content-Encoding": coding or "identity"}
                connection.request("POST", signal.path, body, headers)
                response = connection.getresponse()
                answer = response.read()
                assert response.status in ANSWERS, (response.status, answer)
                assert response.headers["content-type"] == content_type
                assert OUR_FAULT.encode() not in answer

    with ExitStack() as stack:
        stack.callback(connection.close)
        yield send


_CLIENTS: Final[Mapping[str, Any]] = {
    "grpc": _grpc,
    "http-protobuf": lambda run: _http(run, "application/x-protobuf"),
    "http-json": lambda run: _http(run, "application/json"),
    "http-packed": lambda run: _http(run, "application/x-protobuf", ("gzip", "deflate", "zstd")),
}


@contextmanager
def plain(check: Check) -> Iterator[Check]:
    yield check


@dataclass(frozen=True, slots=True)
class Surface:
    """A way in: what is made for it, and what is checked there."""

    name: str
    make: inputs.Make
    checking: Callable[[], Any]


SURFACES: Final = tuple(
    Surface(name, make, checking)
    for name, make, checking in (
        ("json", inputs.otlp_json, lambda: plain(check_json)),
        ("protobuf", inputs.otlp_protobuf, lambda: plain(check_protobuf)),
        ("dialects", inputs.otlp_json, lambda: plain(check_dialects)),
        ("sdk", inputs.otlp_json, lambda: plain(check_sdk)),
        ("scores", inputs.otlp_json, lambda: plain(check_scores)),
        ("files", inputs.file, checking_files),
        ("config", inputs.config, checking_configs),
        ("grpc", inputs.requests, lambda: checking_sidecar("grpc")),
        ("http-protobuf", inputs.requests, lambda: checking_sidecar("http-protobuf")),
        ("http-json", inputs.documents, lambda: checking_sidecar("http-json")),
        ("http-packed", inputs.packed, lambda: checking_sidecar("http-packed")),
    )
)
