"""What judges were shown for recorded traces, message by message, as the server received it.

The texts in `shown/` were written by the frame itself, so they pin what is shown and do not prove
it right: that is for the laws in test_frame.py. `NONCE` stands for what is new in each request.
"""

import re
from pathlib import Path

import pytest

from otel_eval.config import Config
from otel_eval.extract import extract
from otel_eval.judge import prompts
from otel_eval.judge.frame import earlier_calls, visible_messages
from otel_eval.model import Trajectory
from otel_eval.rules import run
from tests.extract.captures import NAMES, spans_of, truth_of
from tests.judge import server
from tests.judge.server import ChatServer, serving

SHOWN = Path(__file__).parent / "shown"
CAPTURES = (
    "langgraph_traceloop_multi",
    "openai_agents_responses_openinference_handoff",
    "strands_legacy_seq",
    "vercel_ai6_par",
)


def config(chat: ChatServer, **evaluator: str) -> Config:
    return Config.parse(
        {
            "judge": {"model": "openai:local", "base_url": chat.base_url},
            "rules": [{"name": "judged", "evaluators": [evaluator]}],
        }
    )


def without_nonce(prompt: str) -> str:
    nonce = re.findall(r"<<<([0-9a-f]{16})", prompt)[0]
    return prompt.replace(nonce, "NONCE")


def trajectory_of(capture: str) -> Trajectory:
    return extract(spans_of(capture)).trace


@pytest.mark.parametrize("capture", CAPTURES)
def test_each_tool_call_is_judged_by_what_was_known_when_it_was_made(capture: str) -> None:
    with serving(server.says("Yes")) as chat:
        rules = config(chat, type="tool-selection-accuracy").rule_set()
        evaluations = run(rules, extract(spans_of(capture)))

    calls = trajectory_of(capture).tool_calls
    assert [each.call for each in evaluations] == list(calls)
    assert [each.anchor.span_id for each in evaluations] == [call.span_id for call in calls]
    assert {each.verdict for each in evaluations} == {"pass"}
    for number in range(len(calls)):
        (first, system), (second, prompt) = chat.messages(number)
        assert (first, system, second) == ("system", prompts.TOOL_SELECTION, "user")
        assert without_nonce(prompt) == (SHOWN / f"{capture}.{number}.txt").read_text()


def test_a_trajectory_is_judged_as_a_whole() -> None:
    expected = "Asks the booking agent, and mails the summary."
    with serving(server.grades(0.5)) as chat:
        judge = {"type": "trajectory-judge", "expected_behavior": expected}
        evaluations = run(
            config(chat, **judge).rule_set(), extract(spans_of("langgraph_traceloop_multi"))
        )

    (_, system), (_, prompt) = chat.messages()
    assert system == f"{prompts.TRAJECTORY}\n\nWhat was expected of the agent:\n{expected}"
    assert without_nonce(prompt) == (SHOWN / "langgraph_traceloop_multi.whole.txt").read_text()
    assert [each.outcome.value for each in evaluations if hasattr(each.outcome, "value")] == [0.5]


@pytest.mark.parametrize("capture", NAMES)
def test_no_capture_shows_a_call_what_came_after_it(capture: str) -> None:
    """Whatever the framework writes, and however often it repeats itself."""
    trajectory = trajectory_of(capture)
    for call in trajectory.tool_calls:
        shown = earlier_calls(trajectory, call)
        assert all(each.end_ns <= call.start_ns for each in shown)
        assert not any(each is call for each in shown)
        assert all(each.time_ns <= call.start_ns for each in visible_messages(trajectory, call))


@pytest.mark.parametrize("capture", [each for each in CAPTURES if "handoff" not in each])
def test_what_is_shown_is_what_the_framework_really_did(capture: str) -> None:
    """By the truth that was written down when the capture was made, not by our own reading.

    That of the handoff does not say which tools there were.
    """
    trace = truth_of(capture)["traces"][0]
    calls = trajectory_of(capture).tool_calls
    first, *_ = prompts_of(capture)

    tools, conversation, _ = first.split("\nNONCE>>>")[:3]
    assert {line.partition(":")[0] for line in tools.splitlines()[4:]} >= set(
        trace["available_tools"]
    )
    assert f"user: {trace['user_input']}" in conversation
    assert trace["final_output"] not in "".join(prompts_of(capture))
    assert [call.name for call in calls] == [each["name"] for each in trace["tool_calls"]]
    for call, prompt in zip(calls, prompts_of(capture), strict=True):
        assert f": {call.name}\n  arguments: " in prompt.rpartition("<<<NONCE")[2]
        assert "result:" not in prompt.rpartition("<<<NONCE")[2]


def prompts_of(capture: str) -> list[str]:
    return [path.read_text() for path in sorted(SHOWN.glob(f"{capture}.[0-9].txt"))]
