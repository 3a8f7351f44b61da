"""Every mistake that can be made with files, flags and configurations: one line, exit 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_eval.cli import COMMANDS
from tests.cli.running import run
from tests.extract.captures import CAPTURES

FILE = str(CAPTURES / "pydantic_ai2_v5_err.otlp.jsonl")

MISTAKES = {
    "no such command": ["scroe"],
    "no such option": ["--scroe"],
    "no file": ["score"],
    "no such file": ["score", "nowhere.jsonl"],
    "a folder": ["score", "."],
    "a zero byte": ["score", "a\0b"],
    "no traces": ["score", "bad.yaml"],
    "no such option of score": ["score", FILE, "--jsn"],
    "fail-under too large": ["score", FILE, "--fail-under", "2"],
    "fail-under no number": ["score", FILE, "--fail-under", "much"],
    "fail-under nan": ["score", FILE, "--fail-under", "nan"],
    "fail-under below 0": ["score", FILE, "--fail-under", "-1"],
    "an empty name": ["score", ""],
    "an empty name of a config": ["score", FILE, "-c", ""],
    "an empty name of a report": ["score", FILE, "--junit", ""],
    "no such config": ["score", FILE, "-c", "nowhere.yaml"],
    "config is a folder": ["score", FILE, "-c", "."],
    "config is no YAML": ["score", FILE, "-c", "bad.yaml"],
    "config with tabs": ["score", FILE, "-c", "tabs.yaml"],
    "config is not text": ["score", FILE, "-c", "junk.gz"],
    "config is text": ["score", FILE, "-c", "text.yaml"],
    "rules are a mapping": ["score", FILE, "-c", "mapping.yaml"],
    "an empty file": ["score", "empty"],
    "binary junk": ["score", "junk"],
    "gzip junk": ["score", "junk.gz"],
    "zstd junk": ["score", "junk.zst"],
    "half a line": ["score", "half.jsonl"],
    "nothing on stdin": ["score", "-"],
    "config is a list": ["score", FILE, "-c", "list.yaml"],
    "config is traces": ["score", FILE, "-c", FILE],
    "stdin twice": ["score", "-", "-c", "-"],
    "no rules": ["score", FILE, "-c", "none.yaml"],
    "junit nowhere": ["score", FILE, "--junit", "nowhere/out.xml"],
    "junit a folder": ["score", FILE, "--junit", "."],
    "markdown nowhere": ["score", FILE, "--markdown", "nowhere/out.md"],
    "explain without a trace": ["explain", FILE],
    "explain an empty id": ["explain", FILE, "--trace", ""],
    "explain no such trace": ["explain", FILE, "--trace", "zz"],
    "explain junk": ["explain", "junk", "--trace", "zz"],
    "explain no such file": ["explain", "nowhere", "--trace", "zz"],
    "explain stdin twice": ["explain", "-", "--trace", "b", "-c", "-"],
    "validate nothing": ["validate"],
    "validate no such file": ["validate", "nowhere.yaml"],
    "validate two files": ["validate", "a", "b"],
    "schema of something": ["schema", "a"],
    "init over a file": ["init", "bad.yaml"],
    "init over a folder": ["init", "."],
    "init nowhere": ["init", "nowhere/otel-eval.yaml"],
    "convert from nothing": ["convert", "uipath"],
    "convert from another tool": ["convert", "other", "x"],
    "convert no such file": ["convert", "uipath", "nowhere.json"],
    "convert over a file": ["convert", "uipath", "set.json", "-o", "bad.yaml"],
    "trajectories of nothing": ["trajectories"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bad.yaml").write_text("rules: [")
    (tmp_path / "list.yaml").write_text("- 1")
    (tmp_path / "none.yaml").write_text("rules: []")
    (tmp_path / "tabs.yaml").write_text("rules:\n\t- name: a\n")
    (tmp_path / "text.yaml").write_text("some words")
    (tmp_path / "mapping.yaml").write_text("rules: {a: 1}")
    (tmp_path / "empty").touch()
    (tmp_path / "junk").write_bytes(bytes(range(256)))
    (tmp_path / "junk.gz").write_bytes(b"\x1f\x8b" + bytes(range(256)))
    (tmp_path / "junk.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(range(256)))
    (tmp_path / "half.jsonl").write_bytes(Path(FILE).read_bytes()[:200])
    criteria = '{"A": {"toolCallsOrder": ["a"]}}'
    (tmp_path / "set.json").write_text(f'[{{"id": "a", "evaluationCriterias": {criteria}}}]')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", MISTAKES.values(), ids=MISTAKES.keys())
@pytest.mark.usefixtures("folder")
def test_a_mistake_is_one_clear_line(words: list[str]) -> None:
    result = run(*words, stdin=b"")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["scroe"], "No such command 'scroe', did you mean score? (see otel-eval --help)"),
        (
            ["score", FILE, "--fail-under", "much"],
            "Invalid value for '--fail-under': much is not a number from 0 to 1 "
            "(see otel-eval score --help)",
        ),
        (
            ["demo", "--seconds", "4.5"],
            "Invalid value for '--seconds': 4.5 is not a whole number from 4 to 86400 "
            "(see otel-eval demo --help)",
        ),
        (["score", ""], "the name of the file is empty; is it a variable that is not set?"),
        (["init", "."], ".: is a directory; expected a file to write"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_mistake_is_told_in_words_that_help(words: list[str], told: str) -> None:
    assert run(*words).stderr == f"error: {told}\n"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(folder: Path) -> None:
    for name in ("empty", "list.yaml"):
        (folder / name).chmod(0)

    assert run("score", "empty").stderr == "error: empty: may not be read: permission denied\n"
    assert run("validate", "list.yaml").stderr == "error: list.yaml: Permission denied\n"


def test_a_report_that_cannot_be_written_is_told_before_the_traces_are_read(folder: Path) -> None:
    result = run("score", "nowhere.jsonl", "--junit", "nowhere/out.xml")

    assert "nowhere/out.xml" in result.stderr
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = run(command, "--help")

    assert result.exit_code == 0
    assert f"otel-eval {command}" in result.stdout.partition("Example")[2]


def test_help_lists_every_command() -> None:
    result = run("--help")

    assert all(f"  {command} " in result.stdout for command in COMMANDS)


def test_the_version() -> None:
    assert run("--version").stdout.startswith("otel-eval, version ")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal of a POSIX system")
@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_on_a_terminal_unless_no_color(variables: dict[str, str], coloured: bool) -> None:
    shown = on_terminal([FILE], variables)

    assert ("\x1b[" in shown) == coloured


def test_a_bar_on_a_terminal_for_files_that_take_a_while() -> None:
    patch = "from otel_eval.cli import inputs; inputs.IN_MEMORY_BYTES = 0; "

    shown = on_terminal([FILE], {}, patch)

    assert "scoring" in shown
    assert "100%" in shown


def on_terminal(files: list[str], variables: dict[str, str], patch: str = "") -> str:
    code = f"{patch}from otel_eval.cli import main; main()"
    near, far = os.openpty()
    env = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "score", *files],
        stdout=far,
        stderr=far,
        env={**env, "TERM": "xterm", "COLUMNS": "120", **variables},
    )
    os.close(far)
    shown = b""
    while chunk := _read(near):
        shown += chunk
    process.wait()
    os.close(near)
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux ends a terminal that nobody writes to any more with an error
        return b""
