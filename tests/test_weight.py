import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from otel_eval.engine import Engine
from otel_eval.model import Event, Message, Span
from otel_eval.weight import json_bytes, span_bytes, trajectory_bytes
from tests.conftest import call, span, trajectory


def flat(number: int) -> dict[str, Any]:
    return {f"gen_ai.key.{each}": f"value {each} of {number}" for each in range(10)}


def nested(number: int) -> dict[str, Any]:
    """As a parser makes them: no two keys are the same object."""
    roles = [f"ro{each}le"[:2] + "le" for each in range(10)]
    return {"messages": [{role: f"{number}", role + "s": "user"} for role in roles]}


def texts(number: int) -> dict[str, Any]:
    return {"input.value": f"{number} " * 2_000}


@pytest.mark.parametrize("attributes", [flat, nested, texts])
def test_the_weight_of_open_spans_is_near_what_they_take(
    attributes: Callable[[int], dict[str, Any]],
) -> None:
    engine = Engine(background=False)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    for number in range(1, 2_001):
        engine.feed([made(number, attributes(number))])
        engine.step(0)

    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.7 < engine.buffered_bytes / taken < 1.5


def made(number: int, attributes: dict[str, Any]) -> Span:
    trace, place = divmod(number, 4)
    return span(trace_id=f"{trace:032x}", span_id=f"{place:016x}", attributes=attributes)


def test_events_and_links_weigh_too() -> None:
    event = Event(name="gen_ai.choice", attributes={"content": "x" * 1_000})

    assert span_bytes(span(events=[event])) > span_bytes(span()) + 1_000


def test_a_trajectory_weighs_what_was_said_and_given() -> None:
    calls = [call("search", {"q": "x" * 1_000}, output=["y" * 1_000])]
    messages = [Message(role="user", content="z" * 1_000)]

    assert 3_000 < trajectory_bytes(trajectory(calls, messages=messages)) < 7_000


def test_however_deep_a_value_is_nested_it_is_weighed() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    assert json_bytes(value) > 100_000
