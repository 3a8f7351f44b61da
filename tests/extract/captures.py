"""The recorded captures and what their tools really did."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from otel_eval.decode.otlp_json import decode_json
from otel_eval.model import UNRECORDED, Span

CAPTURES = Path(__file__).parent.parent / "captures"
NAMES = sorted(
    path.name.removesuffix(".expected.json") for path in CAPTURES.glob("*.expected.json")
)


@cache
def spans_of(name: str) -> list[Span]:
    lines = (CAPTURES / f"{name}.otlp.jsonl").read_bytes().splitlines()
    return [span for line in lines for span in decode_json(line)]


@cache
def truth_of(name: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((CAPTURES / f"{name}.expected.json").read_text())
    return truth


def same(recorded: object, true: object) -> bool:
    """What was recorded is the truth; what was not recorded is no lie."""
    return recorded is UNRECORDED or canonical(recorded) == canonical(true)


def canonical(value: object) -> str:
    """JSON's own equality: 20 is 20.0, true is not 1."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: object) -> object:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _whole(each) for key, each in value.items()}
        case list():
            return [_whole(each) for each in value]
    return value
