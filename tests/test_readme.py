"""What the README says is what happens: its blocks are run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from otel_eval.config import Config
from otel_eval.evaluators import BUILT_IN
from otel_eval.sidecar.banner import banner
from otel_eval.sidecar.ports import Ports
from tests.extract.captures import CAPTURES

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
STANDING = re.compile(
    r" +\d+ s  [a-z-]+ +[█░]{5}  \d\.\d\d recent  \d\.\d\d overall  runs +\d+(  [a-z-]+ \d\.\d\d)?"
)
BLOCK = re.compile(r"(?:<!-- (?P<mark>.*?) -->\n)?```(?P<language>\w+)\n(?P<body>.*?)```", re.S)


class Block(NamedTuple):
    mark: str
    language: str
    body: str
    after: str
    """The block that follows directly, such as an output."""


def blocks(language: str) -> list[Block]:
    found = list(BLOCK.finditer(TEXT))
    return [
        Block(each["mark"] or "", each["language"], each["body"], _next_text(found, at))
        for at, each in enumerate(found)
        if each["language"] == language
    ]


def _next_text(found: list[re.Match[str]], at: int) -> str:
    if at + 1 == len(found) or found[at + 1]["language"] != "text":
        return ""
    between = TEXT[found[at].end() : found[at + 1].start()]
    return found[at + 1]["body"] if not between.strip() else ""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A directory as the README's reader has it."""
    shutil.copy(CAPTURES / "pydantic_ai2_v5_err.otlp.jsonl", tmp_path / "traces.jsonl")
    config = next(block for block in blocks("yaml") if block.body.startswith("# otel-eval.yaml"))
    (tmp_path / "otel-eval.yaml").write_text(config.body)
    return tmp_path


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "140", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.body.split("\n")[0])
def test_commands_print_what_the_readme_shows(block: Block, desk: Path) -> None:
    command, _, output = block.body.removeprefix("$ ").partition("\n")

    words = command.removeprefix("otel-eval ").split(" ")
    result = run([sys.executable, "-m", "otel_eval", *words], desk)

    assert result.stdout == output, result.stderr


def test_the_processor_prints_what_the_readme_shows(desk: Path) -> None:
    block = next(block for block in blocks("python") if "EvalSpanProcessor" in block.body)

    result = run([sys.executable, "-c", block.body], desk)

    assert (result.stdout, result.stderr) == (block.after, "")


def test_the_pytest_example_passes_for_a_good_agent_and_fails_for_a_bad_one(desk: Path) -> None:
    block = next(block for block in blocks("python") if "def test_" in block.body)
    agent = """
from opentelemetry import trace

def run_my_agent(question):
    start = trace.get_tracer("t").start_as_current_span
    with start("run", attributes={"agent.name": "travel_agent"}):
        for name in CALLS:
            with start(name, attributes={"tool.name": name}):
                pass
"""
    good = "CALLS = ['check_rate', 'book_hotel']" + agent + block.body
    bad = "CALLS = ['book_hotel']" + agent + block.body
    (desk / "test_good.py").write_text(good)
    (desk / "test_bad.py").write_text(bad)

    assert run([sys.executable, "-m", "pytest", "-q", "test_good.py"], desk).returncode == 0
    assert run([sys.executable, "-m", "pytest", "-q", "test_bad.py"], desk).returncode == 1


def test_the_plug_in_example_scores(desk: Path) -> None:
    block = next(block for block in blocks("python") if "def polite" in block.body)
    (desk / "my_checks.py").write_text(block.body)
    rules = 'rules: [{name: r, evaluators: [{type: "my_checks:polite", word: booked}]}]'
    (desk / "rules.yaml").write_text(rules)

    result = run(
        [sys.executable, "-m", "otel_eval", "score", "traces.jsonl", "-c", "rules.yaml"], desk
    )

    assert result.returncode == 0, result.stderr
    assert "1.00   100 %" in result.stdout


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.body.split("\n")[0])
def test_configurations_are_valid(block: Block) -> None:
    written = yaml.safe_load(block.body)
    if isinstance(written, list):
        written = {"rules": [{"name": "r", "evaluators": written}]}

    assert Config.parse(written).rules


def test_every_evaluator_has_an_example() -> None:
    shown = "".join(block.body for block in blocks("yaml"))

    assert [name for name in BUILT_IN if f"type: {name}" not in shown] == []


def test_every_evaluator_is_in_the_table() -> None:
    assert [name for name in BUILT_IN if f"| `{name}` |" not in TEXT] == []


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_demo_and_the_sidecar_look_as_shown() -> None:
    lines = [block.body for block in blocks("text")]
    demo = next(body for body in lines if "support-agent" in body)
    ready = next(body for body in lines if "otel-eval is ready" in body)
    rules = next(block.body for block in blocks("yaml") if "# otel-eval.yaml" in block.body)
    config = Config.parse(f"{rules}forward: {{endpoint: 'http://collector:4317'}}")

    for line in demo.splitlines():
        assert STANDING.fullmatch(line), line
    assert ready == banner(config, Ports(grpc=4317, http=4318, admin=9464)) + "\n"
