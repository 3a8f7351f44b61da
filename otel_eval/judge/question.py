"""What a judge is asked, and the protocol for whoever answers."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from otel_eval.judge.answers import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of what the judge is shown: recorded text, and so never to be obeyed."""

    title: str
    entries: tuple[str, ...]
    share: float
    """Of all the characters there may be; what other sections leave over comes on top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request to a judge."""

    system: str
    prompt: str
    answer: type[Answer]
    """The schema of the answer."""


Given: TypeAlias = Any
"""An instance of the question's `answer`, or a mapping with its fields."""


class Judge(Protocol):
    """Whoever answers, plain or async. A plain one that blocks is not cut off by the timeout."""

    def __call__(self, question: Question, /) -> Given | Awaitable[Given]: ...


class JudgeError(Exception):
    """A judgement that was not to be had. Messages never quote what was judged."""

    result = "error"


class JudgeRefusedError(JudgeError):
    """The model would not answer."""

    result = "refused"


class JudgeAnswerError(JudgeError):
    """What came back is no answer to the question."""

    result = "invalid"


class JudgeServiceError(JudgeError):
    """The model's service failed, or would not let us in."""


class BudgetError(Exception):
    """As many calls as are allowed in a minute have been made."""
