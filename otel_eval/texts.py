"""What a text stands for, as JSON or as a Python literal has it."""

import ast
import json
import re
from typing import Final

import orjson

from otel_eval.integers import has_long_integer
from otel_eval.model import Json

LITERAL_ERRORS: Final = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
"""What a text that is no Python literal raises."""

_DEEPEST: Final = 200
_BRACKET: Final = re.compile(r"[][{}]")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_MAYBE_LITERAL: Final = re.compile(r"\s*(?:[\[({'\"]|(?:None|True|False)\s*$)")
_MAX_LITERAL: Final = 200_000  # the Python parser is slow and deep; JSON has no such limit
# Escapes that no repr has, and that Python warns about.
_NO_REPR: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"abfnrtvxuUN0-7\n]")


class NotJson(ValueError):  # noqa: N818  # a question's answer, no failure
    """The text is no JSON document."""


def loads(text: str) -> Json:
    """The JSON value of a text, exact for integers of any size. Raises NotJson.

    What is nested deeper than any reader down the line can follow counts as text.
    """
    if len(text) > _DEEPEST and _depth(text) > _DEEPEST:
        raise NotJson(f"nested deeper than {_DEEPEST}")
    try:
        if has_long_integer(text):
            return json.loads(text)
        return orjson.loads(text)
    except (ValueError, RecursionError):
        try:
            return json.loads(text)  # NaN, Infinity and lone surrogates
        except (ValueError, RecursionError) as error:
            raise NotJson(str(error)) from error


def _depth(text: str) -> int:
    """How deep a text is nested, or more cheaply how deep it could be."""
    openings = text.count("[") + text.count("{")
    if openings <= _DEEPEST:
        return openings
    deepest = depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def may_be_literal(text: str) -> bool:
    """Whether it is worth asking: most texts are words, and the parser is slow."""
    return _MAYBE_LITERAL.match(text) is not None and may_be_repr(text)


def may_be_repr(text: str) -> bool:
    return len(text) <= _MAX_LITERAL and not _NO_REPR.search(text)


def literal(text: str) -> Json:
    """A Python literal's value; raises LITERAL_ERRORS."""
    return plain(ast.literal_eval(text.strip()))


def plain(raw: object) -> Json:
    """A Python value as JSON has it: tuples and sets become lists, bytes their text."""
    match raw:
        case dict():
            return {
                key if isinstance(key, str) else str(key): plain(item) for key, item in raw.items()
            }
        case list() | tuple() | set():
            return [plain(item) for item in raw]
        case None | bool() | int() | float() | str():
            return raw
        case bytes():
            return str(raw)
    raise TypeError(f"{type(raw).__name__} is no JSON")
