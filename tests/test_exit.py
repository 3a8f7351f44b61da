"""What a process has to say when it ends is said, whatever was made first."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, ConsoleLogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from otel_eval import EvalSpanExporter, EvalSpanProcessor
"""
PROVIDERS = {
    "traces": "provider = TracerProvider(); trace.set_tracer_provider(provider)",
    "metrics": (
        "reader = PeriodicExportingMetricReader(ConsoleMetricExporter())\n"
        "metrics.set_meter_provider(MeterProvider([reader]))"
    ),
    "logs": (
        "logs = LoggerProvider(); _logs.set_logger_provider(logs)\n"
        "logs.add_log_record_processor(BatchLogRecordProcessor(ConsoleLogRecordExporter()))"
    ),
}
SCORING = "provider.add_span_processor(EvalSpanProcessor())"
EXPORTING = "provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))"
BOTH = (
    "exporter = EvalSpanExporter(ConsoleSpanExporter())\n"
    "provider.add_span_processor(BatchSpanProcessor(exporter))"
)
TRACE = """
with provider.get_tracer("agent").start_as_current_span("invoke_agent helper") as agent:
    agent.set_attribute("gen_ai.operation.name", "invoke_agent")
    agent.set_attribute("gen_ai.agent.name", "helper")
    with provider.get_tracer("agent").start_as_current_span("search") as call:
        call.set_attribute("gen_ai.tool.name", "search")
"""
OPEN = """
root = provider.get_tracer("agent").start_span("invoke_agent helper", attributes={
    "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"})
with trace.use_span(root), provider.get_tracer("agent").start_as_current_span("search") as call:
    call.set_attribute("gen_ai.tool.name", "search")
"""


def said_by(*lines: str) -> str:
    """What a process that runs these lines prints."""
    script = HEAD + "\n".join(lines)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def check(said: str, *, own_span: bool = True) -> None:
    assert '"otel_eval.score"' in said
    assert '"event_name": "gen_ai.evaluation.result"' in said
    assert ('"name": "evaluation default"' in said) == own_span
    assert said.count('"otel_eval.verdict": "pass"') == 4
    assert said.count('"name": "invoke_agent helper"') == 1


@pytest.mark.parametrize("order", list(itertools.permutations(PROVIDERS)), ids=" ".join)
@pytest.mark.parametrize("last", [SCORING, EXPORTING], ids=["scoring last", "scoring first"])
def test_a_processor_loses_nothing_at_exit(order: tuple[str, ...], last: str) -> None:
    first = EXPORTING if last == SCORING else SCORING

    said = said_by(*(PROVIDERS[each] for each in order), first, last, TRACE)

    check(said)


@pytest.mark.parametrize("last", [SCORING, EXPORTING], ids=["scoring last", "scoring first"])
def test_a_processor_that_is_added_before_the_other_providers_are_made(last: str) -> None:
    first = EXPORTING if last == SCORING else SCORING

    said = said_by(PROVIDERS["traces"], first, last, PROVIDERS["logs"], PROVIDERS["metrics"], TRACE)

    check(said)


def test_a_processor_loses_nothing_to_providers_that_come_after_the_first_span() -> None:
    said = said_by(
        PROVIDERS["traces"], SCORING, EXPORTING, TRACE, PROVIDERS["metrics"], PROVIDERS["logs"]
    )

    check(said)


def test_a_processor_scores_a_trace_that_is_open_at_exit() -> None:
    said = said_by(*PROVIDERS.values(), SCORING, EXPORTING, OPEN)

    assert '"otel_eval.score"' in said
    assert said.count('"otel_eval.closed_by": "shutdown"') == 4


@pytest.mark.parametrize(
    "scoring", [SCORING + "\n" + EXPORTING, BOTH], ids=["processor", "exporter"]
)
def test_a_trace_that_ends_in_an_exit_hook_of_the_application_is_scored_whole(scoring: str) -> None:
    ends = "import atexit; atexit.register(root.end)"

    said = said_by(*PROVIDERS.values(), scoring, OPEN, ends)

    check(said, own_span=scoring != BOTH)
    assert said.count('"otel_eval.whole": true') == 4


def test_a_trace_that_is_made_after_everything_was_scored_is_scored_too() -> None:
    """By an exit hook that was registered before the first span: it runs after ours."""
    made_last = f"import atexit; atexit.register(exec, {TRACE!r}, globals())"

    said = said_by(
        *(PROVIDERS[each] for each in ("metrics", "logs", "traces")),
        *(SCORING, EXPORTING, made_last, TRACE),
    )

    assert said.count('"otel_eval.verdict": "pass"') == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("before", ["", TRACE], ids=["no span before", "a span before"])
def test_a_forked_worker_loses_nothing_at_its_exit(before: str) -> None:
    """As under a server that loads the application and then forks its workers."""
    quiet = "import os, warnings; warnings.simplefilter('ignore')"
    fork = "child = os.fork()\nif child: os.waitpid(child, 0); os._exit(0)"

    said = said_by(*PROVIDERS.values(), SCORING, EXPORTING, quiet, before, fork, TRACE)

    check(said)


@pytest.mark.parametrize("order", list(itertools.permutations(PROVIDERS)), ids=" ".join)
def test_an_exporter_loses_nothing_at_exit(order: tuple[str, ...]) -> None:
    said = said_by(*(PROVIDERS[each] for each in order), BOTH, TRACE)

    check(said, own_span=False)


def test_an_exporter_that_is_made_before_the_other_providers_loses_nothing() -> None:
    said = said_by(PROVIDERS["traces"], BOTH, PROVIDERS["metrics"], PROVIDERS["logs"], TRACE)

    check(said, own_span=False)


def test_an_exporter_of_a_provider_that_is_not_global_loses_nothing_at_exit() -> None:
    traces = "provider = TracerProvider()"

    said = said_by(traces, PROVIDERS["metrics"], PROVIDERS["logs"], BOTH, TRACE)

    check(said, own_span=False)


def test_at_exit_an_exporter_asks_only_those_for_spans_that_feed_it() -> None:
    """Not a processor that may wait long for its collector, nor what does not say what it is."""
    others = """
from opentelemetry.sdk.trace import SpanProcessor
class Waiting(SpanProcessor):
    def force_flush(self, timeout_millis=None):
        print("flushed")
class Elsewhere:
    @property
    def __class__(self):
        raise LookupError
provider.add_span_processor(Waiting())
kept = Elsewhere()
"""

    said = said_by(*PROVIDERS.values(), others, BOTH, TRACE)

    check(said, own_span=False)
    assert "flushed" not in said


def test_an_exporter_loses_nothing_where_who_feeds_it_cannot_be_found_or_flushed() -> None:
    """Then the whole provider is flushed, and whatever that raises, the rest goes on."""
    feeding = """
import logging
from opentelemetry.sdk.trace import SpanProcessor
logging.disable()
class Feeding(SpanProcessor):
    def on_end(self, span):
        exporter.export([span])
    def force_flush(self, timeout_millis=None):
        raise OSError
    def shutdown(self):
        exporter.shutdown()
exporter = EvalSpanExporter(ConsoleSpanExporter())
provider.add_span_processor(Feeding())
"""

    said = said_by(*PROVIDERS.values(), feeding, TRACE)

    check(said, own_span=False)


@pytest.mark.parametrize("call", ["force_flush", "shutdown"])
def test_evaluation_spans_are_sent_whatever_the_order_of_the_processors(call: str) -> None:
    ended = f"provider.{call}(); print('after the call')"

    said = said_by(*PROVIDERS.values(), EXPORTING, SCORING, TRACE, ended)

    assert '"name": "evaluation default"' in said.partition("after the call")[0]


def test_a_child_of_multiprocessing_is_scored_when_it_ends() -> None:
    work = (
        "import multiprocessing, sys\n"
        "scoring = EvalSpanProcessor(on_evaluation=lambda e: print(e.verdict, flush=True))\n"
        "provider.add_span_processor(scoring)\n"
        "def work():\n"
        + "".join(f"    {line}\n" for line in OPEN.splitlines())
        + "child = multiprocessing.get_context('fork').Process(target=work)\n"
        "child.start(); child.join()\n"
    )

    said = said_by(PROVIDERS["traces"], work)

    assert said.count("pass") == 2
