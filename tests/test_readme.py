"""What the README says is what happens: its blocks are run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.request import ProxyHandler, Request, build_opener
from xml.etree import ElementTree

import click
import pytest
import yaml

from otel_eval.cli import main
from otel_eval.config import Config
from otel_eval.demo.agents import SAMPLES
from otel_eval.evaluators import BUILT_IN
from otel_eval.sidecar.banner import banner
from otel_eval.sidecar.ports import Ports
from tests.extract.captures import CAPTURES
from tests.sidecar.running import running

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
STANDING = re.compile(
    r" +\d+ s  [a-z-]+ +[█░]{5}  \d\.\d\d recent  \d\.\d\d overall  runs +\d+(  [a-z-]+ \d\.\d\d)?"
)
SVG_TEXT = "{http://www.w3.org/2000/svg}text"
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


def run(command: list[str], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables |= {"PATH": path, "COLUMNS": "140", "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def test_the_set_up_commands_need_nothing_but_python() -> None:
    """They are run by the checks of a whole clone; here, that they are what is run there."""
    marked = {block.mark: block.body for block in blocks("sh")}

    set_up = "python3 -m venv .venv && .venv/bin/pip install"
    assert marked["demo-command"] == f"{set_up} '.[sidecar]' && .venv/bin/otel-eval demo\n"
    assert marked["test-command"] == f"{set_up} '.[dev]' && .venv/bin/pytest -n auto\n"


def test_commands_that_are_not_run_are_commands() -> None:
    text = "\n".join([*re.findall(r"`(otel-eval [^`]+)`", TEXT), *(b.body for b in blocks("sh"))])
    commands = [line.split() for line in text.splitlines() if line.startswith("otel-eval ")]

    assert len(commands) > 5
    for _, name, *words in commands:
        command = main.get_command(click.Context(main), name)
        assert command is not None, name
        command.make_context(name, words)


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


AGENT = """
import pytest
from opentelemetry import trace

def run_my_agent(question):
    start = trace.get_tracer("t").start_as_current_span
    with start("run", attributes={"agent.name": "travel_agent"}):
        for name, output in CALLS.items():
            asked = {"tool.name": name, "input.value": '{"hotel": "Hotel Änne"}'}
            with start(name, attributes={**asked, "output.value": output}):
                pass

"""
MARKED = """
@pytest.mark.otel_eval(rules="otel-eval.yaml", pass_at=0.8)
def test_marked():
    run_my_agent("Book Hotel Änne")
"""
VARYING = re.compile(r"[0-9a-f]{32}|\d+\.\d ms")
"""Ids and durations."""


def test_the_pytest_example_passes_for_a_good_agent_and_fails_for_a_bad_one(desk: Path) -> None:
    body = next(block.body for block in blocks("python") if "def test_" in block.body)
    shown = next(block.body for block in blocks("text") if "pytest.mark" in block.body)
    booked = "'book_hotel': '{\"confirmation\": \"HX-204\"}'"
    for name, calls in (("good", f"'check_rate': '5', {booked}"), ("bad", booked)):
        text = f"CALLS = {{{calls}}}{AGENT}{body}{MARKED}"
        (desk / f"test_{name}.py").write_text(text, encoding="utf-8")

    words = ["-q", "-p", "otel_eval.pytest_plugin", "test_good.py", "test_bad.py"]
    result = run([sys.executable, "-m", "pytest", *words], desk, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")

    assert "2 failed, 2 passed" in result.stdout
    assert "AssertionError: assert ['book_hotel'] == ['check_rate', 'book_hotel']" in result.stdout
    assert VARYING.sub("", shown) in VARYING.sub("", result.stdout)


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


def test_every_evaluator_has_an_example_of_four_lines() -> None:
    examples = next(block.body for block in blocks("yaml") if block.body.startswith("- type: "))
    each = [example.splitlines() for example in examples.strip().split("\n\n")]

    assert [lines[0].removeprefix("- type: ") for lines in each] == list(BUILT_IN)
    assert {len(lines) for lines in each} == {4}


def test_every_evaluator_is_in_the_table() -> None:
    assert [name for name in BUILT_IN if f"| `{name}` |" not in TEXT] == []


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_sidecar_looks_as_shown() -> None:
    ready = next(block.body for block in blocks("text") if "otel-eval is ready" in block.body)
    rules = next(block.body for block in blocks("yaml") if "# otel-eval.yaml" in block.body)
    config = Config.parse(f"{rules}forward: {{endpoint: 'http://collector:4317'}}")

    assert ready == banner(config, Ports(grpc=4317, http=4318, admin=9464)) + "\n"


def test_the_sidecar_counts_what_the_readme_shows(desk: Path) -> None:
    shown = next(block.body for block in blocks("text") if "evaluations_total" in block.body)
    rules = yaml.safe_load((desk / "otel-eval.yaml").read_text())

    with running(**rules) as sidecar:
        for line in (desk / "traces.jsonl").read_bytes().splitlines():
            post(f"http://127.0.0.1:{sidecar.ports.http}/v1/traces", line)
        sidecar.wait("otel_eval_evaluations_total", 3)
        _, page, _ = sidecar.get("/metrics")

    assert [line for line in page.splitlines() if line.startswith("otel_eval_evaluations")] == (
        shown.splitlines()
    )


def post(url: str, body: bytes) -> None:
    request = Request(url, body, {"Content-Type": "application/json"})
    with build_opener(ProxyHandler({})).open(request, timeout=10) as answer:
        assert answer.status == 200


def test_the_picture_shows_the_demo_as_it_is() -> None:
    """Its lines have the form that the live view gives them, and its commands are commands."""
    svg = ElementTree.parse(ROOT / ".github" / "demo.svg")
    texts = ["".join(each.itertext()).replace("\xa0", " ") for each in svg.iter(SVG_TEXT)]
    names = {sample.name for sample in SAMPLES}

    standings = [text for text in texts if " overall " in text]
    last = {text.split()[2]: float(text.split()[4]) for text in standings[-len(names) :]}

    assert all(STANDING.fullmatch(text) for text in standings)
    assert last.keys() == names
    assert [name for name, recent in last.items() if recent < 0.5] == ["support-agent"]
    assert any("support-agent goes bad: " in text for text in texts)
    assert sum(text.startswith("  otel-eval ") for text in texts) == 2
