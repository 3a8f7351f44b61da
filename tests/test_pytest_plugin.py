import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import otel_eval.captured  # noqa: F401  # before any run takes note of which modules are there

pytest_plugins = ["pytester"]

AGENT = """\
from opentelemetry import trace

tracer = trace.get_tracer("agent")


def call(tool, arguments="{}", output="1"):
    with tracer.start_as_current_span(tool) as span:
        span.set_attribute("openinference.span.kind", "TOOL")
        span.set_attribute("tool.name", tool)
        span.set_attribute("input.value", arguments)
        span.set_attribute("output.value", output)


def run(*tools):
    with tracer.start_as_current_span("run") as span:
        span.set_attribute("openinference.span.kind", "AGENT")
        span.set_attribute("agent.name", "helper")
        for tool in tools:
            call(tool, '{"city": "Tokyo"}')
"""
RULES = """\
rules:
  - name: flow
    evaluators: [{type: tool-call-order, tool_calls_order: [search, answer]}]
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project of someone who installed otel_eval."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)
    pytester.makeini("[pytest]\naddopts = -p otel_eval.pytest_plugin --strict-markers\n")
    pytester.makepyfile(agent=AGENT)
    pytester.path.joinpath("otel-eval.yaml").write_text(RULES)
    return pytester


def run(project: pytest.Pytester, code: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-W", "error", written(project, code))


def run_alone(project: pytest.Pytester, code: str, *words: str) -> pytest.RunResult:
    """In a process of its own, where nobody has set a provider yet."""
    return project.runpytest_subprocess("-W", "error", written(project, code), *words)


def written(project: pytest.Pytester, code: str) -> Path:
    return project.makepyfile(test_it=f"import pytest\nfrom agent import call, run, tracer\n{code}")


def test_a_test_sees_the_tool_calls_of_the_code_under_test(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def test_tools(trajectory):
    assert trajectory.tools == []
    run("search", "answer")
    assert trajectory.tools == ["search", "answer"]
    assert trajectory.calls[0].arguments == {"city": "Tokyo"}
    assert trajectory.calls[0].output == 1
    assert trajectory.trajectories[0].agent == "helper"

def test_each_test_begins_with_nothing(trajectory):
    call("other")
    assert trajectory.tools == ["other"]
    trajectory.clear()
    assert trajectory.tools == []

def test_several_traces_are_one_trajectory(trajectory):
    run("search")
    run("answer")
    assert trajectory.tools == ["search", "answer"]
    assert len(trajectory.trajectories) == 2

def test_a_span_around_the_test_may_still_be_open(trajectory):
    with tracer.start_as_current_span("around"):
        run("search", "answer")
        assert trajectory.score("otel-eval.yaml") == 1.0
""",
    )

    result.assert_outcomes(passed=4)


def test_a_score_is_a_number_with_its_evaluations(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def test_score(trajectory):
    run("search", "answer")
    scored = trajectory.score("otel-eval.yaml")
    assert scored >= 0.99
    assert [each.verdict for each in scored.evaluations] == ["pass"]

def test_lower(trajectory):
    run("search")
    assert trajectory.score("otel-eval.yaml", pass_at=0.5) == 0.5

def test_default_rules(trajectory):
    run("search")
    assert trajectory.score() == 1.0

def test_rules_in_place(trajectory):
    run("search")
    budget = {"type": "tool-budget", "max_calls": 1}
    rule = {"name": "r", "evaluators": [budget]}
    assert trajectory.score([rule]) == 1.0
    assert trajectory.score(rule) == 1.0
    assert trajectory.score({"rules": [rule]}) == 1.0
""",
    )

    result.assert_outcomes(passed=4)


def test_a_failed_score_shows_what_each_step_cost(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def test_score(trajectory):
    run("answer", "search")
    trajectory.score("otel-eval.yaml")
""",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E * AssertionError: 1 of 1 evaluation failed",
            'E * 1 → answer(city="Tokyo")*',
            'E * 2 → search(city="Tokyo")*',
            "E * ✗ flow / tool-call-order  0.50, passes at 1.00: *",
            "E * −0.50  step *",
            "E * expected *actual",
        ]
    )
    result.stdout.no_fnmatch_line("*captured.py*")
    result.stdout.no_fnmatch_line("*\x1b*")


def test_a_score_that_is_compared_shows_what_each_step_cost(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def test_score(trajectory):
    run("answer", "search")
    assert trajectory.score("otel-eval.yaml", pass_at=0) >= 0.9

def test_other_numbers():
    assert 0.5 >= 0.9
""",
    )

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E * assert 0.5 >= 0.9",
            "E * ✓ flow / tool-call-order  0.50, passes at 0.00: *",
            "E * −0.50  step *",
            "E * expected *actual",
            "E * search * ≠ *",
            "> * assert 0.5 >= 0.9",
        ]
    )


def test_a_marker_scores_when_the_test_is_done(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.otel_eval(rules="otel-eval.yaml")
def test_passes():
    run("search", "answer")

@pytest.mark.otel_eval(rules="otel-eval.yaml")
def test_fails():
    run("search")

@pytest.mark.otel_eval(rules="otel-eval.yaml", pass_at=0.5)
def test_passes_at_half(trajectory):
    run("search")
    assert trajectory.tools == ["search"]

@pytest.mark.otel_eval
class TestDefaults:
    def test_default_rules(self):
        run("search")

@pytest.mark.otel_eval
def test_a_failure_of_the_test_comes_first():
    assert 1 == 2

@pytest.fixture
def ran():
    run("search", "answer")

@pytest.mark.otel_eval("otel-eval.yaml")
def test_fixtures_are_captured_too(ran):
    pass
""",
    )

    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.otel_eval: 1 of 1 evaluation failed",
            '* 1 → search(city="Tokyo")*',
            "* −0.50  no step: answer was not called (expected call 2)",
            "* answer * ≠ *",
            "*assert 1 == 2",
        ]
    )
    result.stdout.no_fnmatch_line("*traceback*")


@pytest.mark.parametrize(
    ("act", "told"),
    [
        ("pass", "*no spans were captured: is the code under test instrumented*"),
        ("tracer.start_span('x').end()", "*nothing was scored: no rule matches 1 captured trace"),
        ("run()", "*no tool was called*"),
    ],
    ids=["no spans", "no agent", "no tools"],
)
def test_nothing_scored_is_no_pass(project: pytest.Pytester, act: str, told: str) -> None:
    result = run(project, f"@pytest.mark.otel_eval\ndef test_it():\n    {act}\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([told])


def test_a_sdk_that_is_off_is_told(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")

    result = run_alone(project, "@pytest.mark.otel_eval\ndef test_it():\n    run('search')\n")

    result.stdout.fnmatch_lines(["*no spans were captured: OTEL_SDK_DISABLED is true"])


def test_a_provider_that_is_there_is_used_and_stays(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""
    )

    result = run_alone(
        project,
        """
from opentelemetry import trace
from conftest import exporter, provider

def test_captures(trajectory):
    run("search")
    assert trajectory.tools == ["search"]
    assert len(exporter.get_finished_spans()) == 2
    test_captures.seen = trajectory

def test_captures_no_more_and_leaves_the_provider():
    run("search")
    assert test_captures.seen.tools == ["search"]
    assert trace.get_tracer_provider() is provider
""",
    )

    result.assert_outcomes(passed=2)


def test_without_a_provider_there_is_one_while_the_test_runs(project: pytest.Pytester) -> None:
    result = run_alone(
        project,
        """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

def test_captures(trajectory):
    assert isinstance(trace.get_tracer_provider(), TracerProvider)

def test_is_as_before():
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

def test_a_tracer_made_at_import_is_captured_again(trajectory):
    run("search")
    assert trajectory.tools == ["search"]

def test_another_can_be_set():
    mine = TracerProvider()
    trace.set_tracer_provider(mine)
    assert trace.get_tracer_provider() is mine
""",
    )

    result.assert_outcomes(passed=4)


def test_a_provider_of_the_codes_own_is_captured_on_request(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
from opentelemetry.sdk.trace import TracerProvider

def test_watch(trajectory):
    own = TracerProvider()
    trajectory.watch(own)
    with own.get_tracer("x").start_as_current_span("t") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", "search")
    assert trajectory.tools == ["search"]

def test_something_else(trajectory):
    with pytest.raises(TypeError, match="cannot be captured"):
        trajectory.watch(object())
""",
    )

    result.assert_outcomes(passed=2)


def test_a_rule_file_is_found_beside_the_test(project: pytest.Pytester) -> None:
    folder = project.mkdir("deep")
    folder.joinpath("near.yaml").write_text(RULES)
    folder.joinpath("test_deep.py").write_text(
        "import pytest\nfrom agent import run\n"
        "@pytest.mark.otel_eval('near.yaml')\ndef test_it():\n    run('search', 'answer')\n"
    )

    project.syspathinsert()
    result = project.runpytest_inprocess("-W", "error", "-p", "agent")

    result.assert_outcomes(passed=1)


def test_what_cannot_be_used_is_told_without_the_code_that_reads_it(
    project: pytest.Pytester,
) -> None:
    project.path.joinpath("bad.yaml").write_text("rules:\n  - nme: x\n")

    result = run(
        project,
        """
@pytest.mark.otel_eval("bad.yaml")
def test_marked():
    run("a")

def test_called(trajectory):
    trajectory.score("bad.yaml")

@pytest.mark.otel_eval(pass_at=7)
def test_pass_at():
    run("a")

@pytest.mark.otel_eval(rules=5)
def test_rules():
    run("a")

@pytest.mark.otel_eval(rule="otel-eval.yaml")
def test_keyword():
    run("a")
""",
    )

    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.otel_eval: *bad.yaml:2: rules[[]0].nme: unknown key*",
            ">*trajectory.score(*",
            "E *ConfigError: *bad.yaml:2: rules[[]0].nme: unknown key*",
            "@pytest.mark.otel_eval: pass_at is 7; expected a number from 0 to 1",
            "@pytest.mark.otel_eval: rules is 5; expected a file, a list of rules, or nothing",
            "@pytest.mark.otel_eval: *unexpected keyword argument 'rule'",
        ]
    )
    result.stdout.no_fnmatch_line("*config.py*")


def test_unittest_methods_skips_and_expected_failures(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
import unittest

class Case(unittest.TestCase):
    @pytest.mark.otel_eval("otel-eval.yaml")
    def test_passes(self):
        run("search", "answer")

    @pytest.mark.otel_eval("otel-eval.yaml")
    def test_fails(self):
        run("search")

@pytest.mark.otel_eval
def test_skips():
    pytest.skip("not here")

@pytest.mark.otel_eval("otel-eval.yaml")
@pytest.mark.xfail
def test_is_expected_to_fail():
    run("search")
""",
    )

    result.assert_outcomes(passed=1, failed=1, skipped=1, xfailed=1)


def test_tests_may_run_in_processes_of_xdist(project: pytest.Pytester) -> None:
    result = run_alone(
        project,
        """
@pytest.mark.otel_eval("otel-eval.yaml")
@pytest.mark.parametrize("tools", [("search", "answer"), ("search",)], ids=["good", "bad"])
def test_it(tools, trajectory):
    run(*tools)
    assert trajectory.tools == list(tools)
""",
        *("-p", "xdist", "-n", "1"),
    )

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["* −0.50  no step: answer was not called (expected call 2)"])


def test_the_plugin_is_light() -> None:
    """Every pytest run of every user imports it."""
    code = (
        "import sys, pytest; before = set(sys.modules); import otel_eval.pytest_plugin; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout == "['otel_eval']\n"


def test_pytest_finds_the_plugin_by_itself() -> None:
    text = Path(__file__).parent.parent.joinpath("pyproject.toml").read_text(encoding="utf-8")

    entry_points = tomllib.loads(text)["project"]["entry-points"]

    assert entry_points["pytest11"] == {"otel_eval": "otel_eval.pytest_plugin"}
