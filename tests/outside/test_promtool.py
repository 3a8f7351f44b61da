"""What is shipped for Prometheus and Alertmanager, checked by their own tools."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from otel_eval.cli import main
from otel_eval.model import Score, Skip
from otel_eval.sinks.prometheus import PrometheusSink
from tests.outside import programs
from tests.outside.monitoring import DEPLOY
from tests.sinks.builders import evaluation

SHIPPED = DEPLOY / "prometheus"
CONFIG = """
emit: {metrics: {labels: {environment: deployment.environment.name}}}
rules:
  - name: weather-flow
    match: {agent: "weather-*"}
    alert: {pass_rate: 0.95, drop: 0.15, min_evaluations: 85, for: 1h30m, severity: page}
    evaluators: [{type: tool-loop}]
  - name: 'with "quotes" and \\backslash'
    evaluators: [{type: tool-loop}]
  - name: only a drop
    alert: {drop: 0.5, min_evaluations: 1, for: 0s}
    evaluators: [{type: tool-loop}]
"""


def promtool(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [programs.promtool(), *arguments]
    return subprocess.run(command, input=given, capture_output=True, timeout=300)


def passes(*arguments: str | Path, given: bytes = b"") -> None:
    done = promtool(*arguments, given=given)

    assert done.returncode == 0, (done.stdout + done.stderr).decode()[:5000]


@pytest.mark.outside
def test_the_shipped_rules_are_sound() -> None:
    passes("check", "rules", SHIPPED / "otel-eval.rules.yaml")


@pytest.mark.outside
def test_the_shipped_configuration_is_sound() -> None:
    passes("check", "config", SHIPPED / "prometheus.yaml")


@pytest.mark.outside
def test_every_shipped_alert_fires_lasts_three_days_and_resolves() -> None:
    passes("test", "rules", SHIPPED / "otel-eval.test.yaml")


@pytest.mark.outside
def test_the_rules_of_a_configuration_pass_their_own_tests(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    write(tmp_path / "otel-eval.rules.yaml", "-c", str(tmp_path / "config.yaml"))
    write(tmp_path / "otel-eval.test.yaml", "-c", str(tmp_path / "config.yaml"), "--tests")

    passes("check", "rules", tmp_path / "otel-eval.rules.yaml")
    passes("test", "rules", tmp_path / "otel-eval.test.yaml")


@pytest.mark.outside
@pytest.mark.parametrize(
    ("sound", "broken"),
    [
        pytest.param("[50h:1h]", "[1h:1h]", id="a baseline that follows the drop"),
        pytest.param(">= 20", ">= 2", id="two traces are enough"),
    ],
)
def test_the_tests_notice_a_broken_rule(tmp_path: Path, sound: str, broken: str) -> None:
    rules = (SHIPPED / "otel-eval.rules.yaml").read_text()
    (tmp_path / "otel-eval.rules.yaml").write_text(rules.replace(sound, broken))
    tests = (SHIPPED / "otel-eval.test.yaml").read_text()
    (tmp_path / "otel-eval.test.yaml").write_text(tests)

    assert promtool("test", "rules", tmp_path / "otel-eval.test.yaml").returncode != 0


@pytest.mark.outside
def test_the_scrape_page_is_sound() -> None:
    sink = PrometheusSink(pipeline=lambda: {"otel_eval.spans.received": {(): 3}})
    sink.emit([evaluation(Score(0.5)), evaluation(Skip("incomplete", "spans are missing"))])
    sink.observe_durations([("check", 0.01)])

    passes("check", "metrics", given=sink.page()[0])


def write(file: Path, *options: str) -> None:
    done = CliRunner().invoke(main, ["alerts", *options])
    assert done.exit_code == 0, done.output
    file.write_text(done.stdout)
