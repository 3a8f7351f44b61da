"""trajectory-match: the calls made against the calls expected, in one of five ways."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from otel_eval.evaluators.base import Evaluator, Settings, listed, plural
from otel_eval.evaluators.call_index import MISSING, NO_CALLS, Expectation, Path, at, index
from otel_eval.evaluators.capture import incomplete, unrecorded
from otel_eval.evaluators.edit_script import (
    Edit,
    changes_in_any_order,
    changes_in_order,
    edit_script,
    told,
)
from otel_eval.evaluators.matchers import (
    Pattern,
    compile_args,
    compile_fields,
    compile_pattern,
    object_pattern,
)
from otel_eval.evaluators.matching import Masks, Pairs, align, bits, pair
from otel_eval.evaluators.values import arguments
from otel_eval.model import Json, Score, Skip, ToolCall, Trajectory

Mode: TypeAlias = Literal["exact", "in_order", "any_order", "unordered", "subset"]
ArgsMode: TypeAlias = Literal["exact", "subset", "superset", "ignore"]

_MOST_EDITS: Final = 5
_NULL_OR_ABSENT: Final = Pattern(key=object(), test=lambda value: value is None, absent=True)


def _read_tool_args(given: object) -> object:
    if given in get_args(ArgsMode):
        return given
    if isinstance(given, list | tuple) and given and all(isinstance(key, str) for key in given):
        return tuple(given)
    raise ValueError(f"takes one of {', '.join(get_args(ArgsMode))}, or a list of argument keys")


ToolArgs: TypeAlias = Annotated[ArgsMode | tuple[str, ...], BeforeValidator(_read_tool_args)]


class ExpectedCall(Settings):
    """A call to be made. Without `args`, and for a bare name, any arguments fit."""

    name: str = Field(min_length=1)
    args: dict[str, Json] | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"name": given}
        if isinstance(given, Mapping) and "tool" in given and "name" not in given:
            return {"name" if key == "tool" else key: value for key, value in given.items()}
        return given

    @field_validator("args")
    @classmethod
    def _check_matchers(cls, args: dict[str, Json] | None) -> dict[str, Json] | None:
        compile_args(args or {}, "", remedy="leave args out to take any arguments")
        return args

    def expectation(self, mode: ArgsMode | tuple[str, ...]) -> Expectation:
        """What the arguments must be. The modes say what the arguments *made* are of these."""
        if self.args is None or mode == "ignore":
            return Expectation({}, may_have_more=True)
        if isinstance(mode, tuple):
            return Expectation(_at_paths(self.args, mode), may_have_more=True)
        fields = compile_fields(self.args)
        everything = object_pattern(fields)
        return Expectation(
            {(name,): pattern for name, pattern in fields.items()},
            may_lack=mode == "subset",
            may_have_more=mode == "superset",
            whole=everything.key if mode == "exact" and everything.plain else None,
        )


_CALL_SCHEMA: Final = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        *(
            {
                "type": "object",
                "properties": {
                    name: {"type": "string", "minLength": 1},
                    "args": {"type": "object"},
                },
                "required": [name],
                "additionalProperties": False,
            }
            for name in ("name", "tool")
        ),
    ]
}


def _at_paths(args: dict[str, Json], names: Sequence[str]) -> dict[Path, Pattern]:
    """`to`, or `options.cc` for a key further down.

    As in LangChain, where such lists come from, null at a key is the same as no such key.
    """
    fields: dict[Path, Pattern] = {}
    for name in names:
        path = (name,) if name in args else tuple(name.split("."))
        value = at(args, path)
        is_nothing = value is MISSING or value is None
        fields[path] = _NULL_OR_ABSENT if is_nothing else compile_pattern(value, name)
    return fields


class TrajectoryMatch(Evaluator):
    """The expected calls were made: 1 or 0, or with `partial` an F1 over the best alignment.

    exact: these calls in this order, no others. in_order: others may come between. any_order: these
    and maybe others. unordered: these and no others. subset: some of these, no others. What a mode
    forgives costs nothing with `partial` either, so 1 means a match in both.
    """

    reads_conversation: ClassVar[bool] = False
    type: Literal["trajectory-match"] = "trajectory-match"
    expected: tuple[Annotated[ExpectedCall, WithJsonSchema(_CALL_SCHEMA)], ...]
    mode: Mode = "exact"
    args: ArgsMode = "exact"
    tool_args: dict[str, ToolArgs] = Field(default_factory=dict)
    partial: bool = False

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        if not trajectory.whole:
            return incomplete(trajectory)
        calls = self.calls(trajectory)
        pairs = self._met_in_order(calls)
        value = self._value(len(pairs), len(calls))
        if not pairs:
            certain, possible = self._relation(calls)
            pairs = self._paired(certain, len(calls))
            value = self._value(len(pairs), len(calls))
            if possible != certain and self._best(possible, calls) != value:
                return unrecorded(trajectory, "arguments", _hidden(certain, possible, calls))
        script = self._script(pairs, calls)
        details = {"edit_script": script, "matched": len(pairs)}
        return Score(value, self._reason(len(pairs), script), details)

    @cached_property
    def _expectations(self) -> list[tuple[str, Expectation]]:
        modes = self.tool_args
        return [
            (each.name, each.expectation(modes.get(each.name, self.args))) for each in self.expected
        ]

    @cached_property
    def _names(self) -> list[str]:
        return [each.name for each in self.expected]

    def _met_in_order(self, calls: Sequence[ToolCall]) -> Pairs:
        """Pairs of all that is expected, if it came one after the other; no mode can have more."""
        pairs: Pairs = []
        waiting = self._expectations
        for j, call in enumerate(calls):
            if len(pairs) == len(waiting):
                break
            name, expectation = waiting[len(pairs)]
            if call.name == name and expectation.accepts(call.arguments):
                pairs.append((len(pairs), j))
        return pairs if len(pairs) == len(waiting) else []

    def _relation(self, calls: Sequence[ToolCall]) -> tuple[Masks, Masks]:
        """Which calls fit, and which might if their arguments had been recorded."""
        tools = index(calls)
        certain: list[int] = []
        possible: list[int] = []
        for name, expectation in self._expectations:
            tool = tools.get(name, NO_CALLS)
            fitting = tool.fitting(expectation)
            hidden = tool.unrecorded if expectation.needs_arguments else 0
            certain.append(fitting)
            possible.append(fitting | hidden if hidden else fitting)
        return certain, possible

    def _best(self, possible: Masks, calls: Sequence[ToolCall]) -> float:
        return self._value(len(self._paired(possible, len(calls))), len(calls))

    def _paired(self, masks: Masks, actual: int) -> Pairs:
        if self._ordered:
            return align(masks, actual)
        return sorted(pair(masks).items())

    @property
    def _ordered(self) -> bool:
        return self.mode in ("exact", "in_order")

    @property
    def _extra_allowed(self) -> bool:
        return self.mode in ("in_order", "any_order")

    @property
    def _missing_allowed(self) -> bool:
        return self.mode == "subset"

    def _value(self, found: int, actual: int) -> float:
        extra = 0 if self._extra_allowed else actual - found
        missing = 0 if self._missing_allowed else len(self.expected) - found
        if not extra and not missing:
            return 1.0
        return 2 * found / (2 * found + extra + missing) if self.partial else 0.0

    def _script(self, kept: Pairs, calls: Sequence[ToolCall]) -> list[Edit]:
        """What to do differently; what the mode forgives is left out."""
        made = [call.name for call in calls]
        find = changes_in_order if self._ordered else changes_in_any_order

        def likeness(i: int, j: int) -> float:
            return self._expectations[i][1].likeness(arguments(calls[j]))

        found = find(kept, self._names, made, likeness)
        changed = {(i, j): self._wrong(i, calls[j]) for i, j in found}
        script = edit_script(self._names, made, kept=kept, changed=changed)
        forgiven = {"drop"} if self._extra_allowed else {"add"} if self._missing_allowed else set()
        return [edit for edit in script if edit["op"] not in forgiven] if forgiven else script

    def _wrong(self, position: int, call: ToolCall) -> list[str]:
        return self._expectations[position][1].differences(arguments(call))

    def _reason(self, matched: int, script: Sequence[Edit]) -> str:
        found = f"{matched} of {plural(len(self.expected), 'expected call')} found ({self.mode})"
        edits = [edit for edit in script if edit["op"] != "keep"]
        if not edits:
            return found
        shown = [told(edit) for edit in edits[:_MOST_EDITS]]
        return f"{found}; to match: {listed(shown, most=_MOST_EDITS, total=len(edits))}"


def _hidden(certain: Masks, possible: Masks, calls: Sequence[ToolCall]) -> str:
    """The first tool whose arguments would have decided."""
    hidden = 0
    for sure, maybe in zip(certain, possible, strict=True):
        hidden |= maybe & ~sure
    return calls[next(bits(hidden))].name
