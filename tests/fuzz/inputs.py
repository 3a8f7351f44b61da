"""What is fed in: captures and configurations with changes in them, and messages made up."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from random import Random
from typing import Any, Final

import orjson
import yaml
import zstandard
from google.protobuf.json_format import MessageToDict

from otel_eval.errors import DecodeError
from otel_eval.model import Json
from otel_eval.sidecar.signals import SIGNALS, TRACES
from otel_eval.sidecar.transcode import to_protobuf
from tests.decode.encoders import with_length
from tests.extract.captures import CAPTURES, NAMES
from tests.fuzz.messages import fill, mutate
from tests.fuzz.mutations import ODD, Mutator, damaged
from tests.fuzz.words import KEYS, VALUES

ROOT: Final = Path(__file__).parents[2]
WINDOW: Final = 14
"""So many spans of a capture at a time: a call and what is around it, and quick to go through."""
MAX_BYTES: Final = 60_000
CORPUS: Final = Path(__file__).parent / "corpus"

Make = Callable[[Random], bytes]


def otlp_json(random: Random) -> bytes:
    return damaged(written(document(random)), random)


def otlp_protobuf(random: Random) -> bytes:
    return damaged(_message(random), random)


def requests(random: Random) -> bytes:
    """Of any signal, in protobuf."""
    if random.random() < 0.5:
        return otlp_protobuf(random)
    return damaged(_made_up(random).SerializeToString(), random)


def documents(random: Random) -> bytes:
    """Of any signal, in JSON."""
    if random.random() < 0.6:
        return otlp_json(random)
    return damaged(orjson.dumps(_hex_ids(MessageToDict(_made_up(random)))), random)


def file(random: Random) -> bytes:
    """In each framing, whole or packed, and each request packed by itself."""
    bodies = [random.choice(_FORMS)(random) for _ in range(random.randint(1, 3))]
    if random.random() < 0.2:
        bodies = [_packed(body, random) for body in bodies]
    framed = random.choice(_FRAMES)(bodies)
    if random.random() < 0.3:
        framed = _packed(framed, random)
    return damaged(framed, random)


def packed(random: Random) -> bytes:
    """Compressed requests, mostly as they should be."""
    return damaged(_packed(otlp_protobuf(random), random), random)


def config(random: Random) -> bytes:
    """YAML of a configuration that somebody may have written."""
    base = random.choice(_configs())
    changed = Mutator(random, VALUES, _config_keys()).mutated(base)
    return damaged(_yaml(changed, random), random)


def document(random: Random) -> Json:
    """A request of spans: part of a capture, with spans of another one among them at times."""
    found = random.choice(_windows(random.choice(NAMES)))
    if random.random() < 0.2:
        found = _crossed(found, random.choice(_windows(random.choice(NAMES))))
    spans = [_told_more(each, random) for each in _flat(found)]
    return Mutator(random, VALUES, KEYS).mutated(_grouped(spans))


def _told_more(entry: tuple[Json, Json, Any], random: Random) -> tuple[Json, Json, Json]:
    """With something that other instrumentations would say; mostly without."""
    resource, scope, span = entry
    if random.random() < 0.8:
        return entry
    more = [_pair(random) for _ in range(random.randint(1, 4))]
    if random.random() < 0.7:
        return resource, scope, {**span, "attributes": [*span.get("attributes", ()), *more]}
    event = {"name": random.choice(KEYS), "attributes": more}
    return resource, scope, {**span, "events": [*span.get("events", ()), event]}


def _pair(random: Random) -> Json:
    value = random.choice(VALUES if random.random() < 0.6 else ODD)
    return {"key": random.choice(KEYS), "value": _typed(value)}


def _typed(value: Json) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": value}
        case str():
            return {"stringValue": value}
    return {"stringValue": written(value).decode()}


def written(value: Json) -> bytes:
    """Text that JSON cannot hold, as half a surrogate pair, is written all the same."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str)


@cache
def _windows(name: str) -> Sequence[Json]:
    lines = (CAPTURES / f"{name}.otlp.jsonl").read_bytes().splitlines()
    spans = [found for line in lines for found in _flat(orjson.loads(line))]
    parts = [_grouped(spans[at : at + WINDOW]) for at in range(0, len(spans), WINDOW)]
    small = [part for part in parts if len(orjson.dumps(part)) <= MAX_BYTES]
    return small or [_grouped(spans[:1])]


def _flat(request: Mapping[str, Any]) -> Iterator[tuple[Json, Json, Json]]:
    for group in request["resourceSpans"]:
        for scoped in group["scopeSpans"]:
            for span in scoped["spans"]:
                yield group.get("resource"), scoped.get("scope"), span


def _grouped(spans: Sequence[tuple[Json, Json, Json]]) -> Json:
    groups = [
        {
            "resource": resource,
            "scopeSpans": [_scoped(scope, some) for scope, some in _scopes(each)],
        }
        for resource, each in _runs(spans, 0)
    ]
    return {"resourceSpans": groups}


def _runs(spans: Sequence[Any], at: int) -> Iterator[tuple[Json, Sequence[Any]]]:
    for _, some in groupby(spans, key=lambda each: orjson.dumps(each[at])):
        found = list(some)
        yield found[0][at], found


def _scopes(spans: Sequence[Any]) -> Iterator[tuple[Json, Sequence[Any]]]:
    return _runs(spans, 1)


def _scoped(scope: Json, spans: Sequence[Any]) -> Json:
    return {"scope": scope, "spans": [span for _, _, span in spans]}


def _crossed(one: Any, two: Any) -> Json:
    """Both in one trace, under one root."""
    first = next(_flat(one))[2]
    joined = {"traceId": first["traceId"], "parentSpanId": first["spanId"]}
    others = [(resource, scope, {**span, **joined}) for resource, scope, span in _flat(two)]
    return _grouped([*_flat(one), *islice(others, 5)])


def _message(random: Random) -> bytes:
    """From a document that is almost right, if it still is a request; or changed after that."""
    if random.random() < 0.25:
        return _made_up(random, traces_only=True).SerializeToString()
    try:
        body = to_protobuf(TRACES, written(document(random)))
    except DecodeError:
        body = to_protobuf(TRACES, orjson.dumps(random.choice(_windows(random.choice(NAMES)))))
    request = TRACES.request.FromString(body)
    for _ in range(random.randrange(4)):
        mutate(request, random)
    return request.SerializeToString()


def _made_up(random: Random, *, traces_only: bool = False) -> Any:
    request = (TRACES if traces_only else random.choice(SIGNALS)).request()
    fill(request, random)
    return request


def _hex_ids(value: Json) -> Json:
    """As OTLP has its ids; some of them."""
    if isinstance(value, list):
        return [_hex_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "0af7651916cd43dd8448eb211c80319c" if key == "traceId" else _hex_ids(each)
        for key, each in value.items()
    }


def _packed(body: bytes, random: Random) -> bytes:
    return random.choice(_PACKERS)(body)


_PACKERS: Final[Sequence[Callable[[bytes], bytes]]] = (
    lambda body: gzip.compress(body, 1),
    zstandard.ZstdCompressor().compress,
    zlib.compress,
)
_FORMS: Final[Sequence[Make]] = (otlp_json, otlp_protobuf, documents)
_FRAMES: Final[Sequence[Callable[[list[bytes]], bytes]]] = (
    b"".join,
    b"\n".join,
    lambda bodies: b"".join(map(with_length, bodies)),
    lambda bodies: b"".join(len(body).to_bytes(4, "big") + body for body in bodies),
    lambda bodies: b"[" + b",".join(bodies) + b"]",
    lambda bodies: b"\n".join(body.replace(b",", b",\n") for body in bodies),
)


@cache
def _configs() -> Sequence[Json]:
    texts = [ROOT / "config.example.yaml", ROOT / "deploy" / "otel-eval.yaml", *CONFIGS]
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in texts]


CONFIGS: Final = sorted((CORPUS / "config").glob("good-*.yaml"))


@cache
def _config_keys() -> Sequence[str]:
    found: set[str] = set()
    for each in _configs():
        found |= _keys_of(each)
    return sorted(found)


def _keys_of(value: Json) -> set[str]:
    match value:
        case dict():
            return {str(key) for key in value}.union(*map(_keys_of, value.values()))
        case list():
            return set().union(*map(_keys_of, value))
    return set()


def _yaml(value: Json, random: Random) -> bytes:
    if random.random() < 0.7:
        # YAML reads JSON, and many times faster than it writes its own.
        return written(value)
    text = yaml.safe_dump(
        value, default_flow_style=random.choice((None, False)), allow_unicode=True
    )
    lines = text.splitlines(keepends=True)
    for _ in range(random.randrange(3)):
        at = random.randrange(len(lines) + 1)
        lines.insert(at, random.choice(_SNAGS))
    return "".join(lines).encode(errors="surrogatepass")


_SNAGS: Final = (
    *("rules: &a [*a]\n", "<<: {log: {level: info}}\n", "  - &x {name: y}\n", "? [a, b]\n: c\n"),
    *("judge: {model: '${env:NO_SUCH_THING}'}\n", "log: !!python/object:os.system {}\n", "---\n"),
    *(
        "grouping: {settle: ${env:HOME}}\n",
        "\tx: y\n",
        "log: {level: $x}\n",
        "...\n",
        "!!binary AA\n",
    ),
    *("settle: 2024-01-01\n", "idle: 1:30\n", "# x\n", "a: 0x10\n", "a: .nan\n", "a: !!set {x}\n"),
)
