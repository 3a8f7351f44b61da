"""tool-args-schema: the arguments are what the tool takes."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import orjson
from pydantic import BeforeValidator, Field

from otel_eval.evaluators.base import Evaluator, listed, plural
from otel_eval.evaluators.capture import no_tool_calls, unrecorded
from otel_eval.evaluators.values import arguments, read_text
from otel_eval.model import UNRECORDED, Json, Score, Skip, ToolCall, Trajectory

if TYPE_CHECKING:
    from otel_eval.evaluators.json_schema import Problem, SchemaCheck


def _checked(schema: Json) -> Json:
    _check(schema)
    return schema


def _check(schema: Json) -> "SchemaCheck":
    # jsonschema takes longer to import than the rest of the package.
    from otel_eval.evaluators.json_schema import SchemaCheck

    return SchemaCheck(schema)


JsonSchema: TypeAlias = Annotated[dict[str, Json] | bool, BeforeValidator(_checked)]


class ToolArgsSchema(Evaluator):
    """Share of the calls whose arguments validate.

    Judged are the tools in `schemas`; without them, those whose definition the trace recorded.
    """

    type: Literal["tool-args-schema"] = "tool-args-schema"
    schemas: Annotated[dict[str, JsonSchema], Field(min_length=1)] | None = None

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        calls = self.calls(trajectory)
        if not calls:
            return no_tool_calls()
        judged = self._judged(trajectory, calls)
        if not judged:
            return self._nothing_judged()
        for _, call, _ in judged:
            if call.arguments is UNRECORDED:
                return unrecorded(trajectory, "arguments", call.name)
        invalid = [
            (position, call, problems)
            for position, call, check in judged
            if (problems := check.problems(arguments(call)))
        ]
        details = {"calls": len(judged), "invalid": [_entry(*each) for each in invalid]}
        return Score(1 - len(invalid) / len(judged), _reason(len(judged), invalid), details)

    def _judged(
        self, trajectory: Trajectory, calls: Sequence[ToolCall]
    ) -> "list[tuple[int, ToolCall, SchemaCheck]]":
        checks = self._own if self.schemas else None
        recorded = {} if self.schemas else _recorded(trajectory)
        judged = []
        for position, call in enumerate(calls, start=1):
            check = checks.get(call.name) if checks is not None else _of(recorded, call)
            if check is not None:
                judged.append((position, call, check))
        return judged

    def _nothing_judged(self) -> Skip:
        if self.schemas:
            return Skip("no_tool_calls", f"none called of {listed(list(self.schemas))}")
        return Skip(
            "tools_unknown",
            "the trace records no usable definition of the tools called: give schemas",
        )

    @cached_property
    def _own(self) -> "Mapping[str, SchemaCheck]":
        return {tool: _check(schema) for tool, schema in (self.schemas or {}).items()}


def _recorded(trajectory: Trajectory) -> dict[tuple[str, str | None], Json]:
    """The definitions by tool and by the agent that had it."""
    return {
        (tool.name, tool.agent): tool.parameters
        for tool in trajectory.available_tools
        if tool.parameters is not None
    }


def _of(recorded: Mapping[tuple[str, str | None], Json], call: ToolCall) -> "SchemaCheck | None":
    definition = recorded.get((call.name, call.agent), recorded.get((call.name, None)))
    if definition is None:
        return None
    try:
        return _recorded_check(orjson.dumps(read_text(definition)))
    except orjson.JSONEncodeError:
        return None


@lru_cache(maxsize=1024)
def _recorded_check(definition: bytes) -> "SchemaCheck | None":
    """None for a definition that is no JSON Schema: it is the trace's fault, not the call's."""
    try:
        return _check(orjson.loads(definition))
    except ValueError:
        return None


def _entry(position: int, call: ToolCall, problems: "Sequence[Problem]") -> dict[str, Json]:
    return {
        "tool": call.name,
        "position": position,
        "problems": [
            {"path": each.path, "keyword": each.keyword, "message": each.message}
            for each in problems
        ],
    }


def _reason(judged: int, invalid: "Sequence[tuple[int, ToolCall, Sequence[Problem]]]") -> str:
    if not invalid:
        return f"the arguments of {plural(judged, 'call')} are valid"
    where = [
        f"{call.name} (call {position}: {listed([str(each) for each in problems], most=3)})"
        for position, call, problems in invalid
    ]
    return f"{len(invalid)} of {plural(judged, 'call')} with invalid arguments: {listed(where)}"
