"""How recorded arguments and outputs are read for comparison."""

import ast
import json
import re
from typing import Final, Never

import orjson

from otel_eval.integers import has_long_integer
from otel_eval.model import Json, Recorded, ToolCall

_LITERAL_STARTS: Final = ("{", "[", "(", "'", '"')
_LITERAL_WORDS: Final = frozenset(("None", "True", "False"))
_JSON_STARTS: Final = frozenset('{["-0123456789tfn')
_LONGEST_LITERAL: Final = 100_000  # the Python parser is slow and deep; JSON has no such limit
_NO_REPR: Final = re.compile(r"\\[^\\'\"abfnrtvxuUN0-7\n]")


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

    JSON text inside a JSON string is read once more, where it holds an object or a list.
    """
    if not isinstance(value, str):
        return value
    inner = _parse(value)
    if isinstance(inner, str) and inner.lstrip().startswith(("{", "[")):
        return _parse(inner)
    return inner


def _parse(text: str) -> Json:
    start = text.lstrip()
    if start[:1] in _JSON_STARTS:
        try:
            return _parse_json(text)
        except (ValueError, RecursionError):
            pass
    if start.startswith(_LITERAL_STARTS) or start.rstrip() in _LITERAL_WORDS:
        return _parse_literal(text)
    return text


def _parse_json(text: str) -> Json:
    """Exact for integers of any size: those beyond 64 bits orjson would round to floats."""
    if has_long_integer(text):
        return json.loads(text, parse_constant=_refuse)
    return orjson.loads(text)


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _parse_literal(text: str) -> Json:
    # Python warns about escapes that it does not know, and repr never writes such.
    if len(text) > _LONGEST_LITERAL or _NO_REPR.search(text):
        return text
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value if _is_json(value) else text


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(map(_is_json, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float)


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
