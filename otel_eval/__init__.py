"""Scores what AI agents did, from the spans they already emit.

The names are imported when they are first used, so that `import otel_eval` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from otel_eval.config import Config
    from otel_eval.errors import ConfigError, DecodeError, OtelEvalError
    from otel_eval.evaluators.base import Evaluator
    from otel_eval.exporter import EvalSpanExporter
    from otel_eval.model import (
        UNRECORDED,
        Anchor,
        Evaluation,
        Event,
        Failure,
        Link,
        Message,
        ModelCall,
        Scope,
        Score,
        Skip,
        Span,
        Status,
        Tool,
        ToolCall,
        Trajectory,
    )
    from otel_eval.offline import evaluate, trajectories
    from otel_eval.processor import EvalSpanProcessor
    from otel_eval.rules import Alert, Match, Rule

__all__ = [
    "UNRECORDED",
    "Alert",
    "Anchor",
    "Config",
    "ConfigError",
    "DecodeError",
    "EvalSpanExporter",
    "EvalSpanProcessor",
    "Evaluation",
    "Evaluator",
    "Event",
    "Failure",
    "Link",
    "Match",
    "Message",
    "ModelCall",
    "OtelEvalError",
    "Rule",
    "Scope",
    "Score",
    "Skip",
    "Span",
    "Status",
    "Tool",
    "ToolCall",
    "Trajectory",
    "evaluate",
    "trajectories",
]

_HOMES: Final = {
    "Alert": "rules",
    "Config": "config",
    "ConfigError": "errors",
    "DecodeError": "errors",
    "EvalSpanExporter": "exporter",
    "EvalSpanProcessor": "processor",
    "Evaluator": "evaluators.base",
    "Match": "rules",
    "OtelEvalError": "errors",
    "Rule": "rules",
    "evaluate": "offline",
    "trajectories": "offline",
}
"""The modules of the names; all others are the model's."""


# Hidden from type checkers, which would take any name for one that is there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"otel_eval.{_HOMES.get(name, 'model')}")
        value = globals()[name] = getattr(module, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
