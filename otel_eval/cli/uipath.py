"""UiPath eval sets: test cases with criteria per evaluator, as rules."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from otel_eval.cli.inputs import Unusable
from otel_eval.model import Json

TYPES: Final[Mapping[str, str]] = {
    "toolCallsCount": "tool-call-count",
    "toolCallsOrder": "tool-call-order",
    "toolCalls": "tool-call-args",
    "toolOutputs": "tool-call-output",
}
"""What a criterion holds tells its evaluator; ids are each project's own."""

SETTINGS: Final = ("strict", "subset")
_CAPITAL: Final = re.compile(r"(?<=[a-z])([A-Z])")


@dataclass(slots=True)
class Converted:
    rules: list[dict[str, Json]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What has no counterpart, and why."""


def read(file: str) -> Converted:
    cases = _cases(_load(Path(file)), file)
    configs = dict(_configs(Path(file).parent.parent / "evaluators"))
    found = Converted()
    for case_id, case in cases:
        _convert(case_id, case, configs, found)
    return found


def _load(path: Path) -> Json:
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        if isinstance(error, orjson.JSONDecodeError):
            raise Unusable(f"{path}: not JSON: {error}") from error
        raise Unusable(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _cases(document: Json, file: str) -> list[tuple[str, dict[str, Json]]]:
    """An eval set, a list of test cases, or one test case."""
    cases = document
    if isinstance(document, dict):
        cases = [document] if "evaluationCriterias" in document else document.get("evaluations")
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise Unusable(f"{file}: no UiPath eval set: expected test cases under evaluations")
    ids = [case.get("id") or case.get("name") for case in cases]
    for at, case_id in enumerate(ids):
        if not isinstance(case_id, str):
            raise Unusable(f"{file}: evaluations[{at}] has no id")
        if case_id in ids[:at]:
            raise Unusable(f"{file}: evaluations[{at}] has the id {case_id!r} of another test case")
    return list(zip(ids, cases, strict=True))


def _configs(folder: Path) -> Iterator[tuple[str, dict[str, Json]]]:
    """The evaluators' own settings, by id; there need not be any."""
    for path in sorted(folder.glob("*.json")):
        document = _load(path)
        if isinstance(document, dict) and isinstance(document.get("id"), str):
            settings = document.get("evaluatorConfig")
            yield document["id"], settings if isinstance(settings, dict) else {}


def _convert(
    case_id: str, case: Mapping[str, Any], configs: Mapping[str, Any], found: Converted
) -> None:
    criterias = case.get("evaluationCriterias")
    evaluators: list[dict[str, Json]] = []
    for name, given in (criterias if isinstance(criterias, dict) else {}).items():
        evaluator = _evaluator(given, configs.get(name, {}))
        if evaluator is None:
            found.left_out.append(f"{case_id}: {name} has no criteria about tool calls")
        else:
            evaluators.append(_named(evaluator, name, evaluators))
    if evaluators:
        match = {"session": _literal(case_id)}
        found.rules.append({"name": case_id, "match": match, "evaluators": evaluators})


def _evaluator(given: Json, settings: Mapping[str, Json]) -> dict[str, Json] | None:
    """Without criteria of its own a test case takes the evaluator's."""
    criteria = given or settings.get("defaultEvaluationCriteria")
    if not isinstance(criteria, dict):
        return None
    criteria = {_camel(name): value for name, value in criteria.items()}
    field_name = next((name for name in TYPES if criteria.get(name)), None)
    if field_name is None:
        return None
    made = {"type": TYPES[field_name], _snake(field_name): _escaped(criteria[field_name])}
    return made | {name: settings[name] for name in SETTINGS if name in settings}


def _named(
    evaluator: dict[str, Json], name: str, others: Sequence[Mapping[str, Json]]
) -> dict[str, Json]:
    """The type is the name, unless there are two of it."""
    if all(other["type"] != evaluator["type"] for other in others):
        return evaluator
    return {"type": evaluator["type"], "name": name, **evaluator}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _snake(name: str) -> str:
    return _CAPITAL.sub(r"_\1", name).lower()


def _escaped(criteria: Json) -> Json:
    """Expected values are values, also where they look like matchers."""
    if isinstance(criteria, dict):  # counts: [">=", 2] as one line
        return {tool: _bound(bound) for tool, bound in criteria.items()}
    if not isinstance(criteria, list):
        return criteria
    return [_escaped_call(each) if isinstance(each, dict) else each for each in criteria]


def _bound(given: Json) -> Json:
    return " ".join(map(str, given)) if isinstance(given, list) else given


def _escaped_call(call: Mapping[str, Json]) -> dict[str, Json]:
    shown = dict(call)
    if isinstance(shown.get("args"), dict):
        shown["args"] = {name: _value(value) for name, value in shown["args"].items()}
    if "output" in shown:
        shown["output"] = _value(shown["output"])
    return shown


def _value(value: Json) -> Json:
    return {"$literal": value} if _has_dollar(value) else value


def _has_dollar(value: Json) -> bool:
    if isinstance(value, dict):
        return any(name.startswith("$") or _has_dollar(each) for name, each in value.items())
    return isinstance(value, list) and any(map(_has_dollar, value))


def _literal(text: str) -> str:
    """As a pattern that fits only itself."""
    escaped = re.sub(r"([*?[])", r"[\1]", text)
    return f"[/]{escaped[1:]}" if escaped.startswith("/") else escaped
