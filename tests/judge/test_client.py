import os
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest

from otel_eval.judge.answers import Answer, YesOrNo
from otel_eval.judge.budget import Budget
from otel_eval.judge.cache import Cache
from otel_eval.judge.client import JudgeClient, Limits, Meter, ModelJudge, name_of
from otel_eval.judge.meters import JudgeCall, collecting
from otel_eval.judge.question import Judge, JudgeAnswerError, Question, Section
from otel_eval.model import Skip

YES = YesOrNo(reasoning="because", answer="Yes")


def sections(*entries: str) -> list[Section]:
    return [Section(title="What happened:", entries=entries, share=1.0)]


def plain(question: Question) -> Any:
    assert question.answer is YesOrNo
    return {"reasoning": "because", "answer": "Yes"}


async def asynchronous(question: Question) -> Any:
    return question.answer.model_validate({"reasoning": "because", "answer": "Yes"})


class Object:
    def __call__(self, question: Question, /) -> Any:
        return plain(question)


def ask(client: JudgeClient, judge: Judge | str, *entries: str) -> Answer | Skip:
    return client.ask(judge, "Judge.", sections(*entries), YesOrNo)


@pytest.mark.parametrize("judge", [plain, asynchronous, Object()])
def test_any_callable_may_judge_plain_or_async(judge: Judge) -> None:
    with collecting() as calls:
        assert ask(JudgeClient(), judge) == YES

    assert [(call.model, call.result) for call in calls] == [(name_of(judge), "ok")]
    assert name_of(judge).startswith("tests.judge.test_client:")


def test_an_answer_that_is_none_is_an_error_that_quotes_nothing() -> None:
    with collecting() as calls, pytest.raises(JudgeAnswerError) as caught:
        ask(JudgeClient(), lambda _: {"reasoning": "secret", "answer": "Perhaps"})

    assert str(caught.value) == "the judge's answer does not have reasoning and answer"
    assert calls[0].result == "invalid"


def test_what_a_callable_raises_is_counted_and_passed_on() -> None:
    def broken(_: Question) -> Any:
        raise ZeroDivisionError

    with collecting() as calls, pytest.raises(ZeroDivisionError):
        ask(JudgeClient(), broken)

    assert calls[0].result == "error"


def test_an_async_judge_is_cut_off_when_its_time_is_up() -> None:
    async def slow(_: Question) -> Any:
        from asyncio import Event as AsyncEvent

        await AsyncEvent().wait()

    client = JudgeClient(limits=Limits(timeout=0.05))

    assert ask(client, slow) == Skip("timeout", "no answer within 0.05 s (judge.timeout)")


def test_one_that_holds_up_the_loop_of_all_is_not_waited_for() -> None:
    released = Event()

    async def rude(_: Question) -> Any:
        released.wait(20)

    client = JudgeClient(limits=Limits(timeout=0.05))

    found = ask(client, rude)
    released.set()

    assert found == Skip("timeout", "no answer within 0.05 s (judge.timeout)")


def test_over_budget_is_a_skip_and_no_call() -> None:
    client = JudgeClient(limits=Limits(max_calls_per_minute=2), clock=lambda: 0.0)

    with collecting() as calls:
        found = [ask(client, plain, str(at)) for at in range(3)]

    assert found[:2] == [YES, YES]
    assert found[2] == Skip(
        "budget", "2 calls were made within a minute (judge.max_calls_per_minute)"
    )
    assert [call.result for call in calls] == ["ok", "ok", "budget"]
    assert calls[2].seconds is None


def test_a_patient_client_waits_for_its_budget() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    client = JudgeClient(
        limits=Limits(max_calls_per_minute=1), clock=lambda: now[0], sleep=sleep, patient=True
    )

    assert [ask(client, plain), ask(client, plain)] == [YES, YES]
    assert now == [60.0]


class Overtaken(Budget):
    """Whenever somebody sees that there is a call left, somebody else takes it."""

    def wait(self) -> float:
        seconds = super().wait()
        if not seconds:
            self.take()
        return seconds


def test_patient_askers_cannot_be_overtaken() -> None:
    client = JudgeClient(limits=Limits(max_calls_per_minute=1), patient=True)
    client._budget = Overtaken(1)

    assert ask(client, plain) == YES


def test_no_more_than_allowed_judge_at_a_time() -> None:
    lock, release, full = Lock(), Event(), Event()
    running, most = [0], [0]

    def judge(question: Question) -> Any:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 2:
                full.set()
        assert release.wait(10)
        with lock:
            running[0] -= 1
        return plain(question)

    client = JudgeClient(limits=Limits(max_concurrency=2))
    threads = [Thread(target=ask, args=(client, judge)) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert full.wait(10)
    release.set()
    for thread in threads:
        thread.join(10)

    assert most == [2]


class Counting:
    """A model that counts its questions."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, _question: Question, meter: Meter, /) -> Answer:
        meter.request()
        self.asked += 1
        return YES


class Cached:
    """A client with a cache, and the model behind it."""

    def __init__(self, path: Path, circumstances: str = "") -> None:
        self.model = Counting()
        models: Mapping[str, ModelJudge] = {"a:b": self.model, "a:c": self.model}
        self.client = JudgeClient(
            models=lambda: models, cache=Cache(path, 1 << 20), circumstances=circumstances
        )


def test_the_same_question_is_paid_for_once(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    one, two = Cached(path), Cached(path)

    with collecting() as calls:
        found = [ask(one.client, "a:b", "x"), ask(one.client, "a:b", "x")]
        found.append(ask(two.client, "a:b", "x"))

    assert found == [YES, YES, YES]
    assert (one.model.asked, two.model.asked) == (1, 0)
    assert [call.result for call in calls] == ["ok", "cached", "cached"]
    assert calls[1] == JudgeCall(model="a:b", result="cached")


def test_another_question_model_or_temperature_is_asked_anew(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    one, warm = Cached(path), Cached(path, circumstances="temperature 1")

    ask(one.client, "a:b", "x")
    ask(one.client, "a:b", "y")
    ask(one.client, "a:c", "x")
    one.client.ask("a:b", "Judge harder.", sections("x"), YesOrNo)
    ask(warm.client, "a:b", "x")

    assert (one.model.asked, warm.model.asked) == (4, 1)


def test_a_cached_judgement_costs_no_budget(tmp_path: Path) -> None:
    cached = Cached(tmp_path / "cache")
    cached.client.limits = Limits(max_calls_per_minute=1)
    cached.client._start_clean()

    assert [ask(cached.client, "a:b", "x") for _ in range(3)] == [YES, YES, YES]


def test_what_a_callable_said_is_not_cached(tmp_path: Path) -> None:
    client = JudgeClient(cache=Cache(tmp_path / "cache", 1 << 20))

    with collecting() as calls:
        ask(client, plain, "x")
        ask(client, plain, "x")

    assert [call.result for call in calls] == ["ok", "ok"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_starts_with_all_slots_and_a_loop_of_its_own() -> None:
    client = JudgeClient(limits=Limits(max_concurrency=1, timeout=10))
    assert ask(client, asynchronous) == YES
    client._slots.acquire()

    child = os.fork()
    if child == 0:
        os._exit(0 if ask(client, asynchronous) == YES else 1)

    assert os.waitpid(child, 0)[1] == 0
