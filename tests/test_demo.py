"""The demo as a person sees it: a process of its own, its output, its files, its /metrics."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import orjson
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from otel_eval.cli import main
from otel_eval.cli.demo import program
from otel_eval.config import Config
from otel_eval.decode import files as recorded
from otel_eval.demo import files
from otel_eval.demo.agents import SAMPLES
from otel_eval.demo.board import standing_line
from otel_eval.demo.environment import plain_environment
from otel_eval.demo.scores import History, Series, Standing, Sum
from otel_eval.demo.words import next_lines
from otel_eval.extract import trajectories
from otel_eval.model import UNRECORDED, Span

SECONDS = 10
BAD = "support-agent"
OTHERS = [sample.name for sample in SAMPLES if sample.name != BAD]
PROGRAM = [sys.executable, "-c", "from otel_eval.cli import main; main()", "demo"]
Totals = dict[str, tuple[float, float]]


@dataclass
class Shown:
    """What a demo said, and what its scrape page said each time it had shown all agents."""

    folder: Path
    output: list[str] = field(default_factory=list)
    pages: list[Totals] = field(default_factory=list)
    bad_from: int = 0
    peak_kib: int = 0
    ending_seconds: float = 0.0
    exit_code: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.output)


def started(folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [*PROGRAM, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root, "PYTHONIOENCODING": "utf-8", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        preexec_fn=_heed_ctrl_c,
    )


def _heed_ctrl_c() -> None:
    """A shell starts background jobs deaf to it, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            yield line.rstrip("\n")


def metrics_url(text: str) -> str:
    found = re.search(r"curl (http://127\.0\.0\.1:\d+/metrics)", text)
    assert found, text
    return found[1]


def totals(url: str) -> Totals:
    """The sum and the number of all scores, by agent."""
    with build_opener(ProxyHandler({})).open(url, timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, defaultdict[str, float]] = {
        "otel_eval_score_sum": defaultdict(float),
        "otel_eval_score_count": defaultdict(float),
    }
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in found:
                found[sample.name][sample.labels["agent"]] += sample.value
    sums, counts = found.values()
    return {agent: (sums[agent], counts[agent]) for agent in counts}


def is_last_of_block(line: str) -> bool:
    return f"s  {SAMPLES[-1].name} " in line and "goes bad" not in line


def peak_kib(pid: int) -> int:
    with suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) if found else 0
    return 0


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """One whole demo."""
    demo = Shown(tmp_path_factory.mktemp("demo"))
    process = started(demo.folder, "--seconds", str(SECONDS))
    last_block = 0.0
    for line in lines(process):
        demo.output.append(line)
        if "goes bad" in line:
            demo.bad_from = len(demo.pages)
        if is_last_of_block(line):
            demo.pages.append(totals(metrics_url(demo.text)))
            demo.peak_kib = peak_kib(process.pid)
            last_block = time.monotonic()
    demo.exit_code = process.wait(10)
    demo.ending_seconds = time.monotonic() - last_block
    return demo


@pytest.fixture(scope="module")
def spans(shown: Shown) -> list[Span]:
    def report(error: Exception) -> None:
        raise error

    return [span for batch in recorded.read(shown.folder / files.TRACES, report) for span in batch]


def mean(page: Totals, agent: str) -> float:
    total, count = page[agent]
    return total / count


def test_the_bad_agent_falls_below_a_half_since_the_start_and_of_late(shown: Shown) -> None:
    before, last = shown.pages[-2:]
    total, count = (last[BAD][at] - before[BAD][at] for at in (0, 1))

    assert shown.bad_from > 0
    assert mean(shown.pages[shown.bad_from - 1], BAD) == 1.0
    assert mean(last, BAD) < 0.5
    assert total / count < 0.5


def test_the_other_agents_stay_above_nine_tenths_throughout(shown: Shown) -> None:
    means = {
        agent: [mean(page, agent) for page in shown.pages if agent in page] for agent in OTHERS
    }

    assert all(min(each) > 0.9 for each in means.values()), means


def test_it_says_who_runs_where_to_look_and_who_goes_bad(shown: Shown) -> None:
    assert f"for {SECONDS} s" in shown.output[0]
    assert all(any(name in line for line in shown.output[:6]) for name in [BAD, *OTHERS])
    assert f"{BAD} goes bad" in shown.text
    assert "\x1b" not in shown.text


def test_scores_are_there_within_seconds_and_shown_every_two_seconds(shown: Shown) -> None:
    assert len(shown.pages) == SECONDS / 2
    assert shown.pages[1].keys() == {BAD, *OTHERS}


def test_it_is_small_and_ends_at_once(shown: Shown) -> None:
    """The interpreter alone takes about 10 MiB."""
    assert shown.exit_code == 0
    assert shown.ending_seconds < 3
    assert shown.peak_kib < 110 * 1024


def test_the_recorded_traces_are_the_scripts_in_four_dialects(spans: list[Span]) -> None:
    found = trajectories(spans)

    scripted = {
        (sample.name, run.session): [(step.tool, dict(step.arguments)) for step in run.steps]
        for sample in SAMPLES
        for run in (*sample.runs, *sample.bad_runs)
    }
    assert {each.dialect for each in found} == {"genai", "openinference", "traceloop", "plain"}
    for each in found:
        calls = [(call.name, call.arguments) for call in each.tool_calls]
        assert calls == scripted[each.agent or "", each.session or ""]
        assert all((call.output is UNRECORDED) == bool(call.error) for call in each.tool_calls)


def test_the_file_is_otlp_json_with_ids_in_hex(shown: Shown) -> None:
    first = (shown.folder / files.TRACES).read_bytes().splitlines()[0]
    span = orjson.loads(first)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]

    assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
    assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
    assert isinstance(span["kind"], int)


def test_the_commands_it_ends_with_work_and_show_a_failure(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shown.folder)
    commands = [line.split()[1:] for line in shown.output if line.startswith("  otel-eval ")]

    score, explain = (CliRunner().invoke(main, command) for command in commands)

    trace_id = commands[1][-1]
    assert [command[0] for command in commands] == ["score", "explain"]
    assert score.exit_code == 1
    assert trace_id in score.stdout
    assert explain.exit_code == 0
    assert trace_id in explain.stdout
    assert "issue_refund" in explain.stdout


@pytest.mark.parametrize(
    ("called", "on_path", "expected"),
    [
        ("bin dir/otel-eval", True, "otel-eval"),
        ("bin dir/otel-eval", False, "'bin dir/otel-eval'"),
        ("-c", False, "otel-eval"),
    ],
    ids=["on the path", "in an environment that is not", "as no program"],
)
def test_the_commands_it_ends_with_can_be_typed_as_they_are(
    called: str, on_path: bool, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "otel-eval").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if on_path else "")
    monkeypatch.setattr(sys, "argv", [called])

    name = program()

    shown = list(next_lines("a" * 32, program=name, kept_rules=False))
    assert shown[-2:] == [
        f"\x1b[1m  {expected} score {files.TRACES} -c {files.RULES}\x1b[0m",
        f"\x1b[1m  {expected} explain {files.TRACES} -c {files.RULES} --trace aaaaaaaa\x1b[0m",
    ]


def test_ctrl_c_ends_it_in_good_order_whatever_is_set_and_taken(tmp_path: Path) -> None:
    strange = {
        "OTEL_SDK_DISABLED": "true",
        "OTEL_TRACES_SAMPLER": "always_off",
        "http_proxy": "http://127.0.0.1:1",
        "NO_COLOR": "1",
    }
    with socket.socket() as taken:
        with suppress(OSError):  # whoever has the port, it is not free
            taken.bind(("127.0.0.1", 4318))
        taken.listen()
        process = started(tmp_path, **strange)
        output: list[str] = []
        interrupted = 0.0
        for line in lines(process):
            output.append(line)
            if is_last_of_block(line) and not interrupted:
                process.send_signal(signal.SIGINT)
                interrupted = time.monotonic()
        code = process.wait(10)

    assert code == 0
    assert time.monotonic() - interrupted < 3
    assert any("instead of" in line and "4318" in line for line in output)
    assert "stopped" in output
    assert any(line.startswith("  otel-eval explain ") for line in output)
    assert (tmp_path / files.TRACES).read_bytes().endswith(b"\n")
    assert "Traceback" not in "\n".join(output)


@pytest.mark.parametrize("name", [files.TRACES, files.RULES])
def test_a_place_that_cannot_be_written_is_one_clear_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()

    result = CliRunner().invoke(main, ["demo"])

    assert result.exit_code == 2
    assert result.stderr == f"error: {name}: Is a directory\n"


@pytest.mark.parametrize("seconds", ["1", "nan", "inf", "soon"])
def test_a_time_that_makes_no_sense_is_one_clear_line(seconds: str) -> None:
    result = CliRunner().invoke(main, ["demo", "--seconds", seconds])

    assert result.exit_code == 2
    assert result.stderr.startswith("error: Invalid value for '--seconds'")
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_extra_is_one_clear_line(tmp_path: Path) -> None:
    program = "import sys; sys.modules['grpc'] = None; " + PROGRAM[2]

    done = subprocess.run(
        [sys.executable, "-c", program, "demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert done.stderr == "error: grpc is not installed; pip install 'otel-eval[sidecar]'\n"
    assert not list(tmp_path.iterdir())


def test_rules_that_somebody_changed_are_kept(tmp_path: Path) -> None:
    assert files.leave_rules(tmp_path)
    assert files.leave_rules(tmp_path)
    (tmp_path / files.RULES).write_text("rules: []\n")

    assert not files.leave_rules(tmp_path)
    assert (tmp_path / files.RULES).read_text() == "rules: []\n"


def test_every_agent_has_a_rule_of_its_own_beside_the_one_for_all() -> None:
    rules = Config.parse(files.rules_text()).rules or ()

    assert [rule.match.agent for rule in rules] == ["*", *(sample.name for sample in SAMPLES)]


def test_the_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")

    with plain_environment():
        inside = {"OTEL_SDK_DISABLED", "HTTPS_PROXY"} & os.environ.keys()

    assert not inside
    assert os.environ["OTEL_SDK_DISABLED"] == "true"


def test_what_is_recent_is_what_came_in_the_last_seconds() -> None:
    series, other = Series("a", "r", "good"), Series("a", "r", "low")
    history = History(recent_seconds=4)

    for now in range(0, 10, 2):
        low = Sum(0.5 * now, float(now))
        history.add({series: Sum(float(now), float(now)), other: low}, now)
    before = history.standing("a")
    history.add({series: Sum(8.0, 12.0), other: Sum(4.0, 8.0)}, 10)
    after = history.standing("a")

    assert before == Standing(agent="a", recent=0.75, since_start=0.75, runs=8, lowest=("low", 0.5))
    assert after.recent == pytest.approx((8 - 6 + 4 - 3) / (12 - 6 + 8 - 6))
    assert after.lowest == ("good", pytest.approx(2 / 6))
    assert history.standing("b").since_start is None


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (
            Standing(agent="a", recent=None, since_start=None, runs=0, lowest=None),
            "   8 s  a               ░░░░░  no score yet",
        ),
        (
            Standing(agent="a", recent=0.95, since_start=0.9, runs=3, lowest=("order", 0.5)),
            "   8 s  a               █████  0.95 recent  0.90 overall  runs   3",
        ),
        (
            Standing(agent="a", recent=0.25, since_start=0.5, runs=41, lowest=("order", 0.1)),
            "   8 s  a               █░░░░  0.25 recent  0.50 overall  runs  41  order 0.10",
        ),
        (
            Standing(agent="a", recent=None, since_start=1.0, runs=9, lowest=None),
            "   8 s  a               ░░░░░     - recent  1.00 overall  runs   9",
        ),
    ],
    ids=["nothing yet", "well", "badly", "quiet"],
)
def test_a_line_says_how_an_agent_does(standing: Standing, expected: str) -> None:
    assert standing_line(standing, 8.0) == expected


def test_on_a_narrow_terminal_a_line_ends_before_the_lowest_evaluator() -> None:
    standing = Standing(agent="a", recent=0.2, since_start=0.5, runs=41, lowest=("order", 0.1))

    assert standing_line(standing, 8.0, 77).endswith("runs  41")
    assert standing_line(standing, 8.0, 78).endswith("runs  41  order 0.10")
    assert len(standing_line(standing, 8.0, 20)) == 20
