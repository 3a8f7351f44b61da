"""Were the arguments of each tool call right, and grounded in what came before?"""

from typing import Literal

from otel_eval.evaluators.capture import unrecorded
from otel_eval.evaluators.judging import JudgeEvaluator
from otel_eval.judge import prompts
from otel_eval.model import UNRECORDED, Score, Skip, ToolCall, Trajectory


class ToolParameterAccuracy(JudgeEvaluator):
    """One judgement per tool call whose arguments were recorded."""

    type: Literal["tool-parameter-accuracy"] = "tool-parameter-accuracy"

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score | Skip:
        if call.arguments is UNRECORDED:
            return unrecorded(trajectory, "arguments", call.name)
        system = prompts.system_text(
            self.system_prompt or prompts.TOOL_PARAMETERS, rubric=self.rubric
        )
        return self.ask_yes_or_no(system, trajectory, call)
