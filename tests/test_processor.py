import json
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from otel_eval import ConfigError, EvalSpanProcessor, Rule
from otel_eval.model import Evaluation, Score
from tests.telemetry import Telemetry, agent_of, results

TOKYO = """
rules:
  - name: tokyo
    match: {MATCH}
    evaluators:
      - type: tool-call-count
        toolCallsCount:
          {get_temperature: ["=", 1], get_weather_condition: ["=", 1], get_humidity: ["=", 1],
           get_forecast: ["=", 1]}
      - type: tool-call-order
        toolCallsOrder: [get_temperature, get_weather_condition, get_humidity, get_forecast]
      - type: tool-call-args
        toolCalls:
          - {name: get_temperature, args: {city: Tokyo}}
          - {name: get_weather_condition, args: {city: Tokyo}}
          - {name: get_humidity, args: {city: Tokyo}}
          - {name: get_forecast, args: {city: Tokyo}}
      - type: tool-call-output
        toolOutputs:
          - {name: get_temperature, output: "{'temperature': 25.0, 'unit': 'fahrenheit'}"}
          - {name: get_weather_condition, output: "{'condition': 'cloudy'}"}
          - {name: get_humidity, output: "{'humidity': 65}"}
          - {name: get_forecast, output: "{'forecast': 'Overcast with mild temperatures'}"}
"""
WEATHER: dict[str, dict[str, Any]] = {
    "get_temperature": {"temperature": 25.0, "unit": "fahrenheit"},
    "get_weather_condition": {"condition": "cloudy"},
    "get_humidity": {"humidity": 65},
    "get_forecast": {"forecast": "Overcast with mild temperatures"},
}
EVALUATORS = ["tool-call-count", "tool-call-order", "tool-call-args", "tool-call-output"]


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def add(telemetry: Telemetry) -> Iterator[Callable[..., EvalSpanProcessor]]:
    """Registers a processor before the one that exports; shuts it down afterwards."""
    added: list[EvalSpanProcessor] = []

    def make(config: Any = None, **options: Any) -> EvalSpanProcessor:
        added.append(EvalSpanProcessor(config, **{**telemetry.options(), **options}))
        telemetry.tracer_provider.add_span_processor(added[-1])
        telemetry.export_spans()
        return added[-1]

    yield make
    for each in added:
        each.shutdown()


Add = Callable[..., EvalSpanProcessor]


def rule(*evaluators: dict[str, Any], **fields: Any) -> Rule:
    chosen = evaluators or ({"type": "tool-call-order", "tool_calls_order": ["search"]},)
    return Rule.parse({"name": "rule", "evaluators": list(chosen), **fields})


def ask_for_tokyo(telemetry: Telemetry, *, session: str = "", humidity: int = 65) -> None:
    told = {**agent_of("weather-agent"), "session.id": session}
    answers = {**WEATHER, "get_humidity": {"humidity": humidity}}
    with telemetry.tracer.start_as_current_span("invoke_agent weather-agent", attributes=told):
        for tool, output in answers.items():
            telemetry.call(tool, output, city="Tokyo")


def values(evaluations: list[Evaluation]) -> dict[str, float]:
    return {
        each.evaluator: each.outcome.value
        for each in evaluations
        if isinstance(each.outcome, Score)
    }


def test_the_weather_example_keyed_by_agent(telemetry: Telemetry, add: Add, tmp_path: Path) -> None:
    file = tmp_path / "otel-eval.yaml"
    file.write_text(TOKYO.replace("MATCH", 'agent: "weather-*"'))
    processor = add(file)

    ask_for_tokyo(telemetry)
    telemetry.run("get_temperature", agent="another")
    assert processor.force_flush()

    assert values(telemetry.evaluations) == dict.fromkeys(EVALUATORS, 1.0)
    assert telemetry.scores() == dict.fromkeys(EVALUATORS, 1.0)
    assert [each["gen_ai.evaluation.score.label"] for each in telemetry.events()] == ["pass"] * 4
    assert {each["gen_ai.agent.name"] for each in telemetry.events()} == {"weather-agent"}


def test_the_weather_example_keyed_by_session(
    telemetry: Telemetry, add: Add, tmp_path: Path
) -> None:
    file = tmp_path / "otel-eval.yaml"
    file.write_text(TOKYO.replace("MATCH", "session: tokyo-42"))
    processor = add(str(file))

    ask_for_tokyo(telemetry, session="tokyo-42", humidity=66)
    ask_for_tokyo(telemetry, session="paris-1")
    assert processor.force_flush()

    expected = {**dict.fromkeys(EVALUATORS, 1.0), "tool-call-output": 0.75}
    assert values(telemetry.evaluations) == expected
    assert telemetry.scores() == expected
    assert {each["gen_ai.conversation.id"] for each in telemetry.events()} == {"tokyo-42"}
    [told] = telemetry.evaluation_spans()
    assert [(event.attributes or {})["otel_eval.verdict"] for event in results(told)] == [
        "pass",
        "pass",
        "pass",
        "fail",
    ]


def test_the_evaluation_span_is_a_child_of_the_agents_span_and_goes_where_that_goes(
    telemetry: Telemetry, add: Add
) -> None:
    processor = add(rules=[rule(match={"agent": "helper"})])

    telemetry.run("search")
    processor.force_flush()
    processor.force_flush()

    agent = next(s for s in telemetry.spans.get_finished_spans() if s.name == "invoke_agent helper")
    [told] = telemetry.evaluation_spans()
    assert agent.context is not None
    assert told.parent is not None
    assert told.name == "evaluation rule"
    assert (told.parent.trace_id, told.parent.span_id) == (
        agent.context.trace_id,
        agent.context.span_id,
    )
    assert told.start_time == told.end_time == agent.end_time
    assert told.resource.attributes["service.name"] == "weather"
    assert telemetry.counts("otel_eval.spans.own") == {(): 1}
    assert telemetry.counts("otel_eval.spans.scored") == {(): 2}


def test_evaluation_spans_go_to_the_provider_that_is_handed_in(
    telemetry: Telemetry, add: Add
) -> None:
    other = Telemetry()
    other.export_spans()
    processor = add(tracer_provider=other.tracer_provider)

    telemetry.run("search")
    processor.force_flush()

    assert telemetry.evaluation_spans() == []
    assert len(other.evaluation_spans()) == 1


def test_without_any_configuration_every_agent_is_scored(telemetry: Telemetry, add: Add) -> None:
    processor = add()

    telemetry.run("search")
    processor.force_flush()

    assert values(telemetry.evaluations) == {"tool-error-rate": 1.0, "tool-loop": 1.0}


def test_a_flush_scores_what_ended_and_leaves_the_rest_open(telemetry: Telemetry, add: Add) -> None:
    processor = add(rules=[rule()])
    root = telemetry.tracer.start_span("invoke_agent", attributes=agent_of("slow"))
    with trace.use_span(root):
        telemetry.call("search")

    telemetry.run("search")
    assert processor.force_flush()
    before = [each.trajectory.agent for each in telemetry.evaluations]
    root.end()
    assert processor.force_flush()

    assert before == ["helper"]
    assert [each.trajectory.agent for each in telemetry.evaluations] == ["helper", "slow"]
    assert all(each.trajectory.whole for each in telemetry.evaluations)


def test_a_trace_without_open_spans_is_scored_without_being_asked(
    telemetry: Telemetry, add: Add
) -> None:
    scored = threading.Event()
    add(rules=[rule()], on_evaluation=lambda _: scored.set())

    telemetry.run("search")

    assert scored.wait(10)


def test_a_local_root_closes_its_trace_too(telemetry: Telemetry, add: Add) -> None:
    scored = threading.Event()
    add(rules=[rule()], on_evaluation=lambda _: scored.set())
    caller = SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    with trace.use_span(NonRecordingSpan(caller)):
        telemetry.run("search")

    assert scored.wait(10)


def test_shutdown_scores_what_is_open_as_not_whole(telemetry: Telemetry, add: Add) -> None:
    processor = add(rules=[rule({"type": "tool-error-rate"})])
    root = telemetry.tracer.start_span("invoke_agent", attributes=agent_of("slow"))
    with trace.use_span(root):
        telemetry.call("search")

    processor.shutdown()
    processor.shutdown()
    root.end()

    [evaluation] = telemetry.evaluations
    assert evaluation.trajectory.closed_by == "shutdown"
    assert not evaluation.trajectory.whole
    assert telemetry.counts("otel_eval.spans.unevaluated") == {("shutdown",): 1}


class RecordOnly(Sampler):
    def should_sample(self, *_args: Any, **_options: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "record only"


def test_spans_without_the_sampled_flag_are_skipped(telemetry: Telemetry, add: Add) -> None:
    processor = add()
    telemetry.tracer_provider.sampler = RecordOnly()
    telemetry.tracer = telemetry.tracer_provider.get_tracer("unsampled")

    telemetry.run("search")
    processor.force_flush()

    assert telemetry.evaluations == []
    assert telemetry.counts("otel_eval.spans.received") == {(): 0}
    assert telemetry.counts("otel_eval.open_traces") == {(): 0}


def test_a_span_without_a_context_is_skipped(add: Add) -> None:
    processor = add()

    processor.on_end(ReadableSpan("nothing"))

    assert processor.force_flush()


@pytest.mark.parametrize("error", [ArithmeticError, SystemExit])
def test_a_callback_that_raises_keeps_nothing_from_the_others(
    telemetry: Telemetry,
    add: Add,
    caplog: pytest.LogCaptureFixture,
    error: type[BaseException],
) -> None:
    seen: list[str] = []

    def refuse(evaluation: Evaluation) -> None:
        seen.append(evaluation.evaluator)
        raise error("no thanks")

    processor = add(on_evaluation=refuse)
    telemetry.run("search")
    processor.force_flush()

    assert seen == ["tool-error-rate", "tool-loop"]
    assert len(telemetry.events()) == 2
    assert f"on_evaluation raised {error.__name__}" in caplog.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"config": "nowhere.yaml"}, "nowhere.yaml", id="no file"),
        pytest.param({"rules": [{"name": "x"}]}, r"rules\[0\]: a dict", id="no rule"),
        pytest.param({"rules": [rule(), rule()]}, r"rules\[1\].name", id="one name twice"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_at_once(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        EvalSpanProcessor(**options)


def test_events_that_are_not_wanted_are_not_emitted(
    telemetry: Telemetry, add: Add, tmp_path: Path
) -> None:
    file = tmp_path / "quiet.yaml"
    file.write_text("emit: {events: []}")
    processor = add(file)

    telemetry.run("search")
    processor.force_flush()

    assert len(telemetry.evaluations) == 2
    assert telemetry.events() == []
    assert telemetry.evaluation_spans() == []


CANARY = "canary-90c1"


def test_nothing_that_agents_say_or_do_leaves_by_events_metrics_or_logs(
    telemetry: Telemetry, add: Add, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    args = {"name": "search", "args": {"q": "else"}}
    processor = add(
        rules=[
            rule(
                {"type": "tool-call-args", "tool_calls": [args]},
                {"type": "tool-call-output", "tool_outputs": [{"name": "search", "output": "x"}]},
                {"type": "tool-call-accuracy", "expected": [{"tool": "search", "args": {}}]},
                {"type": "tool-error-rate"},
                {"type": "tool-loop"},
            )
        ]
    )
    said = {**agent_of("helper"), "input.value": CANARY, "output.value": CANARY}

    with telemetry.tracer.start_as_current_span("invoke_agent helper", attributes=said):
        telemetry.call("search", f"{CANARY} found", q=CANARY)
        with telemetry.tracer.start_as_current_span("book") as span:
            span.set_attribute("tool.name", "book")
            span.record_exception(ValueError(CANARY))
    assert processor.force_flush()

    metrics = telemetry.reader.get_metrics_data()
    assert metrics is not None
    told = [
        metrics.to_json(),
        json.dumps(telemetry.events()),
        *(span.to_json() for span in telemetry.evaluation_spans()),
        caplog.text,
    ]
    assert len(telemetry.events()) == 5
    assert len(telemetry.evaluation_spans()) == 1
    assert not any(CANARY in text for text in told)


class Watching(SpanProcessor):
    """Whether spans are made while the scoring runs."""

    def __init__(self) -> None:
        self.started = 0

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002
        self.started += 1


def test_scoring_makes_no_spans_that_are_started_by_a_tracer(
    telemetry: Telemetry, add: Add
) -> None:
    watching = Watching()
    telemetry.tracer_provider.add_span_processor(watching)
    processor = add()

    telemetry.run("search")
    processor.force_flush()

    assert watching.started == 2


def test_200_threads_make_spans_while_the_processor_is_flushed_and_shut_down(
    telemetry: Telemetry, add: Add
) -> None:
    processor = add()
    ready = threading.Barrier(203)
    errors: list[BaseException] = []

    def guarded(act: Callable[[], object]) -> None:
        ready.wait()
        try:
            act()
        except BaseException as error:
            errors.append(error)

    def produce() -> None:
        for _ in range(10):
            telemetry.run("search")

    def flush() -> None:
        for _ in range(5):
            processor.force_flush(5_000)

    acts: list[Callable[[], object]] = [*[produce] * 200, flush, flush, processor.shutdown]
    threads = [threading.Thread(target=guarded, args=(act,), daemon=True) for act in acts]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)

    assert not any(each.is_alive() for each in threads)
    assert errors == []
    received = telemetry.counts("otel_eval.spans.received")[()]
    places = ["scored", "late", "duplicate", "own"]
    settled = sum(telemetry.counts(f"otel_eval.spans.{place}")[()] for place in places)
    refused = sum(telemetry.counts("otel_eval.spans.unevaluated").values())
    assert received == settled + refused
    assert telemetry.counts("otel_eval.spans.open") == {(): 0}
    assert received - telemetry.counts("otel_eval.spans.own")[()] == 200 * 10 * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_after_a_fork_the_child_starts_clean_and_the_parent_keeps_its_traces(
    telemetry: Telemetry, add: Add
) -> None:
    processor = add(rules=[rule()])
    telemetry.run("search", agent="before")
    root = telemetry.tracer.start_span("invoke_agent", attributes=agent_of("parent"))
    with trace.use_span(root):
        telemetry.call("search")
    processor.force_flush()
    receiver, sender = multiprocessing.Pipe(duplex=False)

    child = os.fork()
    if child == 0:
        telemetry.run("search", agent="child")
        processor.force_flush()
        processor.shutdown()
        sender.send([each.trajectory.agent for each in telemetry.evaluations])
        os._exit(0)
    os.waitpid(child, 0)
    root.end()
    processor.force_flush()

    assert receiver.recv() == ["before", "child"]
    assert [each.trajectory.agent for each in telemetry.evaluations] == ["before", "parent"]


def test_the_agents_thread_pays_less_than_for_a_batch_span_processor() -> None:
    """In a process of its own: coverage would slow down our side only."""
    repository = Path(__file__).parents[1]

    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.processor"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=repository,
    )

    assert done.returncode == 0, done.stdout + done.stderr
