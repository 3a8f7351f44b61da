"""Evaluators: the table of built-ins, plug-ins, and how a rule file's entry becomes one."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import ErrorDetails

from otel_eval.errors import ConfigError
from otel_eval.evaluators import plugins
from otel_eval.evaluators.base import Evaluator
from otel_eval.evaluators.matchers import PatternError
from otel_eval.model import Json

__all__ = ["BUILT_IN", "Evaluator", "find", "known", "parse", "schema"]

# Modules are named, not imported: a rule file pays only for what it uses.
BUILT_IN: Final[Mapping[str, str]] = {
    "tool-call-count": "otel_eval.evaluators.count:ToolCallCount",
    "tool-call-order": "otel_eval.evaluators.order:ToolCallOrder",
    "tool-call-args": "otel_eval.evaluators.args:ToolCallArgs",
    "tool-call-output": "otel_eval.evaluators.output:ToolCallOutput",
    "tool-call-accuracy": "otel_eval.evaluators.accuracy:ToolCallAccuracy",
    "trajectory-match": "otel_eval.evaluators.trajectory_match:TrajectoryMatch",
    "tool-allowlist": "otel_eval.evaluators.allowlist:ToolAllowlist",
    "tool-error-rate": "otel_eval.evaluators.error_rate:ToolErrorRate",
    "tool-loop": "otel_eval.evaluators.loop:ToolLoop",
    "tool-budget": "otel_eval.evaluators.budget:ToolBudget",
    "tool-args-schema": "otel_eval.evaluators.args_schema:ToolArgsSchema",
    "tool-selection-accuracy": "otel_eval.evaluators.tool_selection:ToolSelectionAccuracy",
    "tool-parameter-accuracy": "otel_eval.evaluators.tool_parameters:ToolParameterAccuracy",
    "trajectory-judge": "otel_eval.evaluators.trajectory_judge:TrajectoryJudge",
}


def known() -> list[str]:
    """Every type that can be named, built-ins first."""
    return [*BUILT_IN, *(name for name in plugins.names() if name not in BUILT_IN)]


def find(type_id: str) -> type[Evaluator] | None:
    """The class of a type; None if there is no such type."""
    if type_id not in BUILT_IN:
        return plugins.find(type_id)
    module, _, name = BUILT_IN[type_id].partition(":")
    found: type[Evaluator] = getattr(import_module(module), name)
    return found


def parse(mapping: Mapping[str, Json], place: str = "evaluator") -> Evaluator:
    """The evaluator that a rule file describes; a ConfigError tells every problem at its place."""
    type_id = mapping.get("type")
    if not isinstance(type_id, str) or not type_id:
        raise ConfigError(f"{place}: type is missing (known: {', '.join(known())})")
    try:
        found = find(type_id)
    except plugins.PluginError as error:
        raise ConfigError(f"{place}.type: {error}") from error
    if found is None:
        raise ConfigError(f"{place}: unknown type {type_id!r} ({_hint(type_id, known())})")
    try:
        return found.model_validate(_fields(found, mapping))
    except ValidationError as error:
        raise ConfigError(list(_problems(error, found, place))) from error


def _fields(found: type[Evaluator], mapping: Mapping[str, Json]) -> dict[str, Json]:
    """A class that has a type of its own keeps it, by whatever name it was found."""
    given = dict(mapping)
    if found.model_fields["type"].default:
        del given["type"]
    return given


def _hint(word: str, words: Iterable[str]) -> str:
    options = list(words)
    near = get_close_matches(word, options, n=1)
    listing = f"known: {', '.join(options)}"
    return f"did you mean {near[0]}? {listing}" if near else listing


def _problems(error: ValidationError, model: type[BaseModel], place: str) -> Iterator[str]:
    for each in error.errors(include_url=False):
        if each["type"] == "too_short" and each["input"]:
            continue  # pydantic counts the sound items only; the others have problems of their own
        where = place + "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"]
        )
        cause = each.get("ctx", {}).get("error")
        if isinstance(cause, PatternError):
            yield f"{where}{cause.place}: {cause.message}"
        else:
            yield f"{where}: {_message(each, model)}"


def _message(error: ErrorDetails, model: type[BaseModel]) -> str:
    match error["type"]:
        case "extra_forbidden":
            *outer, field = error["loc"]
            known_here = [name for each in _models_at(model, outer) for name in each.model_fields]
            return (
                f"unknown field ({_hint(str(field), known_here)})"
                if known_here
                else "unknown field"
            )
        case "tuple_type":
            return "Input should be a valid list"
        case "too_short" | "string_too_short":
            return "is empty, so nothing would be expected"
        case "value_error":
            return str(error["ctx"]["error"])
    return error["msg"]


def _models_at(model: type[BaseModel], steps: Iterable[int | str]) -> list[type[BaseModel]]:
    """The models that may stand at a place: more than one where a field takes several."""
    found = [model]
    for step in steps:
        fields = [each.model_fields[step] for each in found if step in each.model_fields]
        if fields:
            found = [inner for field in fields for inner in _models_in(field.annotation)]
    return found


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def schema() -> dict[str, Any]:
    """The JSON Schema of one evaluator of a rule file, for editors."""
    models = [found for type_id in BUILT_IN if (found := find(type_id))]
    refs, shared = models_json_schema([(model, "validation") for model in models])
    for type_id, model in zip(BUILT_IN, models, strict=True):
        _require_type(shared["$defs"], refs[model, "validation"]["$ref"], type_id)
    plugin = {
        "type": "object",
        "properties": {"type": {"type": "string", "not": {"enum": list(BUILT_IN)}}},
        "required": ["type"],
    }
    return {"anyOf": [*(refs[model, "validation"] for model in models), plugin], **shared}


def _require_type(parts: dict[str, Any], ref: str, type_id: str) -> None:
    part = parts[ref.rpartition("/")[2]]
    part["properties"]["type"] = {"const": type_id}
    part["required"] = ["type", *part.get("required", [])]
