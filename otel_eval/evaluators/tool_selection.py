"""Was each tool the right one, at the right moment?"""

from typing import Literal

from otel_eval.evaluators.judging import JudgeEvaluator
from otel_eval.judge import prompts
from otel_eval.model import Score, Skip, ToolCall, Trajectory


class ToolSelectionAccuracy(JudgeEvaluator):
    """One judgement per tool call, from what was known when it was made."""

    type: Literal["tool-selection-accuracy"] = "tool-selection-accuracy"

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score | Skip:
        system = prompts.system_text(
            self.system_prompt or prompts.TOOL_SELECTION, rubric=self.rubric
        )
        return self.ask_yes_or_no(system, trajectory, call)
