"""How recorded arguments and outputs are read for comparison."""

import ast
import json
import re
from typing import Final

import orjson

from otel_eval.integers import has_long_integer
from otel_eval.model import Json, Recorded, ToolCall

_LITERAL_STARTS: Final = ("{", "[", "(", "'", '"')
_WORDS: Final = ("None", "True", "False")
_JSON_STARTS: Final = frozenset('{["-0123456789')
_JSON_WORDS: Final = frozenset(("true", "false", "null", "NaN", "Infinity"))
_LONGEST_LITERAL: Final = 200_000  # the Python parser is slow and deep; JSON has no such limit
_NO_REPR: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"abfnrtvxuUN0-7\n]")


def arguments(call: ToolCall) -> Recorded:
    """The arguments to compare. Many models write a call without arguments as empty text."""
    return {} if call.arguments == "" else call.arguments


def failed(call: ToolCall) -> bool:
    """Whether the call went wrong: by its status, or by a result that says so of itself."""
    if call.error is not None:
        return True
    output = call.output
    return isinstance(output, dict) and (
        output.get("isError") is True or output.get("is_error") is True
    )


def read_text(value: Json) -> Json:
    """The value that text stands for: JSON, else a Python literal, else the text itself.

    JSON text inside a JSON string is read once more, where it holds an object or a list. What was
    recorded has been read in the same way, so that equal texts are always equal values.
    """
    if not isinstance(value, str):
        return value
    inner = _parse(value)
    if isinstance(inner, str) and inner.lstrip().startswith(("{", "[")):
        return _parse(inner)
    return inner


def _parse(text: str) -> Json:
    start = text.lstrip()
    if start[:1] in _JSON_STARTS or start.rstrip() in _JSON_WORDS:
        try:
            return _parse_json(text)
        except (ValueError, RecursionError):
            pass
    if start.startswith(_LITERAL_STARTS) or start.rstrip() in _WORDS:
        return _parse_literal(text)
    return text


def _parse_json(text: str) -> Json:
    """By orjson where it can: it refuses NaN, and integers beyond 64 bits it rounds to floats."""
    if has_long_integer(text):
        return json.loads(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def _parse_literal(text: str) -> Json:
    # Python warns about escapes that it does not know, and repr never writes such.
    if len(text) > _LONGEST_LITERAL or _NO_REPR.search(text):
        return text
    try:
        return _as_json(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _as_json(value: object) -> Json:
    """A Python value as JSON would hold it: tuples and sets are lists, keys and bytes text."""
    match value:
        case dict():
            return {str(name): _as_json(each) for name, each in value.items()}
        case list() | tuple() | set():
            return [_as_json(each) for each in value]
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def output_forms(output: Json) -> list[Json]:
    """Each value that an output may be taken for: as it is, read, and without its `content`."""
    forms = _read_forms(output)
    whole = forms[-1]
    if isinstance(whole, dict) and "content" in whole:
        forms += _read_forms(whole["content"])
    return forms


def _read_forms(value: Json) -> list[Json]:
    read = read_text(value)
    return [value] if read is value else [value, read]
