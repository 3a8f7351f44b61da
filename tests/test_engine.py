import json
import multiprocessing
import os
import random
import threading
import time
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from otel_eval.engine import ClosedTrace, Engine, Grouping, Sink
from otel_eval.evaluators.base import Evaluator
from otel_eval.group import MIB
from otel_eval.model import (
    Evaluation,
    Failure,
    Json,
    Scope,
    Score,
    Skip,
    Span,
    ToolCall,
    Trajectory,
)
from otel_eval.rules import Match, Rule, RuleSet
from tests.conftest import span

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
SECOND = 1_000_000_000


class Tools(Evaluator):
    """Names the tools that were called."""

    type: str = "tools"

    def evaluate(self, trajectory: Trajectory) -> Score:
        return Score(1.0, ",".join(call.name for call in trajectory.tool_calls))


class Raising(Evaluator):
    type: str = "raising"

    def evaluate(self, trajectory: Trajectory) -> Score:
        raise ArithmeticError(f"no judgement about {trajectory.agent}")


class Judge(Evaluator):
    """Answers when `released`; a class attribute, because evaluators are frozen and compared."""

    type: str = "judge"
    needs_model: ClassVar[bool] = True
    released: ClassVar[Event] = Event()

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score:
        assert self.released.wait(10)
        return Score(1.0, f"{call.name} of {len(trajectory.tool_calls)}")


class Collecting(Sink):
    """A sink that keeps what it gets. It derives from the protocol, as some do."""

    def __init__(self) -> None:
        self.evaluations: list[Evaluation] = []
        self.durations: list[str] = []
        self.closed = 0

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        assert not self.closed
        self.evaluations += evaluations

    def observe_durations(self, durations: Sequence[tuple[str, float]]) -> None:
        assert all(seconds >= 0 for _, seconds in durations)
        self.durations += [evaluator for evaluator, _ in durations]

    def close(self) -> None:
        self.closed += 1


class RaisingSink:
    def __init__(self, error: type[BaseException] = OSError) -> None:
        self.error = error

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        raise self.error(f"no room for {len(evaluations)}")

    def close(self) -> None:
        raise self.error("cannot even close")


class HangingSink:
    def __init__(self) -> None:
        self.released = Event()

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        assert evaluations
        self.released.wait()

    def close(self) -> None:
        self.released.wait()


def rules(*evaluators: Evaluator, match: Match | None = None, **fields: Any) -> RuleSet:
    chosen = evaluators or (Tools(),)
    return RuleSet([Rule(name="rule", match=match or Match(), evaluators=chosen, **fields)])


def hex_id(number: int, digits: int = 32) -> str:
    return f"{number:0{digits}x}"


def agent_span(trace: int = 1, number: int = 1, parent: int | None = None, **fields: Any) -> Span:
    return span(
        "invoke_agent helper",
        trace_id=hex_id(trace),
        span_id=hex_id(number, 16),
        parent_id=None if parent is None else hex_id(parent, 16),
        parent_remote=None if parent is None else False,
        **{"attributes": AGENT, **fields},
    )


def tool_span(trace: int = 1, number: int = 2, parent: int = 1, **fields: Any) -> Span:
    tool = {**TOOL, "gen_ai.tool.name": fields.pop("tool", "search")}
    return agent_span(trace, number, parent, **{"attributes": tool, **fields})


def agent_trace(trace: int = 1, tools: Sequence[str] = ("search",), **fields: Any) -> list[Span]:
    calls = [
        tool_span(trace, 2 + place, tool=tool, start_ns=1 + place, end_ns=2 + place)
        for place, tool in enumerate(tools)
    ]
    return [*calls, agent_span(trace, **fields)]


class Bench:
    """An engine without threads, its sink, and a clock that is set by hand."""

    def __init__(self, chosen: RuleSet | None = None, **options: Any) -> None:
        self.now = 0.0
        self.sink = Collecting()
        self.notices: list[ClosedTrace] = []
        options = {"on_closed": self.notices.append, "background": False, **options}
        self.engine = Engine(chosen or rules(), [self.sink], clock=lambda: self.now, **options)

    def at(self, now: float, *spans: Span) -> list[Evaluation]:
        """What is new after these spans came at this time."""
        self.now = now
        before = len(self.sink.evaluations)
        if spans:
            self.engine.feed(spans)
        self.engine.step(now)
        return self.sink.evaluations[before:]

    @property
    def spans(self) -> dict[str, float]:
        return spans_of(self.engine)


def spans_of(engine: Engine) -> dict[str, float]:
    """Where the spans are, without the places where none is."""
    snapshot = engine.snapshot()
    places: dict[str, float] = {}
    for name, values in snapshot.items():
        for labels, value in values.items():
            if name.startswith("otel_eval.spans.") and value:
                places[".".join([name.removeprefix("otel_eval.spans."), *labels])] = value
    received = places.get("received", 0)
    assert received == sum(places.values()) - received
    return places


def told(evaluations: Iterable[Evaluation]) -> Counter[tuple[object, ...]]:
    return Counter(
        (
            each.trajectory.trace_id,
            each.trajectory.part,
            each.trajectory.closed_by,
            each.trajectory.whole,
            each.rule,
            each.evaluator,
            each.outcome.reason if isinstance(each.outcome, Score) else each.outcome,
        )
        for each in evaluations
    )


def test_an_agent_trace_is_scored_once_its_root_settled() -> None:
    bench = Bench()

    assert bench.at(0, *agent_trace()) == []
    (evaluation,) = bench.at(10)

    assert evaluation.outcome == Score(1.0, "search")
    assert (evaluation.rule, evaluation.evaluator) == ("rule", "tools")
    assert evaluation.anchor.span_id == hex_id(1, 16)
    assert bench.spans == {"received": 2, "scored": 2}
    assert bench.sink.durations == ["tools"]


def test_without_rules_every_agent_gets_the_default_ones() -> None:
    bench = Bench()
    bench.engine = Engine(None, [bench.sink], background=False)

    bench.at(0, *agent_trace())

    assert [each.evaluator for each in bench.at(10)] == ["tool-error-rate", "tool-loop"]


def test_a_plain_http_trace_is_counted_and_not_scored() -> None:
    bench = Bench()

    bench.at(0, span("GET /", kind="server"))

    assert bench.at(10) == []
    assert bench.spans == {"received": 1, "unevaluated.not_agent": 1}
    assert "otel_eval.traces" in bench.engine.snapshot()
    assert not bench.engine.snapshot()["otel_eval.traces"]


def test_a_plain_trace_is_scored_where_a_rule_names_its_service() -> None:
    bench = Bench(rules(match=Match(service="shop")))

    bench.at(0, span("GET /", resource={"service.name": "shop"}))

    assert len(bench.at(10)) == 1


def test_an_agent_trace_that_no_rule_matches_is_counted() -> None:
    bench = Bench(rules(match=Match(agent="someone-else")))

    bench.at(0, *agent_trace())

    assert bench.at(10) == []
    assert bench.spans == {"received": 2, "unevaluated.no_rule": 2}


def test_a_tool_that_takes_65_seconds_is_scored_once_and_whole() -> None:
    bench = Bench()
    bench.engine.started(1, 1)
    bench.engine.started(1, 2)
    bench.at(0)
    for now in range(1, 65):
        assert bench.at(now) == []

    bench.engine.ended(tool_span(end_ns=65 * SECOND))
    assert bench.at(65) == []
    bench.engine.ended(agent_span(end_ns=66 * SECOND))
    (evaluation,) = bench.at(66)

    assert evaluation.trajectory.whole
    assert evaluation.trajectory.closed_by == "root"
    assert bench.at(10_000) == []


def test_a_tool_that_takes_65_seconds_is_scored_once_and_whole_where_no_start_is_seen() -> None:
    bench = Bench()
    bench.at(0, tool_span(number=3))

    found = [each for now in range(1, 65) for each in bench.at(now)]
    found += bench.at(65, tool_span(end_ns=65 * SECOND), agent_span(end_ns=65 * SECOND))
    found += bench.at(75)
    found += bench.at(10_000)

    assert [(each.trajectory.whole, len(each.trajectory.tool_calls)) for each in found] == [
        (True, 2)
    ]


def test_three_runs_of_an_agent_give_three_evaluations_per_run() -> None:
    bench = Bench(rules(match=Match(agent="helper"), per="run"))
    runs = [
        each
        for run in (10, 20, 30)
        for each in (
            agent_span(number=run, parent=1, start_ns=run),
            tool_span(number=run + 1, parent=run, start_ns=run, tool=f"tool{run}"),
        )
    ]

    bench.at(0, *runs, span("workflow", trace_id=hex_id(1), span_id=hex_id(1, 16)))

    assert [each.outcome.reason for each in bench.at(10) if isinstance(each.outcome, Score)] == [
        "tool10",
        "tool20",
        "tool30",
    ]


def in_session(trace: int, session: str = "s", **fields: Any) -> list[Span]:
    return agent_trace(trace, attributes={**AGENT, "session.id": session}, **fields)


def test_a_session_is_scored_when_idle_and_as_part_2_when_the_user_comes_back() -> None:
    bench = Bench(rules(match=Match(session="s"), per="session"))
    bench.at(0, *in_session(1, tools=["first"]))
    bench.at(60, *in_session(2, tools=["second"], start_ns=60, end_ns=61))

    assert bench.at(70) + bench.at(669) == []
    (morning,) = bench.at(670)
    bench.at(790, *in_session(3, tools=["third"]))
    bench.at(800)
    (later,) = bench.at(1400)

    assert isinstance(morning.outcome, Score)
    assert Counter(morning.outcome.reason.split(",")) == Counter(["first", "second"])
    assert (morning.trajectory.part, morning.trajectory.closed_by) == (1, "idle")
    assert morning.trajectory.per == "session"
    assert (later.trajectory.part, later.outcome) == (2, Score(1.0, "third"))
    assert bench.engine.snapshot()["otel_eval.sessions"] == {("idle",): 2}


def test_traces_without_a_session_are_no_part_of_one() -> None:
    bench = Bench(rules(per="session"))

    bench.at(0, *agent_trace())
    bench.at(10)

    assert bench.spans == {"received": 2, "unevaluated.no_session": 2}
    assert len(bench.engine._sessions) == 0


def test_a_call_judged_in_a_session_is_anchored_in_its_own_trace() -> None:
    Judge.released.set()
    bench = Bench(rules(Judge(), match=Match(session="s"), per="session"))
    bench.at(0, *in_session(1))
    bench.at(0, tool_span(2, 9), *in_session(2, tools=[]))
    bench.at(10)

    found = bench.at(610)

    assert {(each.anchor.trace_id, each.anchor.span_id) for each in found} == {
        (hex_id(1), hex_id(2, 16)),
        (hex_id(2), hex_id(9, 16)),
    }


def test_repeated_and_own_spans_are_counted_and_not_grouped() -> None:
    bench = Bench()
    own = span("evaluation rule", trace_id=hex_id(7), scope=Scope(name="otel_eval"))

    bench.at(0, *agent_trace(), agent_span(), own)

    assert bench.spans == {"received": 4, "open": 2, "duplicate": 1, "own": 1}
    assert len(bench.at(10)) == 1
    bench.at(11, agent_span())
    assert bench.spans == {"received": 5, "scored": 2, "duplicate": 2, "own": 1}


def test_spans_that_come_too_late_are_counted_and_not_scored() -> None:
    bench = Bench()
    bench.at(0, *agent_trace())
    bench.at(10)

    bench.at(20, tool_span(number=9))

    assert bench.spans == {"received": 3, "scored": 2, "open": 1}
    assert bench.at(320) == []
    assert bench.spans == {"received": 3, "scored": 2, "late": 1}


def test_spans_after_a_trace_was_full_are_counted_by_that_reason() -> None:
    bench = Bench(grouping=Grouping(max_spans_per_trace=2))

    (evaluation,) = bench.at(0, *agent_trace(), tool_span(number=9))
    bench.at(300)

    assert (evaluation.trajectory.closed_by, evaluation.trajectory.whole) == ("size", False)
    assert bench.spans == {"received": 3, "scored": 2, "unevaluated.trace_full": 1}


def sdk_span(number: int, parent: int | None, attributes: dict[str, Any]) -> ReadableSpan:
    context, above = (
        SpanContext(1, each, is_remote=False) if each else None for each in (number, parent)
    )
    return ReadableSpan("work", context=context, parent=above, attributes=attributes)


def test_an_sdk_span_that_cannot_be_read_is_counted_and_spoils_only_its_trace() -> None:
    bench = Bench()
    endless: list[object] = []
    endless.append(endless)
    bench.engine.ended(sdk_span(2, 1, {**TOOL, "value": endless}))
    bench.engine.ended(sdk_span(1, None, AGENT))

    bench.at(0, *agent_trace(2))
    found = bench.at(10)

    assert {each.trajectory.trace_id: each.trajectory.whole for each in found} == {
        hex_id(1): False,
        hex_id(2): True,
    }
    assert bench.spans == {"received": 4, "scored": 3, "unevaluated.undecodable": 1}


def test_a_raising_evaluator_is_a_failure_beside_the_others() -> None:
    bench = Bench(rules(Raising(), Tools()))

    bench.at(0, *agent_trace())
    raised, scored = bench.at(10)

    assert raised.outcome == Failure("ArithmeticError", "no judgement about helper")
    assert raised.verdict == "error"
    assert scored.outcome == Score(1.0, "search")
    assert bench.spans == {"received": 2, "scored": 2}


def test_each_closed_trace_is_told_with_its_spans_and_evaluations() -> None:
    bench = Bench()

    bench.at(0, *agent_trace(1), span("GET /", trace_id=hex_id(2)))
    bench.at(10)

    assert [(each.trace_id, each.part, len(each.evaluations)) for each in bench.notices] == [
        (hex_id(1), 1, 1),
        (hex_id(2), 1, 0),
    ]
    assert set(bench.notices[0].span_ids) == {hex_id(1, 16), hex_id(2, 16)}


def test_a_callback_that_raises_disturbs_nothing() -> None:
    def on_closed(_notice: ClosedTrace) -> None:
        raise OSError("not mine")

    bench = Bench(on_closed=on_closed)
    bench.at(0, *agent_trace(1), *agent_trace(2))

    assert len(bench.at(10)) == 2
    assert bench.engine.counters.errors == {("function", "raised"): 2}


def test_a_trace_that_cannot_be_read_is_counted_and_the_next_one_scored() -> None:
    class Brittle(dict[str, Json]):
        def __iter__(self) -> Iterator[str]:
            raise ArithmeticError("this one")

    bench = Bench()
    bench.at(0, replace(agent_trace(1)[0], attributes=Brittle()), *agent_trace(1)[1:])
    bench.at(0, *agent_trace(2))

    assert [each.trajectory.trace_id for each in bench.at(10)] == [hex_id(2)]
    assert bench.spans == {"received": 4, "scored": 2, "unevaluated.error": 2}
    assert len(bench.notices) == 2


def test_rules_may_be_replaced_between_traces() -> None:
    bench = Bench()
    bench.at(0, *agent_trace())
    bench.engine.rules = rules(Raising())

    assert [each.evaluator for each in bench.at(10)] == ["raising"]


def test_flush_scores_what_ended_and_leaves_the_rest() -> None:
    bench = Bench()
    bench.engine.feed([*agent_trace(1), tool_span(2)])

    assert bench.engine.flush()

    assert [each.trajectory.trace_id for each in bench.sink.evaluations] == [hex_id(1)]
    assert bench.spans == {"received": 3, "scored": 2, "open": 1}


def test_close_scores_what_is_open_and_closes_the_sinks_once() -> None:
    bench = Bench()
    bench.engine.feed([*agent_trace(1), tool_span(2)])

    assert bench.engine.close()
    assert bench.engine.close()

    assert {each.trajectory.closed_by for each in bench.sink.evaluations} == {"root", "shutdown"}
    assert bench.sink.closed == 1
    assert bench.spans == {"received": 3, "scored": 3}


def test_after_a_drain_what_comes_is_scored_too() -> None:
    bench = Bench()
    bench.at(0, agent_span(1), tool_span(2))

    assert bench.engine.drain()
    drained = {each.trajectory.closed_by for each in bench.sink.evaluations}
    (after,) = bench.at(0, agent_span(3)) or bench.at(10)

    assert drained == {"root", "shutdown"}
    assert after.trajectory.trace_id == hex_id(3)
    assert bench.sink.closed == 0


def test_close_without_flush_closes_everything_as_shutdown() -> None:
    bench = Bench(rules(per="session", match=Match(session="s")))
    bench.engine.feed(in_session(1))

    bench.engine.close(flush=False)

    assert [each.trajectory.closed_by for each in bench.sink.evaluations] == ["shutdown"]
    assert bench.engine.snapshot()["otel_eval.traces"] == {("shutdown",): 1}


def test_spans_after_closing_are_counted_and_nothing_else() -> None:
    bench = Bench()
    bench.engine.close()

    bench.engine.ended(agent_span())
    bench.engine.feed(agent_trace())
    bench.engine.started(1, 1)

    assert bench.spans == {"received": 3, "unevaluated.shutdown": 3}
    assert bench.engine.flush()


def test_a_full_queue_sheds_and_the_trace_is_not_whole() -> None:
    bench = Bench(grouping=Grouping(max_queued_spans=2))
    spans = agent_trace(tools=["a", "b"])

    for each in spans[:-1]:
        bench.engine.ended(each)
    assert bench.engine.is_full
    bench.engine.ended(tool_span(number=9))
    bench.at(0)
    bench.engine.ended(spans[-1])
    bench.at(0)
    (evaluation,) = bench.at(10)

    assert not evaluation.trajectory.whole
    assert bench.spans == {"received": 4, "scored": 3, "unevaluated.shed": 1}


@pytest.mark.parametrize("cause", ["no room in the queue", "cannot be read"])
def test_a_root_that_is_lost_does_not_hold_its_trace_open_until_it_is_old(cause: str) -> None:
    bench = Bench(grouping=Grouping(max_queued_spans=2, idle=300))
    bench.engine.started(1, 1)
    endless: list[object] = []
    endless.append(endless)

    if cause == "cannot be read":
        bench.engine.ended(sdk_span(2, 1, TOOL))
        bench.engine.ended(sdk_span(1, None, {**AGENT, "value": endless}))
    else:
        for number, parent in ((2, 1), (3, 1), (1, None)):
            bench.engine.ended(sdk_span(number, parent, TOOL))
    bench.at(0)

    assert {each.trajectory.closed_by for each in bench.at(300)} == {"idle"}


def big(trace: int, mib: float, **fields: Any) -> Span:
    return agent_span(trace, attributes={**AGENT, "text": "x" * int(mib * MIB)}, **fields)


def test_above_four_fifths_of_the_buffer_the_least_recently_active_traces_close() -> None:
    bench = Bench(grouping=Grouping(max_buffer_bytes=10 * MIB))

    assert [bench.at(trace, big(trace, 2.5)) for trace in (1, 2, 3)] == [[], [], []]
    (evaluation,) = bench.at(4, big(4, 2.5))

    assert evaluation.trajectory.trace_id == hex_id(1)
    assert evaluation.trajectory.closed_by == "capacity"
    assert bench.engine.buffered_bytes < 8 * MIB


def test_a_batch_larger_than_the_buffer_is_scored_bit_by_bit() -> None:
    bench = Bench(grouping=Grouping(max_buffer_bytes=10 * MIB))

    found = bench.at(0, *(big(trace, 1) for trace in range(1, 31)))

    assert {each.trajectory.closed_by for each in found} == {"capacity"}
    assert bench.spans == {"received": 30, "scored": len(found), "open": 30 - len(found)}


def test_sessions_take_no_more_than_their_share_of_the_buffer() -> None:
    bench = Bench(
        rules(per="session", match=Match(session="*")),
        grouping=Grouping(max_buffer_bytes=10 * MIB),
    )
    for trace in range(1, 6):
        text = {"session.id": f"s{trace}", "text": "x" * MIB}
        bench.at(20 * trace, agent_span(trace, attributes={**AGENT, **text}))
        bench.at(20 * trace + 10)

    bench.at(200, agent_span(9))

    assert {each.trajectory.closed_by for each in bench.sink.evaluations} == {"capacity"}
    assert len(bench.engine._sessions) == 2


def test_a_full_buffer_closes_the_least_recently_active_and_sheds_nothing() -> None:
    bench = Bench(grouping=Grouping(max_buffer_bytes=10 * MIB))
    bench.at(0, big(1, 7, parent=5))

    bench.engine.feed([agent_span(2)], size=MIB)
    bench.engine.feed([agent_span(3)], size=4 * MIB)
    assert bench.engine.is_full
    bench.at(1)

    assert bench.engine.snapshot()["otel_eval.traces"][("capacity",)] == 1
    assert "unevaluated.shed" not in bench.spans
    assert bench.spans["open"] == 2
    assert not bench.engine.is_full


def test_a_batch_that_does_not_fit_is_shed() -> None:
    bench = Bench(grouping=Grouping(max_buffer_bytes=10 * MIB))

    bench.engine.feed(agent_trace(1), size=6 * MIB)
    bench.engine.feed(agent_trace(2), size=6 * MIB)

    assert bench.spans == {"received": 4, "open": 2, "unevaluated.shed": 2}


def test_sampled_out_traces_are_skipped_without_asking_a_judge() -> None:
    Judge.released.clear()
    bench = Bench(rules(Judge(), sample=0))

    bench.at(0, *agent_trace())

    assert [each.outcome for each in bench.at(10)] == [
        Skip("sampled_out", "outside the sample of 0.0")
    ]


# With threads.


@pytest.fixture
def open_engine() -> Iterator[Callable[..., Engine]]:
    engines: list[Engine] = []

    def make(chosen: RuleSet, sinks: Iterable[Sink], **options: Any) -> Engine:
        engines.append(Engine(chosen, sinks, **options))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close(1)


def test_the_worker_scores_without_being_asked(open_engine: Callable[..., Engine]) -> None:
    arrived = Event()

    class Signalling(Collecting):
        def emit(self, evaluations: Sequence[Evaluation]) -> None:
            super().emit(evaluations)
            arrived.set()

    sink = Signalling()
    engine = open_engine(rules(), [sink], grouping=Grouping(settle=0))

    engine.feed(agent_trace())

    assert arrived.wait(10)
    assert len(sink.evaluations) == 1


@pytest.mark.parametrize("error", [OSError, SystemExit, CancelledError])
def test_a_sink_that_raises_is_counted_and_the_others_go_on(
    open_engine: Callable[..., Engine], error: type[BaseException]
) -> None:
    sink = Collecting()
    engine = open_engine(rules(), [RaisingSink(error), sink])
    engine.feed(agent_trace())

    assert engine.close(10)

    assert len(sink.evaluations) == 1
    assert engine.counters.errors == {("RaisingSink", "raised"): 2}


def test_a_sink_that_hangs_is_counted_and_close_returns_in_time(
    open_engine: Callable[..., Engine],
) -> None:
    hanging, sink = HangingSink(), Collecting()
    engine = open_engine(rules(), [hanging, sink])
    engine.feed(agent_trace())
    before = time.monotonic()

    assert not engine.close(0.5)

    assert time.monotonic() - before < 10
    assert (len(sink.evaluations), sink.closed) == (1, 1)
    assert engine.counters.errors == {("HangingSink", "hung"): 1}
    hanging.released.set()


def test_a_judge_does_not_delay_the_others(open_engine: Callable[..., Engine]) -> None:
    Judge.released.clear()
    sink = Collecting()
    notices: list[ClosedTrace] = []
    engine = open_engine(rules(Judge(), Tools()), [sink], on_closed=notices.append)
    engine.feed(agent_trace())

    assert not engine.flush(0.3)
    assert [each.evaluator for each in sink.evaluations] == ["tools"]
    Judge.released.set()
    assert engine.flush(10)

    assert [each.evaluator for each in sink.evaluations] == ["tools", "judge"]
    assert [each.evaluator for each in notices[0].evaluations] == ["tools"]
    assert sorted(sink.durations) == ["judge", "tools"]


def test_judges_without_an_answer_are_skipped_when_the_engine_closes() -> None:
    Judge.released.clear()
    sink = Collecting()
    engine = Engine(rules(Judge()), [sink], slow_threads=1)
    engine.feed([*agent_trace(1), *agent_trace(2)])

    assert not engine.close(0.5)
    Judge.released.set()

    assert [each.outcome.code for each in sink.evaluations if isinstance(each.outcome, Skip)] == [
        "timeout",
        "timeout",
    ]
    assert sink.closed == 1


def test_add_sink_after_the_start_gets_what_comes_after(
    open_engine: Callable[..., Engine],
) -> None:
    engine = open_engine(rules(), [])
    engine.feed(agent_trace(1))
    engine.flush(10)
    sink = Collecting()

    engine.add_sink(sink)
    engine.feed(agent_trace(2))
    engine.flush(10)

    assert [each.trajectory.trace_id for each in sink.evaluations] == [hex_id(2)]


def test_flush_and_close_from_a_callback_do_not_deadlock() -> None:
    answers: list[bool] = []
    engine = Engine(
        rules(), grouping=Grouping(settle=0), on_closed=lambda _: answers.append(engine.flush(5))
    )
    engine.feed(agent_trace())

    assert engine.flush(10)
    assert engine.close(10)
    assert answers == [False]


def test_200_threads_that_end_spans_while_the_engine_is_flushed_and_closed() -> None:
    sink = Collecting()
    engine = Engine(rules(), [sink], grouping=Grouping(settle=0))
    ready = threading.Barrier(203)
    errors: list[BaseException] = []

    def guarded(act: Callable[[], object]) -> None:
        ready.wait()
        try:
            act()
        except BaseException as error:
            errors.append(error)

    def produce(number: int) -> None:
        for step in range(20):
            trace = 1 + number * 1000 + step
            engine.started(trace, 1)
            for each in agent_trace(trace):
                engine.ended(each)
            spans_of(engine)

    def flush() -> None:
        for _ in range(5):
            engine.flush(5)

    acts: list[Callable[[], object]] = [lambda n=n: produce(n) for n in range(200)]
    acts += [flush, flush, lambda: engine.close(20)]
    threads = [threading.Thread(target=guarded, args=(act,), daemon=True) for act in acts]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)

    assert not any(each.is_alive() for each in threads)
    assert errors == []
    places = spans_of(engine)
    assert places["received"] == 200 * 20 * 2
    assert "open" not in places
    assert sink.closed == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_after_a_fork_the_child_starts_clean_and_the_parent_keeps_its_traces() -> None:
    sink = Collecting()
    engine = Engine(rules(), [sink])
    engine.feed(agent_trace(1))
    engine.feed([tool_span(2)])
    engine.flush(10)
    receiver, sender = multiprocessing.Pipe(duplex=False)

    child = os.fork()
    if child == 0:
        before = spans_of(engine)
        engine.feed(agent_trace(3))
        closed = engine.close(10)
        told_of = [each.trajectory.trace_id for each in sink.evaluations[1:]]
        sender.send((before, closed, told_of, spans_of(engine)))
        os._exit(0)
    os.waitpid(child, 0)
    in_child = receiver.recv()
    engine.feed([agent_span(2)])
    engine.close(10)

    assert in_child == ({}, True, [hex_id(3)], {"received": 2, "scored": 2})
    assert [each.trajectory.trace_id for each in sink.evaluations] == [hex_id(1), hex_id(2)]
    assert spans_of(engine) == {"received": 4, "scored": 4}


# Laws.

SOME_SPANS = st.builds(
    lambda trace, number, shape: {
        "agent": lambda: agent_span(trace, 1),
        "tool": lambda: tool_span(trace, number),
        "entry": lambda: replace(tool_span(trace, number, 99), parent_remote=True),
        "plain": lambda: span(trace_id=hex_id(trace), span_id=hex_id(number, 16)),
        "own": lambda: span(trace_id=hex_id(trace), scope=Scope(name="otel_eval")),
    }[shape](),
    st.integers(1, 4),
    st.integers(2, 6),
    st.sampled_from(["agent", "tool", "entry", "plain", "own"]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("feed"), st.lists(SOME_SPANS, max_size=6)),
        st.tuples(st.just("end"), SOME_SPANS),
        st.tuples(st.just("start"), st.integers(1, 4)),
        st.tuples(st.just("step"), st.floats(0, 400)),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("close"), st.booleans()),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(STEPS, st.integers(1, 5), st.integers(1, 3))
def test_every_span_is_in_exactly_one_place_at_every_moment(
    steps: list[tuple[str, Any]], max_spans: int, max_open: int
) -> None:
    grouping = Grouping(
        max_spans_per_trace=max_spans,
        max_open_traces=max_open,
        max_queued_spans=8,
        max_buffer_bytes=20_000,
    )
    bench = Bench(grouping=grouping)
    fed = 0

    for action, what in steps:
        match action:
            case "feed":
                bench.engine.feed(what, size=3_000)
                fed += len(what)
            case "end":
                bench.engine.ended(what)
                fed += 1
            case "start":
                bench.engine.started(what, 2)
            case "step":
                bench.at(bench.now + what)
            case "flush":
                bench.engine.flush()
            case "close":
                bench.engine.close(flush=what)
        assert bench.spans.get("received", 0) == fed
    bench.engine.close()

    assert bench.spans.get("received", 0) == fed
    assert "open" not in bench.spans


@settings(deadline=None, max_examples=50)
@given(st.randoms(use_true_random=False), st.integers(1, 7))
def test_any_interleaving_of_traces_gives_the_same_evaluations(
    shuffler: random.Random, batch: int
) -> None:
    spans = [each for trace in (1, 2, 3) for each in agent_trace(trace, ["a", "b", f"c{trace}"])]
    straight, mixed = Bench(), Bench()
    straight.at(0, *spans)
    straight.at(10)

    shuffler.shuffle(spans)
    for first in range(0, len(spans), batch):
        mixed.at(first / 10, *spans[first : first + batch])
    mixed.at(20)

    assert told(mixed.sink.evaluations) == told(straight.sink.evaluations)
    assert len(mixed.sink.evaluations) == 3


def seconds_per_span(open_traces: int) -> float:
    """Of this thread's own time: the machine may have other things to do."""
    bench = Bench()
    bench.at(0, *(tool_span(trace) for trace in range(1, open_traces + 1)))
    probes = [tool_span(1 + number % open_traces, 3 + number) for number in range(2_000)]
    started = time.thread_time()
    bench.at(1, *probes)
    bench.at(2)
    return time.thread_time() - started


def test_the_cost_of_a_span_does_not_grow_with_the_open_traces() -> None:
    few = min(seconds_per_span(500) for _ in range(3))
    many = min(seconds_per_span(15_000) for _ in range(2))

    assert many < 4 * few


def test_sessions_that_fill_the_buffer_close_early_and_stop_nothing() -> None:
    """Parsed arguments weigh more than their text, so a step may bring more than there is room."""
    arguments = json.dumps({"a": [0.5 + number for number in range(600)]})
    per_session = rules(Tools(), per="session", match=Match(session="*"))
    bench = Bench(per_session, grouping=Grouping(max_buffer_bytes=1 << 20, settle=0))

    def feed(trace: int) -> None:
        attributes = {"tool.name": "t", "input.value": arguments, "session.id": f"s{trace}"}
        span_id = hex_id(1, 16)
        bench.engine.feed(
            [Span(trace_id=hex_id(trace), span_id=span_id, end_ns=1, attributes=attributes)]
        )

    for now, first in enumerate(range(1, 61, 20), 1):
        for trace in range(first, first + 20):
            feed(trace)
        bench.engine.step(float(now))
        assert bench.engine.buffered_bytes <= 1 << 20
    bench.engine.close()

    assert len(bench.sink.evaluations) == 60
