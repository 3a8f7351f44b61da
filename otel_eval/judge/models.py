"""Models as judges, through pydantic-ai. Needs the extra `judge`; imported only where used."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.settings import ModelSettings

from otel_eval.errors import ConfigError
from otel_eval.judge.answers import Answer
from otel_eval.judge.client import Meter
from otel_eval.judge.question import (
    BudgetError,
    JudgeAnswerError,
    JudgeRefusedError,
    JudgeServiceError,
    Question,
)

TRIES: Final = 4
FIRST_PAUSE: Final = 0.5
"""Doubled from try to try, unless the service says how long to wait."""
ANSWER_RETRIES: Final = 2
"""How often a model is told that its answer does not fit the schema."""

PASSING: Final = (
    ModelRateLimitError,
    ModelUnavailableError,
    ModelServerError,
    ModelConnectionError,
)

Pause = Callable[[float], Awaitable[None]]


class PydanticAiJudge:
    """One model. Every request that it makes is metered, those of retries too.

    Connections last for one question: a handshake is nothing beside an answer, and so there are
    none to be closed when rules are reloaded, or to be shared with a forked child.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        temperature: float | None = None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._name = name
        self._base_url = base_url
        _model(name, base_url)  # raises now what would be wrong with every question
        # Reasoning models refuse a temperature, so none is sent unless somebody asked for it.
        self._settings = (
            ModelSettings() if temperature is None else ModelSettings(temperature=temperature)
        )
        self._pause = pause

    async def __call__(self, question: Question, meter: Meter, /) -> Answer:
        model = _Metered(_model(self._name, self._base_url), meter, self._pause)
        agent = Agent(
            model,
            output_type=question.answer,
            system_prompt=question.system,
            model_settings=self._settings,
            retries=ANSWER_RETRIES,
        )
        # Were the process to trace all its agents, the judge's own work would be judged in turn.
        agent.instrument = False
        try:
            async with model:
                return (await agent.run(question.prompt)).output
        except ContentFilterError as error:
            raise JudgeRefusedError("the model refused to judge this") from error
        except UnexpectedModelBehavior as error:
            raise JudgeAnswerError("the model gave no answer that fits the schema") from error
        except (BudgetError, TimeoutError):
            raise
        # The library and its clients may stumble over anything that a server sends.
        except Exception as error:
            raise JudgeServiceError(f"{self._name}: {_told(error)}") from error


class _Metered(WrapperModel):
    """Counts requests and tokens, and asks again where the trouble may pass."""

    def __init__(self, wrapped: Model, meter: Meter, pause: Pause) -> None:
        super().__init__(wrapped)
        self._meter = meter
        self._pause = pause

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        for attempt in range(1, TRIES + 1):
            self._meter.request()
            try:
                response = await super().request(messages, model_settings, model_request_parameters)
            except PASSING as error:
                if attempt == TRIES:
                    raise
                await self._wait(error, attempt)
            else:
                self._meter.add(response.usage.input_tokens, response.usage.output_tokens)
                return response
        raise AssertionError("the last try either returns or raises")

    async def _wait(self, error: ModelAPIError, attempt: int) -> None:
        """Not at all if the time would be up before the next try."""
        backing_off = FIRST_PAUSE * 2 ** (attempt - 1)
        seconds = backing_off if error.retry_after is None else error.retry_after
        if seconds >= self._meter.left():
            raise TimeoutError(f"the service asked for {seconds:g} s of patience") from error
        await self._pause(seconds)


def _model(name: str, base_url: str | None) -> Model:
    """OpenAI's own service gets its newest API; a `base_url` gets the chat API, which all speak."""
    kind, _, rest = name.partition(":")
    try:
        if kind == "openai" and base_url is not None:
            return infer_model(f"openai-chat:{rest}", lambda _: _openai_compatible(base_url))
        return infer_model(name, lambda provider: _without_retries(infer_provider(provider)))
    except (UserError, ValueError, ImportError) as error:
        raise ConfigError(f"the judge {name} cannot be used: {_first_sentence(error)}") from error


def _openai_compatible(base_url: str) -> Provider[Any]:
    from pydantic_ai.providers.openai import OpenAIProvider

    return _without_retries(OpenAIProvider(base_url=base_url))


def _without_retries(provider: Provider[Any]) -> Provider[Any]:
    """Retries are ours: a client that makes its own would spend calls that nobody counts."""
    if hasattr(provider.client, "max_retries"):
        provider.client.max_retries = 0
    return provider


def _told(error: Exception) -> str:
    """Without the error's own words, which may repeat what was sent."""
    match error:
        case ModelHTTPError():
            what = f"HTTP {error.status_code}"
        case ModelConnectionError():
            what = "no connection"
        case _:
            what = "no usable reply"
    return f"{what} ({type(error).__name__})"


def _first_sentence(error: Exception) -> str:
    return str(error).partition(". ")[0].rstrip(".")
