"""Did the agent, all in all, do what was expected of it?"""

from typing import Literal

from pydantic import Field

from otel_eval.evaluators.capture import incomplete
from otel_eval.evaluators.judging import JudgeEvaluator
from otel_eval.judge import prompts
from otel_eval.judge.answers import Grade
from otel_eval.judge.frame import Frame
from otel_eval.model import Score, Skip, Trajectory


class TrajectoryJudge(JudgeEvaluator):
    """One judgement of the whole; here a call that should have been made and was not is missed."""

    type: Literal["trajectory-judge"] = "trajectory-judge"
    expected_behavior: str = Field(min_length=1)

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        if not trajectory.whole:
            return incomplete(trajectory)
        system = prompts.system_text(
            self.system_prompt or prompts.TRAJECTORY,
            rubric=self.rubric,
            expected=self.expected_behavior,
        )
        sections = Frame(trajectory, self.client.redactor).of_all()
        grade = self.ask(system, sections, Grade)
        return grade if isinstance(grade, Skip) else Score(grade.score, grade.reasoning)
