from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_eval.judge.frame import Frame, Frames
from otel_eval.judge.redaction import Redactor
from otel_eval.model import Message, Tool, ToolCall, Trajectory
from tests.conftest import call, trajectory

SECOND = 1_000_000_000


def shown(of: Trajectory, target: ToolCall) -> list[str]:
    return ["\n".join(each.entries) for each in Frame(of, Redactor()).of_call(target)]


def tools(*named: tuple[str, str | None]) -> list[Tool]:
    return [Tool(name=name, agent=agent) for name, agent in named]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Trajectory, int]:
    """Calls and messages at any times, each with words that nothing else has."""
    times = st.integers(1, 12)
    spans = draw(st.lists(st.tuples(times, st.integers(0, 5)), min_size=1, max_size=8))
    calls = [
        call(
            f"tool{at}", {"q": f"<arg{at}>"}, output=f"<out{at}>", start_ns=start, end_ns=start + d
        )
        for at, (start, d) in enumerate(spans)
    ]
    roles = st.sampled_from(["user", "assistant", "system"])
    said = draw(st.lists(st.tuples(times, roles), max_size=6))
    messages = [
        Message(role=role, content=f"<said{at}>", time_ns=time)
        for at, (time, role) in enumerate(said)
    ]
    return trajectory(calls, messages=messages, start_ns=1), draw(st.integers(0, len(calls) - 1))


@given(histories())
def test_nothing_that_started_after_the_call_is_shown_and_never_its_own_result(
    drawn: tuple[Trajectory, int],
) -> None:
    of, at = drawn
    target = of.tool_calls[at]
    text = "\n".join(shown(of, target))

    assert f"<out{at}>" not in text
    for other, each in enumerate(of.tool_calls):
        if other != at and each.end_ns > target.start_ns:
            assert f"<arg{other}>" not in text
            assert f"<out{other}>" not in text
    for number, message in enumerate(of.messages):
        assert (f"<said{number}>" in text) == (message.time_ns <= target.start_ns)


@given(histories())
def test_every_call_that_ended_before_is_shown_with_its_result(
    drawn: tuple[Trajectory, int],
) -> None:
    of, at = drawn
    target = of.tool_calls[at]
    text = "\n".join(shown(of, target))

    for other, each in enumerate(of.tool_calls):
        if each.end_ns < target.start_ns:
            assert f"<out{other}>" in text


@given(histories())
def test_a_trajectory_judge_sees_everything(drawn: tuple[Trajectory, int]) -> None:
    of, _ = drawn
    text = "\n".join("\n".join(each.entries) for each in Frame(of, Redactor()).of_all())

    assert all(f"<out{at}>" in text for at in range(len(of.tool_calls)))
    assert all(f"<said{at}>" in text for at in range(len(of.messages)))


def test_tools_come_first_then_the_conversation_then_the_call() -> None:
    of = trajectory([call()], available_tools=tools(("search", None)))

    titles = [each.title for each in Frame(of, Redactor()).of_call(of.tool_calls[0])]

    assert [title.split()[0:3] for title in titles] == [
        ["Tools", "that", "were"],
        ["The", "conversation", "up"],
        ["The", "tool", "call"],
    ]


@pytest.mark.parametrize(
    ("agent", "names"),
    [("planner", ["plan", "all"]), ("booker", ["book", "all"]), (None, ["plan", "book", "all"])],
)
def test_the_tools_are_those_of_the_agent_that_made_the_call(
    agent: str | None, names: list[str]
) -> None:
    target = call(agent=agent)
    offered = tools(("plan", "planner"), ("book", "booker"), ("all", None))

    text = shown(trajectory([target], available_tools=offered), target)[0]

    assert [line.split(":")[0] for line in text.splitlines()[::2]] == names


def test_it_is_said_what_was_not_recorded() -> None:
    target = call("search")

    assert shown(trajectory([target]), target) == [
        "none were recorded",
        "nothing was recorded",
        "tool call: search\n  arguments: not recorded",
    ]


def test_the_target_has_its_time_and_number() -> None:
    calls = [call("a", start_ns=SECOND, end_ns=2 * SECOND), call("b", {}, start_ns=3 * SECOND)]

    text = shown(trajectory(calls, start_ns=SECOND // 2), calls[1])[2]

    assert text.endswith("made 2.500 s after the start, as tool call number 2")


def test_a_call_from_which_spans_may_be_missing_is_marked() -> None:
    target = call("a", {})

    assert "spans of this trace are missing" in shown(trajectory([target], whole=False), target)[2]


def test_calls_made_at_one_moment_know_nothing_of_each_other() -> None:
    """As are calls that were recovered from one message of a model."""
    calls = [call(name, {}, output=f"<{name}>", start_ns=5, end_ns=5) for name in ("a", "b")]

    assert "<a>" not in shown(trajectory(calls), calls[1])[1]


def test_without_times_the_order_decides_and_answers_are_left_out() -> None:
    calls = [call(name, {}, output=f"<{name}>") for name in ("a", "b", "c")]
    messages = [
        Message(role="user", content="ask"),
        Message(role="assistant", content="the end"),
    ]

    text = shown(trajectory(calls, messages=messages), calls[1])[1]

    assert ("<a>" in text, "<b>" in text, "<c>" in text) == (True, False, False)
    assert ("ask" in text, "the end" in text) == (True, False)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([], "user: the input", id="no message"),
        pytest.param([Message(role="user", content="hello")], "user: hello", id="a message"),
    ],
)
def test_the_input_stands_in_for_a_users_message(messages: list[Message], expected: str) -> None:
    target = call()

    assert shown(trajectory([target], messages=messages, input="the input"), target)[1] == expected


def test_an_error_is_a_result_and_another_agent_is_named() -> None:
    calls = [call("a", {}, error="boom", start_ns=1, end_ns=2), call("b", {}, start_ns=9)]
    messages = [Message(role="assistant", content="hm", time_ns=3, agent="other")]

    text = shown(trajectory(calls, messages=messages), calls[1])[1]

    assert text == "tool call: a\n  arguments: {}\n  error: boom\nassistant by other: hm"


def test_redaction_reaches_every_part_of_what_is_shown() -> None:
    secret: dict[str, Any] = {"deep": ["a sk-123 b", {"sk-456": "two\nlines sk-789"}]}
    done = call("sk-000", secret, output=secret, start_ns=1, end_ns=2)
    target = call("t", secret, start_ns=5, agent="sk-111")
    of = trajectory(
        [done, target, call("e", {}, error="sk-222", start_ns=3, end_ns=4)],
        messages=[Message(role="user", content="sk-333", time_ns=1)],
        available_tools=[Tool(name="sk-444", description="sk-555", parameters=secret)],
        output="sk-666",
    )
    frame = Frame(of, Redactor([r"sk-\d+"]))

    sections = [*frame.of_call(target), *frame.of_all()]

    text = "\n".join(entry for each in sections for entry in each.entries)
    assert "sk-" not in text
    assert text.count("[redacted]") > 15


class Counting(Redactor):
    def __init__(self) -> None:
        super().__init__()
        self.values = 0

    def value(self, value: Any) -> str:
        self.values += 1
        return super().value(value)


def test_a_long_trajectory_is_put_into_words_once_and_not_once_per_call() -> None:
    """A thousand calls would be a million renderings, in the agent's own process."""
    calls = [call("t", {}, output="x", start_ns=2 * at + 1, end_ns=2 * at + 2) for at in range(50)]
    of, redactor = trajectory(calls), Counting()
    frames = Frames(redactor)

    for each in calls:
        frames.of(of).of_call(each)

    assert redactor.values == 50 + 2 * 49  # arguments of each as target; once more with the result


def test_another_trajectory_has_a_frame_of_its_own() -> None:
    one, two = trajectory([call("a")]), trajectory([call("a")])
    frames = Frames(Redactor())

    first = frames.of(one)
    assert frames.of(one) is first
    assert frames.of(two).trajectory is two

    latest = frames.of(one)
    frames.forget()
    assert frames.of(one) is not latest
