import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from otel_eval.cli import inputs, main
from tests.extract.captures import CAPTURES, NAMES, truth_of

SNAPSHOTS = Path(__file__).parent / "snapshots"
FILE = CAPTURES / "pydantic_ai2_v5_err.otlp.jsonl"


def run(*words: str, stdin: bytes | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(main, ["trajectories", *words], input=stdin)


def test_a_person_sees_calls_results_errors_and_durations() -> None:
    result = run(str(FILE))

    assert result.exit_code == 0
    assert result.stdout == (SNAPSHOTS / "trajectories.txt").read_text()


def test_what_was_not_recorded_is_said_in_words() -> None:
    result = run(str(CAPTURES / "autogen_seq.otlp.jsonl"))

    assert "→ geocode(arguments not recorded)" in result.stdout
    assert "← result not recorded" in result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_json_has_the_true_names_and_leaves_out_what_was_not_recorded(name: str) -> None:
    result = run("--json", str(CAPTURES / f"{name}.otlp.jsonl"))

    records = {record["trace_id"]: record for record in map(json.loads, result.stdout.splitlines())}
    for trace in truth_of(name)["traces"]:
        calls = records[trace["trace_id"]]["tool_calls"]
        assert [call["name"] for call in calls] == [call["name"] for call in trace["tool_calls"]]
        assert all({"error", "call_id", "agent", "span_id"} <= call.keys() for call in calls)
    if "norecord" in name or "autogen" in name:
        assert '"arguments"' not in result.stdout
        assert '"output"' not in result.stdout


def test_stdin_and_files_larger_than_memory_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sorted(run("--json", str(FILE)).stdout.splitlines())

    assert sorted(run("--json", "-", stdin=FILE.read_bytes()).stdout.splitlines()) == expected
    monkeypatch.setattr(inputs, "IN_MEMORY_BYTES", 0)
    assert sorted(run("--json", str(FILE)).stdout.splitlines()) == expected


@pytest.mark.parametrize("limit", [0, 2**30], ids=["streamed", "held"])
def test_one_bad_line_is_reported_once_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(inputs, "IN_MEMORY_BYTES", limit)
    path = tmp_path / "traces.jsonl"
    path.write_bytes(FILE.read_bytes() + b'{"resourceSpans": 5}\n')

    result = run(str(path))

    assert result.exit_code == 0
    assert "→ check_rate" in result.stdout
    line = len(FILE.read_bytes().splitlines()) + 1
    assert result.stderr.count(f"{path}:{line}: ") == 1
    assert "1 of the lines or records could not be read" in result.stderr


@pytest.mark.parametrize("content", [b"", b"hello", b'{"a": 1}', b"\x00\x01\x02"])
def test_an_unreadable_file_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)

    result = run(str(path))

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {path}")
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_file_is_one_clear_line() -> None:
    result = run("/no/such/file")

    assert result.exit_code == 2
    assert result.stderr.startswith("error: /no/such/file: ")


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["--help"], 0.4),
        (["trajectories", *(str(p) for p in CAPTURES.glob("*.jsonl"))], 2.0),
    ],
    ids=["help", "all captures"],
)
def test_it_is_quick(words: list[str], seconds: float) -> None:
    """In the processor's time, because the machine has other things to do as well."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-c", "from otel_eval.cli import main; main()", *words],
        check=True,
        capture_output=True,
    )
    after = os.times()

    took = after.children_user + after.children_system
    assert took - before.children_user - before.children_system < seconds
