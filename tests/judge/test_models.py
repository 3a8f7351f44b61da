import json
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, InstrumentationSettings

from otel_eval.errors import ConfigError
from otel_eval.judge.answers import Answer, Grade, YesOrNo
from otel_eval.judge.client import JudgeClient, Limits
from otel_eval.judge.meters import JudgeCall, collecting
from otel_eval.judge.models import PydanticAiJudge
from otel_eval.judge.question import (
    JudgeAnswerError,
    JudgeRefusedError,
    JudgeServiceError,
    Section,
)
from otel_eval.model import Skip
from tests.judge import server
from tests.judge.server import ChatServer, Reply, serving

MODEL = "openai:local"
NO_CHOICES = {**server.completion({}), "choices": []}
SECTIONS = [Section(title="What happened:", entries=("a", "b"), share=1.0)]


class Asker:
    """A client whose pauses between tries are noted, not waited for."""

    def __init__(self, at: ChatServer, temperature: float | None = None, **limits: Any) -> None:
        self.pauses: list[float] = []
        self.calls: list[JudgeCall] = []
        self._judge = PydanticAiJudge(
            MODEL, base_url=at.base_url, temperature=temperature, pause=self._pause
        )
        self._client = JudgeClient(models=lambda: {MODEL: self._judge}, limits=Limits(**limits))

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def ask(self, answer: type[Answer] = YesOrNo) -> Answer | Skip:
        with collecting() as self.calls:
            return self._client.ask(MODEL, "Judge.", SECTIONS, answer)

    @property
    def results(self) -> list[str]:
        return [call.result for call in self.calls]


@pytest.fixture
def chat(request: pytest.FixtureRequest) -> Iterator[ChatServer]:
    script: list[Reply] = request.param
    with serving(*script) as running:
        yield running


def scripted(*script: Reply) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("chat", [script], indirect=True, ids=["chat"])


@scripted(server.says("No", "step by step"))
def test_the_answer_comes_with_its_reasoning_and_what_it_took(chat: ChatServer) -> None:
    asker = Asker(chat)

    assert asker.ask() == YesOrNo(reasoning="step by step", answer="No")

    (call,) = asker.calls
    assert (call.model, call.result) == (MODEL, "ok")
    assert (call.input_tokens, call.output_tokens) == (100, 10)
    assert call.seconds is not None


@scripted(server.grades(0.25))
def test_a_score_is_asked_for_within_0_and_1(chat: ChatServer) -> None:
    assert Asker(chat).ask(Grade) == Grade(reasoning="because", score=0.25)

    parameters = chat.requests[0]["tools"][0]["function"]["parameters"]
    assert list(parameters["properties"]) == ["reasoning", "score"]


@scripted(server.says())
def test_the_reasoning_is_asked_for_before_the_answer(chat: ChatServer) -> None:
    Asker(chat).ask()

    parameters = chat.requests[0]["tools"][0]["function"]["parameters"]
    assert list(parameters["properties"]) == ["reasoning", "answer"]
    assert parameters["properties"]["answer"]["enum"] == ["Yes", "No"]


@scripted(server.says())
def test_a_temperature_is_sent_only_if_configured(chat: ChatServer) -> None:
    Asker(chat).ask()
    Asker(chat, temperature=0.0).ask()

    assert "temperature" not in chat.requests[0]
    assert chat.requests[1]["temperature"] == 0.0


@scripted(server.fails(429, retry_after="7"), server.fails(503), server.says())
def test_trouble_that_may_pass_is_waited_out_as_the_service_asks(chat: ChatServer) -> None:
    asker = Asker(chat)

    assert isinstance(asker.ask(), YesOrNo)

    assert asker.pauses == [7.0, 1.0]
    assert len(chat.requests) == 3
    assert asker.results == ["ok"]


@scripted(server.fails(429, retry_after="40"))
def test_a_wait_beyond_the_time_limit_is_not_begun(chat: ChatServer) -> None:
    asker = Asker(chat, timeout=30.0)

    assert asker.ask() == Skip("timeout", "no answer within 30 s (judge.timeout)")

    assert asker.pauses == []
    assert asker.results == ["timeout"]


@scripted(server.disconnects(), server.disconnects(), server.says())
def test_a_broken_connection_is_tried_again(chat: ChatServer) -> None:
    asker = Asker(chat)

    assert isinstance(asker.ask(), YesOrNo)

    assert asker.pauses == [0.5, 1.0]


@scripted(server.fails(500))
def test_a_service_that_stays_down_is_a_failure_after_four_tries(chat: ChatServer) -> None:
    asker = Asker(chat)

    with pytest.raises(JudgeServiceError, match="local: HTTP 500"):
        asker.ask()

    assert len(chat.requests) == 4
    assert asker.results == ["error"]


@scripted(server.fails(401))
def test_what_will_not_pass_is_not_tried_again(chat: ChatServer) -> None:
    with pytest.raises(JudgeServiceError, match="local: HTTP 401"):
        Asker(chat).ask()

    assert len(chat.requests) == 1


@scripted(server.arguments("{broken"), server.arguments('{"answer": "Maybe"}'), server.says())
def test_an_answer_that_does_not_fit_is_asked_for_again(chat: ChatServer) -> None:
    asker = Asker(chat)

    assert isinstance(asker.ask(), YesOrNo)

    assert len(chat.requests) == 3
    assert asker.calls[0].input_tokens == 300


@scripted(server.arguments("{broken"))
def test_a_model_that_never_fits_is_a_failure_that_quotes_nothing(chat: ChatServer) -> None:
    asker = Asker(chat)

    with pytest.raises(JudgeAnswerError) as caught:
        asker.ask()

    assert "broken" not in str(caught.value)
    assert asker.results == ["invalid"]


@pytest.mark.parametrize(
    "chat",
    [[server.body("<html>a secret")], [server.body(json.dumps(NO_CHOICES))]],
    indirect=True,
    ids=["no JSON", "no choices"],
)
def test_a_server_that_speaks_something_else_is_a_failure_that_quotes_nothing(
    chat: ChatServer,
) -> None:
    asker = Asker(chat)

    with pytest.raises(JudgeServiceError, match=r"^openai:local: no usable reply \(\w+\)$"):
        asker.ask()

    assert asker.results == ["error"]


@scripted(server.refuses())
def test_a_refusal_is_a_failure_of_its_own(chat: ChatServer) -> None:
    asker = Asker(chat)

    with pytest.raises(JudgeRefusedError):
        asker.ask()

    assert asker.results == ["refused"]


def test_a_slow_answer_is_skipped_when_the_time_is_up() -> None:
    released = Event()
    with serving(server.first(lambda: released.wait(10), server.says())) as chat:
        asker = Asker(chat, timeout=0.2)

        assert asker.ask() == Skip("timeout", "no answer within 0.2 s (judge.timeout)")

        released.set()
    assert asker.results == ["timeout"]


@scripted(server.fails(500), server.says())
def test_every_try_counts_against_the_budget(chat: ChatServer) -> None:
    asker = Asker(chat, max_calls_per_minute=1)

    assert isinstance(asker.ask(), Skip)

    assert len(chat.requests) == 1
    assert asker.results == ["budget"]


def test_a_missing_key_is_a_problem_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(ConfigError, match=r"openai:gpt-5-mini cannot be used.*OPENAI_API_KEY"):
        PydanticAiJudge("openai:gpt-5-mini")


@pytest.mark.parametrize("name", ["nobody:model", "anthropic:claude-sonnet-4-5"])
def test_an_unknown_provider_or_a_missing_package_is_one_too(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    with pytest.raises(ConfigError, match=f"{name} cannot be used"):
        PydanticAiJudge(name)


@scripted(server.says())
def test_what_is_shown_is_instructions_and_then_fenced_data(chat: ChatServer) -> None:
    Asker(chat).ask()

    (_, system), (role, prompt) = chat.messages()
    head, _, data = prompt.partition("\n\n")
    nonce = data.split("<<<")[1].splitlines()[0]
    assert (system, role) == ("Judge.", "user")
    assert f"a line <<<{nonce} and a line {nonce}>>>" in head
    assert data == f"What happened:\n<<<{nonce}\na\nb\n{nonce}>>>"
    assert json.dumps(chat.requests[0]["tools"]).count("reasoning")


@scripted(server.says())
def test_a_judge_is_no_agent_to_be_traced_and_judged_in_turn(chat: ChatServer) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    try:
        assert isinstance(Asker(chat).ask(), YesOrNo)
    finally:
        Agent.instrument_all(False)

    assert exporter.get_finished_spans() == ()
