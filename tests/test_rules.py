import time
from collections.abc import Mapping
from typing import Any

import pytest

from otel_eval.errors import ConfigError
from otel_eval.evaluators.base import Evaluator
from otel_eval.extract import Extraction, extract
from otel_eval.job import Job
from otel_eval.match import Match, is_literal
from otel_eval.model import Anchor, Failure, Score, Skip, Span, ToolCall, Trajectory
from otel_eval.rule import Alert, Rule, seconds
from otel_eval.rules import RuleSet, default_rules, run, session_jobs, trace_jobs
from tests.conftest import TRACE_ID, call, span, trajectory


class Whole(Evaluator):
    """1 where the trajectory is whole, or said to be."""

    type: str = "whole"

    def evaluate(self, trajectory: Trajectory) -> Score | Skip:
        return Score(1.0) if trajectory.whole else Skip("incomplete", "not whole")


class EachCall(Evaluator):
    type: str = "each-call"

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score:
        return Score(1.0 / len(trajectory.tool_calls), call.name)


class Answering(Evaluator):
    """Answers with whatever it was made with."""

    type: str = "answering"
    answer: Any

    def evaluate(self, _trajectory: Trajectory) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def rule(name: str = "rule", *evaluators: Evaluator, **fields: Any) -> Rule:
    return Rule(name=name, evaluators=evaluators or (Whole(),), **fields)


def agent(name: str, number: int, parent: int | None = None, **attributes: str) -> Span:
    given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **attributes}
    return _span(number, parent, given)


def tool(name: str, number: int, parent: int) -> Span:
    given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return _span(number, parent, given)


def _span(number: int, parent: int | None, attributes: Mapping[str, str]) -> Span:
    return span(
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        start_ns=number,
        attributes=attributes,
        resource={"service.name": "shop"},
    )


def planner_and_writer() -> Extraction:
    """A planner that searches, and calls a writer twice, who writes."""
    return extract(
        [
            agent("planner", 1, **{"session.id": "s1"}),
            tool("search", 2, 1),
            agent("writer", 3, 1),
            tool("write", 4, 3),
            agent("writer", 5, 1),
            tool("rewrite", 6, 5),
        ]
    )


def seen_by(chosen: Rule) -> list[tuple[str | None, list[str]]]:
    """The agent and the tool calls of each trajectory that the rule scores."""
    views = RuleSet([chosen]).views(planner_and_writer())
    return [(each.agent, [call.name for call in each.tool_calls]) for _, each in views]


ALL = ["search", "write", "rewrite"]


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        pytest.param({}, [("planner", ALL)], id="no agent: the whole trace"),
        pytest.param(
            {"match": Match(agent="*")},
            [("planner", ALL), ("writer", ["write", "rewrite"])],
            id="any agent: each of them",
        ),
        pytest.param(
            {"match": Match(agent="planner"), "nested": False},
            [("planner", ["search"])],
            id="without sub-agents",
        ),
        pytest.param(
            {"match": Match(agent="writer"), "per": "run"},
            [("writer", ["write"]), ("writer", ["rewrite"])],
            id="each run of an agent",
        ),
        pytest.param({"per": "run"}, [("planner", ALL)], id="each outermost run"),
        pytest.param({"match": Match(agent="reader")}, [], id="another agent"),
        pytest.param({"match": Match(session="s1")}, [("planner", ALL)], id="literal session"),
        pytest.param({"match": Match(session="s*")}, [("planner", ALL)], id="session glob"),
        pytest.param({"match": Match(session="s2")}, [], id="another session"),
        pytest.param({"match": Match(agent="planner", session="s2")}, [], id="all must fit"),
    ],
)
def test_a_rule_scores_the_trajectories_that_it_names(
    fields: dict[str, Any], seen: list[tuple[str, list[str]]]
) -> None:
    assert seen_by(rule(**fields)) == seen


ANCHOR = Anchor(
    trace_id=TRACE_ID,
    span_id="1",
    attributes={"tier": "gold", "retries": 2, "beta": True},
    resource={"deployment.environment.name": "prod", "tier": "silver"},
)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({}, True),
        ({"session": "s-1"}, True),
        ({"session": "s-?"}, True),
        ({"session": "S-1"}, False),
        ({"session": "s"}, False),
        ({"session": "/-[0-9]$/"}, True),
        ({"service": "shop"}, True),
        ({"service": "*"}, True),
        ({"attributes": {"deployment.environment.name": "prod"}}, True),
        ({"attributes": {"tier": "gold"}}, True),
        ({"attributes": {"tier": "silver"}}, False),
        ({"attributes": {"retries": 2}}, True),
        ({"attributes": {"retries": "2"}}, True),
        ({"attributes": {"retries": 3}}, False),
        ({"attributes": {"beta": True}}, True),
        ({"attributes": {"beta": "true"}}, True),
        ({"attributes": {"beta": 1}}, False),
        ({"attributes": {"missing": "*"}}, False),
        ({"session": "s-1", "attributes": {"tier": "silver"}}, False),
    ],
    ids=str,
)
def test_everything_that_a_match_gives_must_fit(match: dict[str, Any], fits: bool) -> None:
    seen = trajectory(session="s-1", service="shop", anchor=ANCHOR)

    assert Match(**match).fits(seen) is fits


def test_a_star_also_fits_where_there_is_nothing() -> None:
    nothing = trajectory(session=None, service=None, anchor=None)

    assert Match(session="*", service="*").fits(nothing)
    assert not Match(session="?*").fits(nothing)
    assert not Match(attributes={"tier": "*"}).fits(nothing)


def test_text_that_is_not_unicode_can_be_matched() -> None:
    assert not Match(session="/x/").fits(trajectory(session="\ud800"))
    assert Match(session="/x/").fits(trajectory(session="\ud800x"))


@pytest.mark.parametrize("text", ["*", "a?", "[ab]", "/a/", "/"])
def test_patterns_are_not_looked_up(text: str) -> None:
    assert not is_literal(text)


def test_a_pattern_that_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^rules\[3\]\.match\.agent: .*RE2"):
        Rule.parse(
            {"name": "r", "match": {"agent": "/(/"}, "evaluators": [Whole()]}, place="rules[3]"
        )


def test_a_trace_without_an_agent_is_only_for_rules_that_name_its_origin() -> None:
    plain = extract([span(resource={"service.name": "shop"}, attributes={"tier": "gold"})])
    chosen = [
        rule("everyone"),
        rule("agents", match=Match(agent="*")),
        rule("service", match=Match(service="shop")),
        rule("attributes", match=Match(attributes={"tier": "gold"})),
    ]

    assert [each.name for each, _ in RuleSet(chosen).views(plain)] == ["service", "attributes"]


def test_all_rules_that_match_run_in_their_order() -> None:
    chosen = [
        rule("session", match=Match(session="s1")),
        rule("all"),
        rule("nobody", match=Match(agent="nobody")),
        rule("agent", match=Match(agent="planner")),
    ]

    evaluations = run(RuleSet(chosen), planner_and_writer())

    assert [each.rule for each in evaluations] == ["session", "all", "agent"]


def test_a_session_that_only_an_inner_run_names_is_found() -> None:
    inner = extract(
        [
            agent("outer", 1),
            agent("a", 2, 1, **{"session.id": "s-a"}),
            agent("b", 3, 1, **{"session.id": "s-b"}),
        ]
    )
    chosen = rule(match=Match(agent="*", session="s-b"))

    assert [each.agent for _, each in RuleSet([chosen]).views(inner)] == ["b"]


def seconds_of_views(rules: int) -> float:
    """Of this thread's own time: the machine may have other things to do."""
    half = rules // 2
    chosen = [rule(f"s{each}", match=Match(session=f"s{each}")) for each in range(half)]
    chosen += [rule(f"a{each}", match=Match(agent=f"a{each}")) for each in range(half)]
    indexed, extraction = RuleSet(chosen), planner_and_writer()
    assert len(indexed.views(extraction)) == 1
    started = time.thread_time()
    for _ in range(20):
        indexed.views(extraction)
    return time.thread_time() - started


def test_thousands_of_rules_for_single_sessions_and_agents_cost_a_look_up() -> None:
    few = min(seconds_of_views(4) for _ in range(5))
    many = min(seconds_of_views(4_000) for _ in range(5))

    assert many < 5 * few


def test_rules_have_names_of_their_own() -> None:
    with pytest.raises(ConfigError, match=r"rules\[1\]\.name: another rule is called 'same'"):
        RuleSet([rule("same"), rule("same")])


def test_evaluators_of_a_rule_have_names_of_their_own() -> None:
    with pytest.raises(ConfigError, match=r"^rule\.evaluators: two evaluators are called 'whole'"):
        Rule.parse({"name": "r", "evaluators": [Whole(), Whole()]})

    assert rule("r", Whole(), Whole(name="again"))


def test_every_problem_of_a_rule_is_told_with_its_place() -> None:
    with pytest.raises(ConfigError) as raised:
        Rule.parse(
            {
                "nam": "r",
                "match": {"agents": "x"},
                "pass_at": 2,
                "alert": {"for": "soon"},
                "evaluators": [{"type": "tool-call-cuont"}, {"type": "tool-loop", "max": 1}],
            },
            place="rules[0]",
        )

    places = [problem.partition(": ")[0] for problem in raised.value.problems]
    assert {"rules[0].nam", "rules[0].name", "rules[0].match.agents"} <= set(places)
    assert {"rules[0].pass_at", "rules[0].alert.for"} <= set(places)
    assert any(place.startswith("rules[0].evaluators[0]") for place in places)
    assert any(place.startswith("rules[0].evaluators[1]") for place in places)


def test_a_rule_without_evaluators_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rule\.evaluators"):
        Rule.parse({"name": "r", "evaluators": []})


def test_a_rule_reads_as_it_is_written() -> None:
    read = Rule.parse(
        {
            "name": "weather-flow",
            "match": {"agent": "weather-*", "attributes": {"env": "prod"}},
            "per": "run",
            "nested": False,
            "incomplete": "score",
            "pass_at": 0.8,
            "sample": 0.5,
            "alert": {"pass_rate": 0.9, "drop": 0.1, "for": "15m", "severity": "page"},
            "evaluators": [{"type": "tool-call-order", "tool_calls_order": ["a", "b"]}],
        }
    )

    assert read.alert == Alert(pass_rate=0.9, drop=0.1, for_=900, severity="page")
    assert [each.type for each in read.evaluators] == ["tool-call-order"]
    assert (read.per, read.nested, read.incomplete) == ("run", False, "score")


def test_the_default_rules_ask_every_agent_for_errors_and_loops() -> None:
    (only,) = default_rules().rules

    assert only.match == Match(agent="*")
    assert [each.type for each in only.evaluators] == ["tool-error-rate", "tool-loop"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 0.5), ("90s", 90), ("1m30s", 90), ("1.5h", 5400), (" 2d ", 172800), (7, 7)],
)
def test_durations(text: object, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "-1s", "1h later"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        seconds(text)


# Jobs.


def job(chosen: Rule | None = None, **fields: Any) -> Job:
    return Job(rule=chosen or rule(), trajectory=trajectory(["search", "answer"], **fields))


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        pytest.param(KeyError("x"), Failure("KeyError", "'x'"), id="raises"),
        pytest.param(SystemExit(3), Failure("SystemExit", "3"), id="leaves"),
        pytest.param(
            True,
            Failure("TypeError", "an evaluator must give a Score or a Skip, not bool"),
            id="no outcome",
        ),
        pytest.param(
            Score(1.5), Failure("ValueError", "a score lies between 0 and 1, not at 1.5"), id="1.5"
        ),
        pytest.param(
            Score(float("nan")),
            Failure("ValueError", "a score lies between 0 and 1, not at nan"),
            id="nan",
        ),
    ],
)
def test_an_unsound_evaluator_is_a_failure(answer: object, failure: Failure) -> None:
    (evaluation,) = job().evaluate(Answering(answer=answer))

    assert evaluation.outcome == failure
    assert evaluation.verdict == "error"


def test_a_keyboard_interrupt_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        job().evaluate(Answering(answer=KeyboardInterrupt()))


def test_the_evaluators_pass_mark_wins_over_the_rules() -> None:
    half = Answering(answer=Score(0.5))
    lenient = Answering(answer=Score(0.5), pass_at=0.0)
    chosen = rule(pass_at=0.6)

    assert [each.verdict for each in job(chosen).evaluate(half)] == ["fail"]
    assert [each.verdict for each in job(chosen).evaluate(lenient)] == ["pass"]


def test_incomplete_score_shows_the_trajectory_as_whole_and_reports_it_as_it_is() -> None:
    (skipped,) = job(whole=False).evaluate(Whole())
    (scored,) = job(rule(incomplete="score"), whole=False).evaluate(Whole())

    assert skipped.verdict == "skip"
    assert scored.verdict == "pass"
    assert not scored.trajectory.whole


def test_an_evaluation_of_a_call_is_anchored_at_its_span() -> None:
    calls = [call("a", span_id="a1", end_ns=5), call("b")]
    judged = Job(rule=rule(), trajectory=trajectory(calls, anchor=ANCHOR))

    first, second = judged.evaluate(EachCall())

    assert first.anchor == Anchor(
        trace_id=TRACE_ID, span_id="a1", end_ns=5, resource=ANCHOR.resource
    )
    assert second.anchor == ANCHOR
    assert [each.call for each in (first, second)] == calls


def test_sampling_is_decided_by_the_id_and_keeps_about_its_share() -> None:
    chosen = rule(sample=0.25)
    identities = [f"{number:032x}" for number in range(4_000)]

    kept = [each for each in identities if chosen.samples(each)]

    assert kept == [each for each in identities if rule(sample=0.25).samples(each)]
    assert set(kept) <= {each for each in identities if rule(sample=0.5).samples(each)}
    assert 0.22 < len(kept) / len(identities) < 0.28


def test_a_sampled_out_trace_is_skipped_and_says_so() -> None:
    (evaluation,) = job(rule(sample=0.0)).evaluate(Whole())

    assert evaluation.outcome == Skip("sampled_out", "outside the sample of 0.0")
    assert evaluation.sample == 0.0


def test_a_session_is_sampled_as_a_whole() -> None:
    chosen = rule(per="session", sample=0.5)
    traces = [f"{number:032x}" for number in range(20)]

    answers = {job(chosen, trace_id=each, session="s").is_sampled for each in traces}

    assert len(answers) == 1


def test_sessions_are_joined_by_rule_and_by_agent_where_the_rule_names_agents() -> None:
    whole = rule("whole", per="session")
    each = rule("each", per="session", match=Match(agent="*"))
    first = trajectory([call("x", span_id="1")], trace_id="t1", agent="a", session="s")
    second = trajectory([call("y", span_id="2")], trace_id="t2", agent="b", session="s")
    views = [(chosen, seen) for seen in (first, second) for chosen in (whole, each)]

    jobs = session_jobs(views, part=2, closed_by="idle")

    assert trace_jobs(views) == []
    seen = [(j.rule.name, [call.name for call in j.trajectory.tool_calls]) for j in jobs]
    assert seen == [("whole", ["x", "y"]), ("each", ["x"]), ("each", ["y"])]
    assert {(j.trajectory.part, j.trajectory.per) for j in jobs} == {(2, "session")}
    anchors = [each.anchor.trace_id for each in jobs[0].evaluate(EachCall())]
    assert anchors == ["t1", "t2"]


def test_a_copy_of_a_rule_is_about_what_it_was_changed_to() -> None:
    rule = Rule.parse({"name": "a", "match": {"agent": "x"}, "evaluators": [{"type": "tool-loop"}]})
    other = Rule.parse({"name": "b", "evaluators": [{"type": "tool-error-rate"}]})
    assert [each.type for each in rule.deterministic] == ["tool-loop"]
    assert rule.match.literal_agent == "x"

    copy = rule.model_copy(
        update={
            "evaluators": other.evaluators,
            "match": rule.match.model_copy(update={"agent": "y"}),
        }
    )

    assert [each.type for each in copy.deterministic] == ["tool-error-rate"]
    assert copy.match.literal_agent == "y"
