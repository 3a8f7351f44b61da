"""The outside programs are found, run, and hold what the other outside tests rely on."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.outside import programs

TESTS = Path(__file__).parents[1]


def output(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        env={**os.environ, **environment},
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.outside
@pytest.mark.parametrize(
    "program",
    [
        programs.promtool,
        programs.prometheus,
        programs.alertmanager,
        programs.collector,
        programs.node,
    ],
    ids=lambda program: program.__name__,
)
def test_a_program_tells_its_version(program: Callable[[], Path]) -> None:
    assert any(character.isdigit() for character in output(program(), "--version"))


@pytest.mark.outside
def test_the_collector_knows_the_components_of_the_tests(tmp_path: Path) -> None:
    config = tmp_path / "collector.yaml"
    config.write_text(
        """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}}
processors: {groupbytrace: {}}
exporters:
  otlp: {endpoint: "127.0.0.1:1"}
  otlphttp: {endpoint: "http://127.0.0.1:1"}
  file: {path: spans.jsonl}
  nop: {}
  loadbalancing: {protocol: {otlp: {}}, resolver: {static: {hostnames: ["127.0.0.1:1"]}}}
service:
  pipelines:
    traces:
      receivers: [otlp]
      processors: [groupbytrace]
      exporters: [otlp, otlphttp, file, nop, loadbalancing]
"""
    )

    output(programs.collector(), "validate", "--config", config)


@pytest.mark.outside
@pytest.mark.parametrize("protocol", ["grpc", "http", "proto"])
def test_the_javascript_exporter_loads(protocol: str) -> None:
    script = f"console.log(require('@opentelemetry/exporter-trace-otlp-{protocol}'))"

    loaded = output(programs.node(), "-e", script, NODE_PATH=str(programs.node_modules()))

    assert "OTLPTraceExporter" in loaded


@pytest.fixture
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("OTEL_EVAL_CI", raising=False)
    return monkeypatch


ABSENT = pytest.mark.parametrize(
    "program",
    [programs.promtool, programs.collector, programs.node_modules],
    ids=lambda program: program.__name__,
)


@ABSENT
@pytest.mark.usefixtures("empty_machine")
def test_an_absent_program_skips_the_test(program: Callable[[], Path]) -> None:
    with pytest.raises(pytest.skip.Exception, match="is not installed"):
        program()


@ABSENT
def test_an_absent_program_is_a_failure_in_ci(
    program: Callable[[], Path], empty_machine: pytest.MonkeyPatch
) -> None:
    empty_machine.setenv("OTEL_EVAL_CI", "1")

    with pytest.raises(pytest.fail.Exception, match="is not installed"):
        program()


def test_whoever_drives_a_program_is_marked() -> None:
    """A test without the mark would be skipped here and left out of the outside run."""
    drivers = [path for path in TESTS.rglob("test_*.py") if "outside import programs" in read(path)]

    unmarked = [path.name for path in drivers if "mark.outside" not in read(path)]

    assert drivers
    assert unmarked == []


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
