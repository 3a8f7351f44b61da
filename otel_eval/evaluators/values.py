"""How recorded arguments and outputs are read for comparison."""

from typing import Final

from otel_eval import texts
from otel_eval.model import Json, Recorded, ToolCall

_JSON_STARTS: Final = frozenset('{["-0123456789')
_JSON_WORDS: Final = frozenset(("true", "false", "null", "NaN", "Infinity"))


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
    start = text.strip()
    if start[:1] in _JSON_STARTS or start in _JSON_WORDS:
        try:
            return texts.loads(text)
        except texts.NotJson:
            pass
    try:
        return texts.literal(text) if texts.may_be_literal(text) else text
    except texts.LITERAL_ERRORS:
        return text


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
