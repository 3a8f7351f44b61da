"""What a recorded text says: JSON, a Python literal, plain text, or something that was cut off."""

import ast
import json
import math
import re
from collections.abc import Hashable, Sequence
from typing import Final, cast

from otel_eval import texts
from otel_eval.model import UNRECORDED, Json, Recorded
from otel_eval.texts import LITERAL_ERRORS, NotJson, loads

_NUMBER_TAIL = re.compile(r"-?\d*(\.\d*)?([eE][+-]?\d*)?$")
_LITERAL_START = re.compile(r"[\[({]+\s*b?['\"\]})\d-]|[\[{(]\s*(?:None|True|False)\b")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_OPENINGS = ("{", "[", '"')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.(?:0|\d*[1-9]))?(?:[eE][+-]?\d+)?")

SPACED: Final = re.compile(r"(?:[^\s,:]|[,:] (?=\S))*")
"""JSON as Python's `json.dumps` lays it out, its strings taken out."""
COMPACT: Final = re.compile(r"[^\s]*")
"""JSON as JavaScript and pydantic lay it out."""
_EITHER: Final = (SPACED, COMPACT)


def value(raw: Json) -> Recorded:
    """A recorded value of unknown encoding: JSON, JSON in JSON, a Python literal, else text."""
    if not isinstance(raw, str):
        return raw
    try:
        parsed = loads(raw)
    except NotJson:
        return UNRECORDED if cut_off(raw) else literal(raw)
    return _again(parsed) if isinstance(parsed, str) else parsed


def json_value(raw: Json) -> Recorded:
    """A value that its writer always encodes as JSON; what is no JSON was text all along."""
    if not isinstance(raw, str):
        return raw
    try:
        return loads(raw)
    except NotJson:
        return UNRECORDED if cut_off(raw) else raw


def value_or_text(raw: Json, *layouts: re.Pattern[str]) -> Recorded:
    """A value whose writer leaves texts as they are and encodes all else as JSON.

    Text that reads as a JSON string was written by nobody's encoder: it is text with quotes in it.
    So is JSON in another layout than the writer's own, where `layouts` says what that is.
    """
    if not isinstance(raw, str):
        return raw
    try:
        parsed = loads(raw)
    except NotJson:
        return text_value(raw)
    return parsed if _is_as_written(parsed, raw, layouts or _EITHER) else raw


def text_value(raw: Json) -> Recorded:
    """A value that is known to be text; it may still be JSON text that was cut off."""
    if isinstance(raw, str) and raw.lstrip()[:1] in ("{", "[") and cut_off(raw):
        return UNRECORDED
    return raw


def _is_as_written(parsed: Json, raw: str, layouts: Sequence[re.Pattern[str]]) -> bool:
    """Whether an encoder would have written it like this: `1.50`, `NaN` and ` 1` are words."""
    match parsed:
        case str():
            return False
        case bool() | None:
            return raw == raw.strip()
        case int() | float():
            return math.isfinite(parsed) and _NUMBER.fullmatch(raw) is not None
    bones = _STRING.sub('""', raw)
    return any(layout.fullmatch(bones) for layout in layouts)


def literal(text: str) -> Recorded:
    """A Python literal's value, else the text; a literal that breaks off is unrecorded."""
    if not texts.may_be_literal(text):
        return text
    try:
        parsed = texts.literal(text)
    except LITERAL_ERRORS as error:
        return UNRECORDED if _breaks_off(text, error) else text
    if isinstance(parsed, str) and len(parsed) < len(text.strip()) - 2:
        return text  # several strings in a row, or escapes: words with quotes in them
    return parsed


def stringified(text: str) -> Json:
    """The value that Python's `str()` made this text from, else the text."""
    try:
        parsed = ast.literal_eval(text) if texts.may_be_repr(text) else text
        value = texts.plain(parsed)
    except LITERAL_ERRORS:
        return text
    return value if str(parsed) == text and not isinstance(parsed, str) else text


def frozen(value: Json) -> Hashable:
    """The value as a key: equal where the values are."""
    match value:
        case dict():
            return frozenset((key, frozen(item)) for key, item in value.items())
        case list():
            return tuple(map(frozen, value))
    return cast(Hashable, value)


def cut_off(text: str) -> bool:
    """Whether the text is JSON up to where it breaks off: a length limit was at work."""
    start = text.lstrip()
    if not start.startswith(_OPENINGS):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _at_the_end(text, error)
    except (ValueError, RecursionError):  # an integer of more digits than Python converts
        return False
    return False


def _again(parsed: str) -> Recorded:
    """JSON text inside a JSON string is decoded once more, if it holds an object or a list."""
    if not parsed.lstrip().startswith(("{", "[")):
        return parsed
    try:
        return loads(parsed)
    except NotJson:
        return UNRECORDED if cut_off(parsed) else parsed


def _at_the_end(text: str, error: json.JSONDecodeError) -> bool:
    rest = text[error.pos :].strip()
    if error.msg.startswith("Unterminated string"):
        return True
    if error.msg.startswith("Invalid \\"):
        return len(rest) < len("\\uXXXX")
    if not rest or any(word.startswith(rest) for word in _WORDS):
        return True
    return error.msg.startswith(("Expecting ',' delimiter", "Expecting value")) and bool(
        _NUMBER_TAIL.match(rest)
    )


def _breaks_off(text: str, error: BaseException) -> bool:
    if not isinstance(error, SyntaxError) or not _LITERAL_START.match(text.lstrip()):
        return False
    return "was never closed" in error.msg or "unterminated string" in error.msg
