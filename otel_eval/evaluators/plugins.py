"""Evaluators from outside: by entry point, or as `module:Name`.

A plug-in is a subclass of Evaluator, or a function of a trajectory that returns a bool, a float, a
Score or a Skip. The function's keyword parameters are its fields in the rule file.
"""

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar, Final, TypeAlias, get_type_hints

from pydantic import create_model

from otel_eval.evaluators.base import Evaluator
from otel_eval.model import Score, Skip, Trajectory

GROUP: Final = "otel_eval.evaluators"
Function: TypeAlias = Callable[..., bool | float | Score | Skip]
_Kind: Final = inspect.Parameter


class PluginError(ValueError):
    """A plug-in that cannot be used."""


class FunctionEvaluator(Evaluator):
    """A plain function as an evaluator."""

    function: ClassVar[Function]
    parameters: ClassVar[tuple[str, ...]] = ()

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        given = {name: getattr(self, name) for name in self.parameters}
        return outcome(type(self).function(trajectory, **given))


def outcome(answer: object) -> Score | Skip:
    """What a function said, as an outcome."""
    if isinstance(answer, Score | Skip):
        return answer
    if isinstance(answer, bool | int | float) and 0 <= answer <= 1:
        return Score(float(answer))
    found = repr(answer) if isinstance(answer, int | float) else type(answer).__name__
    raise TypeError(f"returned {found}, not a bool, a float from 0 to 1, a Score or a Skip")


def names() -> list[str]:
    """The types that installed packages offer."""
    return sorted({each.name for each in entry_points(group=GROUP)})


def find(type_id: str) -> type[Evaluator] | None:
    """The plug-in of this type; None if there is none. Raises PluginError if it cannot be used."""
    if ":" in type_id:
        return _evaluator(_imported(type_id), type_id)
    for each in entry_points(group=GROUP, name=type_id):
        return _evaluator(_imported(each.value), type_id)
    return None


def _imported(target: str) -> Any:
    module, _, path = target.partition(":")
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    # Importing runs anyone's code, which may raise anything.
    except Exception as error:
        raise PluginError(
            f"{target} cannot be imported ({type(error).__name__}: {error})"
        ) from error
    return found


def _evaluator(found: Any, type_id: str) -> type[Evaluator]:
    if isinstance(found, type) and issubclass(found, Evaluator):
        return found
    if inspect.isfunction(found):
        return from_function(found, type_id)
    raise PluginError(f"{type_id} is neither a subclass of Evaluator nor a function")


@cache
def from_function(function: Function, type_id: str) -> type[FunctionEvaluator]:
    """An evaluator that asks the function."""
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise PluginError(f"{type_id} has an annotation that is not defined: {error}") from error
    _check_callable(function, type_id)
    settings = list(inspect.signature(function).parameters.values())[1:]
    fields: dict[str, Any] = {
        each.name: (hints.get(each.name, Any), ... if each.default is each.empty else each.default)
        for each in settings
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }
    made = create_model(
        getattr(function, "__name__", "Function"), __base__=FunctionEvaluator, **fields
    )
    made.function = staticmethod(function)
    made.parameters = tuple(fields)
    return made


def _check_callable(function: Function, type_id: str) -> None:
    """What could never be asked is told when the rules are read, not once per trace."""
    if inspect.iscoroutinefunction(function):
        raise PluginError(f"{type_id} is async; an evaluator answers at once")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind in (_Kind.KEYWORD_ONLY, _Kind.VAR_KEYWORD):
        raise PluginError(f"{type_id} takes no trajectory as its first parameter")
    for each in parameters[1:]:
        if each.name in Evaluator.model_fields:
            raise PluginError(f"{type_id} has a parameter {each.name}, which every evaluator has")
