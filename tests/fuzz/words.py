"""What is worth putting somewhere: the words that dialects look for, and what captures hold."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from otel_eval import decode, extract
from otel_eval.model import Json
from tests.extract.captures import CAPTURES

MAX_LENGTH: Final = 60
MAX_VALUE: Final = 3_000
NUMBERED: Final = tuple(
    f"{prefix}{number}{rest}"
    for prefix, rests in {
        "gen_ai.prompt.": (".role", ".content", ".calls", ".tool_calls.0.name", ".tool_call_id"),
        "gen_ai.completion.": (".role", ".tool_calls.0.arguments", ".tool_calls.1.id", ".calls"),
        "llm.request.functions.": (".name", ".parameters", ".tool_calls.0.x"),
        "llm.input_messages.": (".message.role", ".message.contents.0.message_content.text"),
        "llm.output_messages.": (".message.tool_calls.0.tool_call.function.name", ".message.role"),
        "llm.tools.": (".tool.json_schema", ".tool"),
    }.items()
    for number in ("0", "1", "-1", "x", "٣", "9" * 5000)
    for rest in rests
)
"""Keys that count messages, and calls in them."""


def _read_by_us() -> set[str]:
    """The texts in the modules under test, but for their docstrings."""
    found: set[str] = set()
    for package in (decode, extract):
        for path in Path(package.__path__[0]).glob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {each.value for each in ast.walk(tree) if _is_word(each)}  # type: ignore[attr-defined]  # a constant
    return found


def _is_word(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return 0 < len(text) <= MAX_LENGTH and "\n" not in text
    return False


def _attributes() -> Iterator[dict[str, Any]]:
    for path in sorted(CAPTURES.glob("*.otlp.jsonl")):
        for line in path.read_bytes().splitlines():
            yield from _pairs(orjson.loads(line))


def _pairs(value: Json) -> Iterator[dict[str, Any]]:
    match value:
        case {"key": str(), "value": dict()}:
            yield value
        case dict():
            for each in value.values():
                yield from _pairs(each)
        case list():
            for each in value:
                yield from _pairs(each)


def _gathered() -> tuple[list[str], list[Json]]:
    keys, values = {*_read_by_us(), *NUMBERED}, {}
    for pair in _attributes():
        keys.add(pair["key"])
        for each in pair["value"].values():
            text = orjson.dumps(each)
            if len(text) <= MAX_VALUE:
                values.setdefault((pair["key"], text[:12]), each)
    return sorted(keys), [*values.values(), *sorted(_read_by_us())]


KEYS, VALUES = _gathered()
