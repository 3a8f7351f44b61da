"""Asks judges: within the budget, once per question, never for longer than allowed."""

import json
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from inspect import isawaitable
from threading import BoundedSemaphore
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from pydantic import ValidationError

from otel_eval.judge.answers import Answer
from otel_eval.judge.budget import Budget
from otel_eval.judge.cache import Cache
from otel_eval.judge.fence import fenced, new_nonce
from otel_eval.judge.frame import Frames
from otel_eval.judge.loop import Loop
from otel_eval.judge.meters import JudgeCall, Result, report
from otel_eval.judge.question import (
    BudgetError,
    Judge,
    JudgeAnswerError,
    JudgeError,
    Question,
    Section,
)
from otel_eval.judge.redaction import Redactor
from otel_eval.judge.truncation import fitted
from otel_eval.model import Skip

A = TypeVar("A", bound=Answer)


@dataclass(slots=True)
class Meter:
    """What one question takes."""

    budget: Budget
    deadline: float
    input_tokens: int = 0
    output_tokens: int = 0
    is_paid: bool = True
    """The first request is: whoever asks has taken it from the budget."""

    def request(self) -> None:
        """Before each request to a model, retries included; raises BudgetError."""
        if not self.is_paid:
            self.budget.take()
        self.is_paid = False

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def add(self, input_tokens: int, output_tokens: int) -> None:
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens


class ModelJudge(Protocol):
    """A model behind a library, which knows what it uses."""

    def __call__(self, question: Question, meter: Meter, /) -> Coroutine[Any, Any, Answer]: ...


Asked: TypeAlias = str | Judge
"""A model by its name, or whoever was handed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    timeout: float = 30.0
    max_concurrency: int = 4
    max_calls_per_minute: int = 60
    max_input_chars: int = 60_000


@dataclass(kw_only=True)
class JudgeClient:
    """Shared by all judges of a configuration, so that its limits hold for all of them together."""

    models: Callable[[], Mapping[str, ModelJudge]] = dict
    """Makes the models by name; again in a forked child, where no connection may be shared."""
    limits: Limits = field(default_factory=Limits)
    redactor: Redactor = field(default_factory=Redactor)
    cache: Cache | None = None
    circumstances: str = ""
    """What else decides an answer, such as the temperature: part of the cache's keys."""
    patient: bool = False
    """Wait for the budget instead of skipping; for commands, where somebody waits anyway."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._start_clean()

    def _start_clean(self) -> None:
        self._process = os.getpid()
        self.frames = Frames(self.redactor)
        self._models = self.models()
        self._loop = Loop()
        self._budget = Budget(self.limits.max_calls_per_minute, self.clock)
        self._slots = BoundedSemaphore(self.limits.max_concurrency)

    def ask(
        self, asked: Asked, system: str, sections: Iterable[Section], answer: type[A]
    ) -> A | Skip:
        """The answer, or why there is none; raises JudgeError, or what a handed-in judge raises."""
        shown = fitted(list(sections), self.limits.max_input_chars)
        key = self._key(asked, system, shown, answer)
        known = self._known(key, answer)
        if known is not None:
            report(JudgeCall(model=name_of(asked), result="cached"))
            return known
        question = Question(system=system, prompt=fenced(shown, new_nonce()), answer=answer)
        found = self._ask(asked, question)
        if isinstance(found, Skip):
            return found
        if key is not None and self.cache is not None:
            self.cache.put(key, found.model_dump_json())
        return cast(A, found)

    def _key(
        self, asked: Asked, system: str, shown: Iterable[Section], answer: type[Answer]
    ) -> str | None:
        """None for a judge that was handed in: its answers may depend on anything."""
        if self.cache is None or not isinstance(asked, str):
            return None
        told = [[section.title, *section.entries] for section in shown]
        parts = [asked, self.circumstances, system, told, answer.model_json_schema()]
        return blake2b(json.dumps(parts).encode(), digest_size=20).hexdigest()

    def _known(self, key: str | None, answer: type[A]) -> A | None:
        text = self.cache.get(key) if self.cache is not None and key is not None else None
        try:
            return answer.model_validate_json(text) if text is not None else None
        except ValidationError:
            return None

    def _ask(self, asked: Asked, question: Question) -> Answer | Skip:
        if os.getpid() != self._process:
            self._start_clean()
        with self._slots:
            try:
                self._pay()
            except BudgetError as error:
                report(JudgeCall(model=name_of(asked), result="budget"))
                return _skip(error, self.limits)
            return self._ask_metered(asked, question)

    def _pay(self) -> None:
        """For the first request. Others that wait may be quicker, so patience tries again."""
        while True:
            try:
                return self._budget.take()
            except BudgetError:
                if not self.patient:
                    raise
            self.sleep(self._budget.wait())

    def _ask_metered(self, asked: Asked, question: Question) -> Answer | Skip:
        started = time.monotonic()
        meter = Meter(self._budget, started + self.limits.timeout)
        try:
            found = self._answer(asked, question, meter)
        # A judge may be anyone's code: what it raises is counted, and told by the caller.
        except Exception as error:
            _report(asked, _result(error), meter, started)
            return _skip(error, self.limits)
        _report(asked, "ok", meter, started)
        return found

    def _answer(self, asked: Asked, question: Question, meter: Meter) -> Answer:
        if isinstance(asked, str):
            return self._loop.run(self._models[asked](question, meter), self.limits.timeout)
        meter.request()
        given = asked(question)
        if isawaitable(given):
            given = self._loop.run(_awaited(given), self.limits.timeout)
        return _validated(given, question.answer)


async def _awaited(given: Any) -> Any:
    return await given


def _validated(given: Any, answer: type[Answer]) -> Answer:
    try:
        return answer.model_validate(given)
    except ValidationError:
        fields = " and ".join(answer.model_fields)
        raise JudgeAnswerError(f"the judge's answer does not have {fields}") from None


def name_of(asked: Asked) -> str:
    if isinstance(asked, str):
        return asked
    name = getattr(asked, "__qualname__", None) or type(asked).__qualname__
    return f"{asked.__module__}:{name}"


def _result(error: Exception) -> Result:
    match error:
        case BudgetError():
            return "budget"
        case TimeoutError():
            return "timeout"
        case JudgeError():
            return cast(Result, error.result)
    return "error"


def _skip(error: Exception, limits: Limits) -> Skip:
    match error:
        case BudgetError():
            return Skip("budget", f"{error} (judge.max_calls_per_minute)")
        case TimeoutError():
            return Skip("timeout", f"no answer within {limits.timeout:g} s (judge.timeout)")
    raise error


def _report(asked: Asked, result: Result, meter: Meter, started: float) -> None:
    report(
        JudgeCall(
            model=name_of(asked),
            result=result,
            input_tokens=meter.input_tokens,
            output_tokens=meter.output_tokens,
            seconds=None if result == "budget" else time.monotonic() - started,
        )
    )
