import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from opentelemetry import trace
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_eval import ConfigError, EvalSpanExporter, Evaluator, Match, Rule
from otel_eval.holding import MAX_HELD, Holder
from otel_eval.model import Score, ToolCall, Trajectory
from otel_eval.sinks.event import ResultEvent
from tests.conftest import span
from tests.telemetry import Telemetry, agent_of, is_evaluation, results


class EachCall(Evaluator):
    """Likes every call."""

    type: str = "each-call"

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score:
        return Score(1.0, f"{call.name} of {len(trajectory.tool_calls)}")


class Judge(Evaluator):
    """Answers when it is released."""

    type: str = "judge"
    needs_model: ClassVar[bool] = True
    released: ClassVar[threading.Event] = threading.Event()

    def evaluate(self, trajectory: Trajectory) -> Score:
        assert self.released.wait(10)
        return Score(1.0, trajectory.trace_id)


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def add(telemetry: Telemetry) -> Iterator[Callable[..., EvalSpanExporter]]:
    """Registers an exporter around the one in memory, called as each span ends."""
    added: list[EvalSpanExporter] = []

    def make(config: Any = None, **options: Any) -> EvalSpanExporter:
        given = {"inner": telemetry.spans, **telemetry.options(), **options}
        added.append(EvalSpanExporter(config=config, **given))
        telemetry.tracer_provider.add_span_processor(SimpleSpanProcessor(added[-1]))
        return added[-1]

    yield make
    for each in added:
        each.shutdown()


Add = Callable[..., EvalSpanExporter]


def rule(*evaluators: Any, **fields: Any) -> Rule:
    chosen = evaluators or ({"type": "tool-error-rate"},)
    return Rule.model_validate({"name": "rule", "evaluators": chosen, **fields})


def names(spans: Sequence[ReadableSpan]) -> list[str]:
    return [span.name for span in spans]


def test_scores_are_events_on_a_copy_of_the_agents_span(telemetry: Telemetry, add: Add) -> None:
    exporter = add(rules=[rule()])

    telemetry.run("search")
    before = names(telemetry.spans.get_finished_spans())
    assert exporter.force_flush()

    call, agent = telemetry.spans.get_finished_spans()
    [result] = results(agent)
    assert before == ["search"]
    assert (call.name, agent.name) == ("search", "invoke_agent helper")
    assert (result.attributes or {})["gen_ai.evaluation.score.value"] == 1.0
    assert result.timestamp == agent.end_time
    assert not results(call)
    assert telemetry.scores() == {"tool-error-rate": 1.0}
    assert len(telemetry.events()) == len(telemetry.evaluations) == 1


def test_the_span_that_ended_is_not_changed(telemetry: Telemetry, add: Add) -> None:
    exporter = add()
    original = telemetry.tracer.start_span("invoke_agent", attributes=agent_of("helper"))

    original.add_event("mine")
    original.end()
    exporter.force_flush()

    [copied] = telemetry.spans.get_finished_spans()
    assert isinstance(original, ReadableSpan)
    assert len(copied.events) == 3
    assert [event.name for event in original.events] == ["mine"]
    assert (copied.context, copied.attributes) == (original.context, original.attributes)


def test_only_possible_anchors_wait(telemetry: Telemetry, add: Add) -> None:
    exporter = add(rules=[rule(match=Match(agent="*"))])
    server = telemetry.tracer.start_span("POST /chat")

    with trace.use_span(server, end_on_exit=True):
        with telemetry.tracer.start_as_current_span("SELECT"):
            pass
        telemetry.run("search")
    at_once = names(telemetry.spans.get_finished_spans())
    exporter.force_flush()

    assert at_once == ["SELECT", "search"]
    told = [span.name for span in telemetry.spans.get_finished_spans() if results(span)]
    assert told == ["invoke_agent helper"]
    assert len(telemetry.spans.get_finished_spans()) == 4


def test_tool_spans_wait_where_a_rule_judges_each_call(telemetry: Telemetry, add: Add) -> None:
    exporter = add(rules=[rule(EachCall())])

    telemetry.run("search", "book")
    before = names(telemetry.spans.get_finished_spans())
    exporter.force_flush()

    after = telemetry.spans.get_finished_spans()
    assert before == []
    assert [(span.name, len(results(span))) for span in after] == [
        ("search", 1),
        ("book", 1),
        ("invoke_agent helper", 0),
    ]


def test_nothing_waits_for_a_judge_whose_answer_comes_on_a_span_of_its_own(
    telemetry: Telemetry, add: Add
) -> None:
    Judge.released.clear()
    exporter = add(rules=[rule({"type": "tool-loop"}, Judge())])

    telemetry.run("search")
    flushed = exporter.force_flush(200)
    agent = next(span for span in telemetry.spans.get_finished_spans() if results(span))
    Judge.released.set()
    exporter.force_flush()

    assert not flushed
    assert [(e.attributes or {})["gen_ai.evaluation.name"] for e in results(agent)] == ["tool-loop"]
    [late] = [span for span in telemetry.spans.get_finished_spans() if is_evaluation(span)]
    assert [(e.attributes or {})["gen_ai.evaluation.name"] for e in results(late)] == ["judge"]
    assert late.parent is not None
    assert late.parent.span_id == (agent.context.span_id if agent.context else None)


def test_a_span_that_waited_too_long_leaves_and_its_score_follows(
    telemetry: Telemetry, add: Add
) -> None:
    exported = threading.Event()

    class Signalling(InMemorySpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            found = super().export(spans)
            exported.set()
            return found

    telemetry.spans = Signalling()
    exporter = add(rules=[rule(match=Match(agent="helper"))], max_hold=0.0)
    root = telemetry.tracer.start_span("POST /chat")

    with trace.use_span(root):
        telemetry.run()
    assert exported.wait(10)
    early = telemetry.spans.get_finished_spans()
    root.end()
    exporter.force_flush()

    assert names(early) == ["invoke_agent helper"]
    assert not results(early[0])
    [late] = [span for span in telemetry.spans.get_finished_spans() if is_evaluation(span)]
    assert late.name == "evaluation rule"


def test_a_session_is_told_on_a_span_of_its_own(telemetry: Telemetry, add: Add) -> None:
    exporter = add(rules=[rule(per="session")])
    attributes = {**agent_of("helper"), "session.id": "s1"}

    with telemetry.tracer.start_as_current_span("invoke_agent", attributes=attributes):
        telemetry.call("search")
    exporter.shutdown()

    agent = next(s for s in telemetry.spans.get_finished_spans() if s.name == "invoke_agent")
    [told] = [span for span in telemetry.spans.get_finished_spans() if is_evaluation(span)]
    assert not results(agent)
    assert len(results(told)) == 1


def test_without_an_inner_exporter_it_only_evaluates(telemetry: Telemetry, add: Add) -> None:
    exporter = add(inner=None, tracer_provider=telemetry.tracer_provider)
    telemetry.export_spans()

    telemetry.run("search")
    assert exporter.force_flush()

    assert len(telemetry.evaluations) == 2
    [told] = telemetry.evaluation_spans()
    assert len(results(told)) == 2
    assert telemetry.counts("otel_eval.spans.scored") == {(): 2}


def test_events_that_are_not_wanted_let_every_span_pass(
    telemetry: Telemetry, add: Add, tmp_path: Path
) -> None:
    file = tmp_path / "quiet.yaml"
    file.write_text("emit: {events: [log]}")
    add(file)

    telemetry.run("search")

    assert names(telemetry.spans.get_finished_spans()) == ["search", "invoke_agent helper"]


def test_a_trace_is_scored_without_being_asked_once_it_settled(
    telemetry: Telemetry, add: Add, tmp_path: Path
) -> None:
    scored = threading.Event()
    file = tmp_path / "quick.yaml"
    file.write_text("grouping: {settle: 0s}")
    add(file, on_evaluation=lambda _: scored.set())

    telemetry.run("search")

    assert scored.wait(10)


def test_shutdown_sends_what_is_held_and_shuts_the_inner_exporter_down(
    telemetry: Telemetry, add: Add
) -> None:
    exporter = add()
    root = telemetry.tracer.start_span("POST /chat")
    with trace.use_span(root):
        telemetry.run("search")

    exporter.shutdown()
    root.end()

    spans = telemetry.spans.get_finished_spans()
    assert sorted(names(spans)) == ["invoke_agent helper", "search"]
    assert telemetry.spans._stopped
    assert {each.trajectory.closed_by for each in telemetry.evaluations} == {"shutdown"}


class Raising(SpanExporter):
    def __init__(self) -> None:
        self.suppressed: list[object] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.suppressed.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        raise OSError(f"no way for {len(spans)}")


def test_an_inner_exporter_that_raises_disturbs_nobody(
    telemetry: Telemetry, add: Add, caplog: pytest.LogCaptureFixture
) -> None:
    inner = Raising()
    exporter = add(inner=inner)

    telemetry.run("search")
    exporter.force_flush()

    assert len(telemetry.evaluations) == 2
    assert inner.suppressed == [True, True]
    assert "Raising raised" in caplog.text


def test_a_span_that_cannot_be_read_still_passes(telemetry: Telemetry, add: Add) -> None:
    exporter = add()
    nested: dict[str, Any] = {}
    nested["again"] = nested
    odd = ReadableSpan("odd", attributes={"value": nested})

    assert exporter.export([odd]) is SpanExportResult.SUCCESS
    exporter.force_flush()

    assert telemetry.spans.get_finished_spans() == (odd,)
    assert telemetry.counts("otel_eval.spans.unevaluated") == {("undecodable",): 1}


def test_behind_a_batch_processor_every_span_arrives_once(telemetry: Telemetry) -> None:
    exporter = EvalSpanExporter(telemetry.spans, **telemetry.options())
    telemetry.tracer_provider.add_span_processor(BatchSpanProcessor(exporter))

    for _ in range(50):
        telemetry.run("search", "book")
    telemetry.tracer_provider.shutdown()

    spans = telemetry.spans.get_finished_spans()
    assert len(spans) == len({span.context.span_id for span in spans if span.context}) == 150
    assert sum(len(results(span)) for span in spans) == len(telemetry.evaluations) == 100


def test_a_full_holder_lets_spans_pass() -> None:
    holder = Holder(ResultEvent(), max_hold=10.0)
    original = ReadableSpan("any")

    taken = [
        holder.hold(span(span_id=f"{number:016x}"), original, 0.0) for number in range(MAX_HELD + 1)
    ]

    assert taken == [True] * MAX_HELD + [False]
    assert len(holder.take(9.0)) == 0
    assert len(holder.take(10.0)) == MAX_HELD


def test_a_span_that_is_exported_twice_is_held_once() -> None:
    holder = Holder(ResultEvent(), max_hold=10.0)

    assert holder.hold(span(), ReadableSpan("first"), 0.0)
    assert not holder.hold(span(), ReadableSpan("second"), 0.0)


def test_a_bad_configuration_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        EvalSpanExporter(config="nowhere.yaml")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_after_a_fork_the_child_holds_nothing_and_the_parent_what_it_held(
    telemetry: Telemetry, add: Add
) -> None:
    exporter = add()
    root = telemetry.tracer.start_span("invoke_agent parent", attributes=agent_of("parent"))
    root.end()
    receiver, sender = multiprocessing.Pipe(duplex=False)

    child = os.fork()
    if child == 0:
        telemetry.run("search", agent="child")
        exporter.force_flush()
        sender.send(names(telemetry.spans.get_finished_spans()))
        os._exit(0)
    os.waitpid(child, 0)
    exporter.force_flush()

    assert receiver.recv() == ["search", "invoke_agent child"]
    assert names(telemetry.spans.get_finished_spans()) == ["invoke_agent parent"]
