"""OpenLLMetry's older way to write messages: `gen_ai.prompt.0.role` and so on."""

import re
from collections.abc import Sequence
from typing import Any

from otel_eval.extract.common import parsed, tool_definitions
from otel_eval.model import Attributes, Json, Tool

_KEY = re.compile(r"([0-9]{1,9})\.(?:tool_calls\.([0-9]{1,9})\.)?(\w+)")
_CALLS = "tool calls"  # no field of a key is called so


def messages(attributes: Attributes, prefix: str) -> list[dict[str, Json]]:
    """The messages under a prefix, in the order of their numbers."""
    found: dict[int, dict[str, Any]] = {}
    for key, raw in attributes.items():
        match = _KEY.fullmatch(key, len(prefix)) if key.startswith(prefix) else None
        if match:
            number, call, field = match.groups()
            message = found.setdefault(int(number), {})
            if call is not None:
                message = message.setdefault(_CALLS, {}).setdefault(int(call), {})
            message[field] = raw
    return [_message(found[number]) for number in sorted(found)]


def _message(message: dict[str, Any]) -> dict[str, Json]:
    calls = message.pop(_CALLS, {})
    if calls:
        message["tool_calls"] = [calls[number] for number in sorted(calls)]
    blocks = parsed(message.get("content"))
    if isinstance(blocks, list):
        message["content"] = blocks
    return message


def tools(attributes: Attributes) -> Sequence[Tool]:
    """`llm.request.functions.0.name` and so on."""
    return tool_definitions(messages(attributes, "llm.request.functions."))
