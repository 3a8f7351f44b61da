"""Conversations as model spans record them: GenAI parts, OpenAI chat, LangChain, Bedrock blocks."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from otel_eval.extract.dialect import Request, Result, Turn
from otel_eval.extract.values import json_value, value, value_or_text
from otel_eval.model import UNRECORDED, Json, Recorded
from otel_eval.texts import NotJson, loads

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}


Answer: TypeAlias = Callable[[Json], tuple[Recorded, bool]]
"""How a library writes a tool's answer into a message: its value, and whether that is sure."""


def as_text(raw: Json) -> tuple[Recorded, bool]:
    """Texts as they are, all else as JSON: text that looks like JSON may be either."""
    return value_or_text(raw), not isinstance(raw, str)


def exact(raw: Json) -> tuple[Recorded, bool]:
    return raw, True


def turns(raw: Json, answer: Answer = as_text) -> Sequence[Turn]:
    """The messages of a list, or of its JSON text; nothing where it is cut off or no list."""
    if isinstance(raw, str):
        try:
            raw = loads(raw)
        except NotJson:
            return ()
    if isinstance(raw, dict):
        raw = raw.get("messages", [raw])
    if not isinstance(raw, list):
        return ()
    return [turn(each, answer) for each in flat(raw) if isinstance(each, dict)]


def flat(items: Iterable[Json]) -> Iterable[Json]:
    """LangChain puts batches of messages into a list of lists."""
    for item in items:
        if isinstance(item, list):
            yield from item
        else:
            yield item


def turn(message: dict[str, Json], answer: Answer = as_text) -> Turn:
    """One message, whichever library wrote it."""
    body = _langchain(message) or message
    role = str(body.get("role") or body.get("type") or "")
    role = _ROLES.get(role, role)
    parts = body.get("parts")
    if parts is None:
        parts = body.get("content")
    blocks = parts if isinstance(parts, list) else []
    requests = [*map(_request, _requested(body)), *_block_requests(blocks)]
    results = list(_block_results(blocks, answer))
    call_id = _text(body.get("tool_call_id") or (body.get("id") if role == "tool" else None))
    if role == "tool" and call_id and not results:
        said = parts if "content" in body or "parts" in body else UNRECORDED
        results = [_answered(call_id, said, answer, failed=_failed(body))]
    if body.get("type") == "function_call":
        requests.append(_request(body))
    if body.get("type") == "function_call_output":
        answered = str(body.get("call_id") or "")
        results.append(_answered(answered, body.get("output", UNRECORDED), answer, failed=False))
    return Turn(role=role, text=_words(parts), requests=requests, results=results)


def _answered(call_id: str, raw: Recorded, answer: Answer, *, failed: bool) -> Result:
    if raw is UNRECORDED:
        return Result(call_id=call_id, failed=failed)
    output, typed = (_told(raw), False) if answer is as_text else answer(raw)
    said = raw if isinstance(raw, str) else None
    return Result(call_id=call_id, output=output, typed=typed, text=said, failed=failed)


def _told(raw: Json) -> Recorded:
    """A tool's answer as text. What looks like a number, a boolean or None may be text as well."""
    told = value(raw)
    if isinstance(raw, str) and not isinstance(told, dict | list | str):
        return UNRECORDED
    return told


def _langchain(message: dict[str, Json]) -> dict[str, Json] | None:
    """LangChain's two serial forms: {lc, kwargs: {type, …}} and {type, data: {…}}."""
    for key in ("kwargs", "data"):
        inner = message.get(key)
        if isinstance(inner, dict) and "content" in inner:
            return inner
    return None


def _requested(body: dict[str, Json]) -> Sequence[dict[str, Json]]:
    calls = body.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _request(call: dict[str, Json]) -> Request:
    """OpenAI's {id, function: {name, arguments}}, or LangChain's {id, name, args}."""
    function = call.get("function")
    function = function if isinstance(function, dict) else call
    given = [function[key] for key in ("arguments", "args", "input") if key in function]
    return Request(
        name=str(function.get("name") or ""),
        call_id=_text(call.get("call_id") or call.get("id")),
        arguments=arguments_of(given[0]) if given else UNRECORDED,
        bare=not given,
    )


def arguments_of(raw: Json) -> Recorded:
    """Arguments of a call: an object, or its JSON text; empty text is a call without arguments.

    They are an object wherever they can be: in JSON within JSON, or in Python's own notation.
    """
    if raw == "":
        return {}
    found = json_value(raw)
    if not isinstance(found, str):
        return found
    named = value(found)
    return named if isinstance(named, dict) else found


def _block_requests(blocks: Sequence[Json]) -> Iterable[Request]:
    for block in blocks:
        match block:
            case {"type": "tool_call" | "tool-call" | "tool_use"}:
                yield _block_request(block)
            case {"toolUse": {"name": str(name)} as use}:  # Bedrock, and so strands
                yield Request(
                    name=name,
                    call_id=_text(use.get("toolUseId")),
                    arguments=arguments_of(use.get("input")),
                )
            case {"functionCall": {"name": str(name)} as use} | {
                "function_call": {"name": str(name)} as use
            }:  # Gemini
                yield Request(
                    name=name, call_id=_text(use.get("id")), arguments=use.get("args") or {}
                )
            case _:
                pass


def _block_request(block: dict[str, Json]) -> Request:
    arguments: Recorded = UNRECORDED
    for key in ("arguments", "input", "args"):
        if key in block:
            arguments = arguments_of(block[key])
            break
    return Request(
        name=str(block.get("name") or block.get("toolName") or ""),
        call_id=_text(block.get("id") or block.get("toolCallId")),
        arguments=arguments,
    )


def _block_results(blocks: Sequence[Json], answer: Answer) -> Iterable[Result]:
    for block in blocks:
        match block:
            case {"type": "tool_call_response" | "tool-result" | "tool_result"}:
                yield _block_result(block, answer)
            case {"toolResult": {} as result}:
                content = result.get("content")
                yield Result(
                    call_id=_text(result.get("toolUseId")),
                    output=text_blocks(content) if answer is as_text else answer(content)[0],
                    failed=result.get("status") == "error",
                )
            case {"functionResponse": {} as result} | {"function_response": {} as result}:
                output, sure = answer(result.get("response"))
                yield Result(call_id=_text(result.get("id")), output=output, typed=sure)
            case _:
                pass


def _block_result(block: dict[str, Json], answer: Answer) -> Result:
    call_id = _text(block.get("id") or block.get("toolCallId") or block.get("tool_use_id"))
    for key in ("result", "response", "output", "content"):
        if key in block:
            output, sure = answer(block[key])
            return Result(call_id=call_id, output=output, typed=sure, failed=_failed(block))
    return Result(call_id=call_id)


def dispatched(calls: Json) -> Sequence[Request]:
    """The calls that LangGraph hands to its tools node."""
    if not isinstance(calls, list):
        return ()
    return [
        _request(call)
        for call in calls
        if isinstance(call, dict) and call.get("type") == "tool_call"
    ]


def text_blocks(raw: Json, *layouts: re.Pattern[str]) -> Recorded:
    """Bedrock's list of one {text} or {json} block; more than one stay a list of their values.

    `layouts`: how the writer lays out JSON, where that is known.
    """
    if not isinstance(raw, list) or not raw:
        return UNRECORDED if raw is None else raw
    values = [_block_value(block, layouts) for block in raw]
    if any(each is UNRECORDED for each in values):
        return UNRECORDED
    return values[0] if len(values) == 1 else values


def _block_value(block: Json, layouts: Sequence[re.Pattern[str]]) -> Recorded:
    match block:
        case {"json": inner}:
            return inner
        case {"text": str(text)}:
            return value_or_text(text, *layouts)
    return block


def _words(parts: Json) -> str:
    """The text of a message's content."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list):
        return ""
    return "\n".join(text for text in map(_word, parts) if text)


def _word(part: Json) -> str:
    match part:
        case str():
            return part
        case {"type": "text" | "output_text" | "input_text", "text": str(text)}:
            return text
        case {"type": "text", "content": str(text)}:
            return text
        case {"text": str(text)}:
            return text
    return ""


def _failed(body: dict[str, Json]) -> bool:
    return body.get("status") == "error" or body.get("is_error") is True


def _text(raw: Json) -> str | None:
    return str(raw) if raw else None
