"""Scores without a line of code, under a real `opentelemetry-instrument`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = """
from opentelemetry import trace
tracer = trace.get_tracer("agent")
with tracer.start_as_current_span("invoke_agent helper") as agent:
    agent.set_attribute("gen_ai.operation.name", "invoke_agent")
    agent.set_attribute("gen_ai.agent.name", "helper")
    with tracer.start_as_current_span("search") as call:
        call.set_attribute("gen_ai.tool.name", "search")
"""
RULES = """
rules:
  - name: flow
    match: {agent: helper}
    evaluators: [{type: tool-call-order, tool_calls_order: [search, answer]}]
"""
REPOSITORY = Path(__file__).parents[1]


def instrumented(
    folder: Path, exporters: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What an agent that knows nothing of otel_eval says when it runs under the command."""
    (folder / "agent.py").write_text(AGENT)
    (folder / "rules.yaml").write_text(RULES)
    command = Path(sys.executable).with_name("opentelemetry-instrument")
    return subprocess.run(
        [command, sys.executable, "agent.py"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "OTEL_TRACES_EXPORTER": exporters,
            "OTEL_METRICS_EXPORTER": "console",
            "OTEL_LOGS_EXPORTER": "console",
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "*",
            **environment,
        },
    )


@pytest.mark.parametrize("exporters", ["console,otel_eval", "otel_eval,console", "console"])
def test_an_agent_is_scored_by_the_rules_of_the_environment(tmp_path: Path, exporters: str) -> None:
    done = instrumented(tmp_path, exporters, OTEL_EVAL_CONFIG="rules.yaml")

    assert (done.returncode, done.stderr) == (0, "")
    assert '"otel_eval.score"' in done.stdout
    assert '"event_name": "gen_ai.evaluation.result"' in done.stdout
    assert '"name": "evaluation flow"' in done.stdout
    assert done.stdout.count('"gen_ai.evaluation.score.value": 0.5') == 2


def test_the_exporter_alone_scores_by_the_default_rules(tmp_path: Path) -> None:
    done = instrumented(tmp_path, "console,otel_eval")

    assert (done.returncode, done.stderr) == (0, "")
    assert '"name": "evaluation default"' in done.stdout


def test_nothing_happens_where_nothing_is_asked_for(tmp_path: Path) -> None:
    done = instrumented(tmp_path, "console")

    assert (done.returncode, done.stderr) == (0, "")
    assert "otel_eval" not in done.stdout
    assert '"name": "invoke_agent helper"' in done.stdout


def test_the_hook_imports_nothing_where_nothing_is_asked_for() -> None:
    script = (
        "import sys; from otel_eval.hook import register; register()\n"
        "assert not {'otel_eval.processor', 'opentelemetry', 'pydantic'} & set(sys.modules)"
    )
    environment = {name: text for name, text in os.environ.items() if name != "OTEL_EVAL_CONFIG"}

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=environment)


@pytest.mark.parametrize("exporters", ["console,otel_eval", "console"])
def test_a_bad_configuration_is_told_and_the_agent_runs(tmp_path: Path, exporters: str) -> None:
    done = instrumented(tmp_path, exporters, OTEL_EVAL_CONFIG="missing.yaml")

    assert done.returncode == 0
    assert "missing.yaml" in done.stderr
