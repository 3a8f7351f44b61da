"""How to make each dialect record what it leaves out unless asked."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from otel_eval.model import Skip, Trajectory

_HOW: Final[Mapping[str, str]] = {
    "openinference": "set OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS to false",
    "genai": (
        "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT to true "
        "(to SPAN_ONLY with the experimental conventions)"
    ),
    "traceloop": "set TRACELOOP_TRACE_CONTENT to true",
    "vercel": "set recordInputs and recordOutputs to true in experimental_telemetry",
    "langfuse": "set LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED to true",
    "mlflow": "call set_inputs and set_outputs on the tool's span",
    "adk": "set ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS to true",
    "mcp": "record gen_ai.tool.call.arguments and gen_ai.tool.call.result on the tool's span",
    "plain": "set input.value and output.value on the tool's span",
    "pydantic-ai": "set include_content to true in InstrumentationSettings",
    "agent-framework": "set ENABLE_SENSITIVE_DATA to true",
    "semantic-kernel": (
        "set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE to true"
    ),
}
_GENERAL: Final = "turn content capture on in the agent's instrumentation"


def how_to_record(dialect: str | None) -> str:
    """What to change; a refinement such as `genai/strands` falls back to its family."""
    if dialect is None:
        return _GENERAL
    name = dialect.replace("_", "-")
    for part in (name, *reversed(re.split(r"[/.:+ ]", name))):
        if part in _HOW:
            return _HOW[part]
    return _GENERAL


def unrecorded(trajectory: Trajectory, what: Literal["arguments", "output"], tool: str) -> Skip:
    """The skip for a value that would have decided the score."""
    hint = how_to_record(trajectory.dialect)
    if what == "arguments":
        return Skip("arguments_unrecorded", f"arguments of {tool} were not recorded: {hint}")
    return Skip("output_unrecorded", f"output of {tool} was not recorded: {hint}")


def incomplete(trajectory: Trajectory) -> Skip:
    """The skip for a trajectory from which calls may be missing."""
    return Skip(
        "incomplete",
        f"the trace is incomplete (closed by {trajectory.closed_by}), so calls may be missing: "
        "wait longer for its root, or set incomplete: score on the rule",
    )


def no_tool_calls() -> Skip:
    return Skip("no_tool_calls", "no tool was called, so there is nothing to judge")
