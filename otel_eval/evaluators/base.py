"""What an evaluator is: a frozen model whose fields are its YAML."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from otel_eval.evaluators.capture import no_tool_calls
from otel_eval.evaluators.values import failed
from otel_eval.frozen import Frozen
from otel_eval.model import Outcome, Score, Skip, ToolCall, Trajectory, Verdict

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


class Settings(Frozen):
    """A part of the configuration: frozen, closed, written in snake_case or in camelCase."""

    model_config = ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _read_names(cls, given: Any) -> Any:
        return _snake_case(cls, given) if isinstance(given, Mapping) else given


def _snake_case(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of this model only; what lies deeper may be a user's own data."""
    read: dict[str, Any] = {}
    for name, value in given.items():
        snake = _CAPITAL.sub(r"_\1", name).lower() if isinstance(name, str) else name
        known = snake in model.model_fields or snake == "default_evaluation_criteria"
        target = snake if known else name
        if target in read:
            raise ValueError(f"{target} is given twice, in two spellings")
        read[target] = value
    return read


class Evaluator(Settings):
    """Judges a trajectory. Subclasses implement `evaluate`, or `evaluate_call` to judge each call.

    `evaluate` answers with a Score or, where nothing can be said, with a Skip. It may raise: the
    caller turns that into a Failure.
    """

    type: str = ""
    name: str = ""
    """Unique in its rule; the type unless given."""
    pass_at: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    attempts: Literal["all", "succeeded"] = "all"
    """`succeeded`: calls that failed are left out before anything is judged."""

    reads_conversation: ClassVar[bool] = True
    """Whether it looks at a trajectory's messages, input, output or available tools.

    They are extracted only where a rule has an evaluator that does: to parse them is the dearest
    part of reading a trace.
    """
    needs_model: ClassVar[bool] = False
    """Whether a model is asked, so that scores may take seconds."""

    @model_validator(mode="before")
    @classmethod
    def _read_default_criteria(cls, given: Any) -> Any:
        """UiPath keeps the expectations under `default_evaluation_criteria`; own fields win."""
        if not isinstance(given, Mapping):
            return given
        own = _snake_case(cls, given)
        criteria = own.pop("default_evaluation_criteria", None)
        if criteria is None:
            return own
        if not isinstance(criteria, Mapping):
            raise ValueError("default_evaluation_criteria takes the evaluator's own fields")
        return {**_snake_case(cls, criteria), **own}

    def model_post_init(self, _context: Any, /) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.type or type(self).__name__)

    @cached_property
    def is_one_question(self) -> bool:
        """Whether `evaluate` says all there is to say, always, so that nothing else is asked."""
        own = type(self)
        return (
            own.withheld is Evaluator.withheld
            and own.outcomes is Evaluator.outcomes
            and not own.per_call()
        )

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        """Judge the trajectory as a whole."""
        raise NotImplementedError(f"{type(self).__name__} implements neither form of evaluate")

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score | Skip:
        """Judge one of its tool calls."""
        raise NotImplementedError(f"{type(self).__name__} judges whole trajectories")

    @classmethod
    def per_call(cls) -> bool:
        """Whether there is one evaluation per tool call."""
        return cls.evaluate_call is not Evaluator.evaluate_call

    def withheld(
        self,
        trajectory: Trajectory,  # noqa: ARG002  # for evaluators that choose what is worth it
        verdicts: Callable[[], Collection[Verdict]],  # noqa: ARG002
    ) -> Skip | None:
        """Why it is not run at all. `verdicts`: of the rule's evaluators that ask no model."""
        return None

    def outcomes(self, trajectory: Trajectory) -> Iterable[tuple[ToolCall | None, Outcome]]:
        """Everything there is to say: one outcome, or one per tool call."""
        considered = self.considered(trajectory)
        if not self.per_call():
            return [(None, self.evaluate(considered))]
        if not considered.tool_calls:
            return [(None, no_tool_calls())]
        return [(call, self.evaluate_call(considered, call)) for call in considered.tool_calls]

    def considered(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with the calls that count for this evaluator."""
        if self.attempts == "all":
            return trajectory
        return replace(trajectory, tool_calls=self.calls(trajectory))

    def calls(self, trajectory: Trajectory) -> Sequence[ToolCall]:
        """The tool calls that count for this evaluator."""
        if self.attempts == "all":
            return trajectory.tool_calls
        return [call for call in trajectory.tool_calls if not failed(call)]


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(
    names: Sequence[str], *, most: int = 5, separator: str = ", ", total: int | None = None
) -> str:
    """Names for a sentence; long lists are cut, because reasons are read in alerts.

    `total` is given where `names` are only the first of more.
    """
    more = (len(names) if total is None else total) - most
    shown = [*names[:most], f"{more} more"] if more > 0 else names
    return separator.join(shown)
