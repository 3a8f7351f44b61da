"""What a judge may answer. The reasoning comes first, so that the answer follows from it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """The only part of a judge's words that decides anything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasoning: str = Field(description="Step by step: what speaks for it, what against it.")


class YesOrNo(Answer):
    """Your judgement of the tool call."""

    answer: Literal["Yes", "No"] = Field(description="What follows from the reasoning.")


class Grade(Answer):
    """Your judgement of the whole trajectory."""

    score: float = Field(
        ge=0, le=1, allow_inf_nan=False, description="0 is wholly wrong, 1 is wholly right."
    )
