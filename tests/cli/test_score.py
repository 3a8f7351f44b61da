import gzip
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from threading import Thread

import pytest

from otel_eval import evaluate
from otel_eval.cli import inputs
from tests.cli.running import (
    RULES,
    agent_trace,
    otlp,
    otlp_span,
    records,
    run,
    snapshot,
)
from tests.extract.captures import CAPTURES

FILE = CAPTURES / "pydantic_ai2_v5_err.otlp.jsonl"
SEVERAL = [str(path) for path in sorted(CAPTURES.glob("langgraph_traceloop_*.otlp.jsonl"))]


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return str(path)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_person_sees_a_table_what_failed_and_one_closing_line() -> None:
    result = run("score", *SEVERAL)

    assert result.stdout == snapshot("score.txt")
    assert result.stderr == ""
    assert result.exit_code == 1


def test_rules_of_a_file_take_the_place_of_the_defaults(rules: str) -> None:
    result = run("score", str(FILE), "-c", rules)

    assert result.stdout == snapshot("score_rules.txt")
    assert result.exit_code == 1


def test_everything_passed_is_exit_0(tmp_path: Path) -> None:
    path = write(tmp_path / "traces.jsonl", agent_trace(1, ["search", "answer"]))

    result = run("score", path)

    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "scored 1 of 1 trace · 1.00 · 1 rule passed"


def test_the_closing_line_accounts_for_every_trace(tmp_path: Path) -> None:
    text = agent_trace(1, ["search"]) + agent_trace(2, []) + otlp([otlp_span(3, 1)])
    path = write(tmp_path / "traces.jsonl", text)

    result = run("score", path)

    closing = result.stdout.splitlines()[-1]
    assert closing.startswith(
        "scored 1 of 3 traces, 1 without an agent, 1 without tool calls · 1.00"
    )


def test_json_has_the_fields_of_the_contract_for_every_verdict(tmp_path: Path) -> None:
    config = """\
rules:
  - name: all
    evaluators:
      - {type: tool-error-rate}
      - {type: tool-call-count, tool_calls_count: {pay: "= 1"}}
      - {type: tool-args-schema, schemas: {pay: {type: object}}}
      - {type: "tests.cli.raising:raises"}
"""
    path = write(tmp_path / "traces.jsonl", agent_trace(1, ["search"], session__id="s-1"))

    result = run("score", path, "--json", "-c", write(tmp_path / "c.yaml", config))

    found = records(result)
    assert [each["verdict"] for each in found] == ["pass", "fail", "skip", "error"]
    assert all(list(each) == FIELDS for each in found)
    assert found[1]["score"] == 0.0
    assert found[1]["label"] == "fail"
    assert found[2]["skip_code"] == "no_tool_calls"
    assert found[3]["reason"] == "RuntimeError: out of order"
    assert {each["session"] for each in found} == {"s-1"}
    assert found[0]["anchor"] == {"trace_id": f"{1:032x}", "span_id": f"{1:016x}"}
    assert (found[0]["closed_by"], found[0]["whole"], found[0]["part"]) == ("root", True, 1)
    assert result.exit_code == 1


FIELDS = [
    "trace_id",
    "part",
    "session",
    "agent",
    "rule",
    "evaluator",
    "type",
    "per",
    "anchor",
    "verdict",
    "score",
    "label",
    "reason",
    "skip_code",
    "details",
    "closed_by",
    "whole",
]


def test_a_file_scores_as_its_spans_do_in_process(rules: str) -> None:
    result = run("score", str(FILE), "--json", "-c", rules)

    found = [(each["rule"], each["evaluator"], each["score"]) for each in records(result)]
    expected = evaluate(FILE.read_bytes().splitlines(), rules)
    assert found == [(e.rule, e.evaluator, getattr(e.outcome, "value", None)) for e in expected]


def test_a_trace_without_its_root_closes_by_idle_and_is_not_whole(tmp_path: Path) -> None:
    kind = {"openinference__span__kind": "TOOL"}
    spans = [otlp_span(1, 3, 2, tool__name="search", **kind)]
    rules = "rules: [{name: r, evaluators: [{type: tool-call-order, tool_calls_order: [search]}]}]"

    path = write(tmp_path / "traces.jsonl", otlp(spans))
    result = run("score", path, "--json", "-c", write(tmp_path / "c.yaml", rules))

    assert [(r["closed_by"], r["whole"], r["skip_code"]) for r in records(result)] == [
        ("idle", False, "incomplete")
    ]
    assert result.exit_code == 2
    assert result.stderr == "error: nothing was scored: 1 trace, 1 incomplete\n"


def test_rules_about_sessions_join_the_traces_of_a_session(tmp_path: Path) -> None:
    text = agent_trace(1, ["search"], session__id="s") + agent_trace(2, ["pay"], session__id="s")
    rules = """\
rules:
  - name: flow
    per: session
    evaluators: [{type: tool-call-order, tool_calls_order: [search, pay]}]
"""
    arguments = [
        write(tmp_path / "t.jsonl", text + agent_trace(3, ["search"])),
        "-c",
        write(tmp_path / "c.yaml", rules),
    ]

    (record,) = records(run("score", *arguments, "--json"))
    closing = run("score", *arguments).stdout.splitlines()[-1]

    assert (record["per"], record["session"], record["score"]) == ("session", "s", 1.0)
    assert closing == "scored 2 of 3 traces, 1 without a session · 1.00 · 1 rule passed"


@pytest.mark.parametrize(("limit", "code"), [("0.5", 0), ("0.99", 1)])
def test_fail_under_looks_at_the_lowest_mean(tmp_path: Path, limit: str, code: int) -> None:
    rules = """\
rules:
  - name: r
    pass_at: 0
    evaluators:
      - {type: tool-call-count, name: all, tool_calls_count: {search: "= 1"}}
      - {type: tool-call-count, name: half, tool_calls_count: {search: "= 1", pay: "= 1"}}
"""
    path = write(tmp_path / "traces.jsonl", agent_trace(1, ["search"]))

    result = run("score", path, "-c", write(tmp_path / "c.yaml", rules), "--fail-under", limit)

    assert result.exit_code == code
    assert ("r / half of helper: mean 0.50 is below" in result.stderr) == bool(code)


def test_a_failed_verdict_fails_whatever_fail_under_says() -> None:
    assert run("score", str(FILE), "--fail-under", "0.1").exit_code == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (agent_trace(1, []), "1 trace, 1 without tool calls"),
        (otlp([otlp_span(1, 1)]), "1 trace, 1 without an agent"),
        ('{"resourceSpans": []}\n', "the input holds no spans"),
    ],
    ids=["no tool calls", "no agent", "no spans"],
)
def test_nothing_scored_is_no_pass(tmp_path: Path, text: str, why: str) -> None:
    result = run("score", write(tmp_path / "traces.jsonl", text))

    assert result.exit_code == 2
    assert result.stderr == f"error: nothing was scored: {why}\n"


def test_no_rule_that_matches_is_no_pass(tmp_path: Path) -> None:
    rules = "rules: [{name: r, match: {agent: x}, evaluators: [{type: tool-loop}]}]"

    result = run("score", str(FILE), "-c", write(tmp_path / "c.yaml", rules))

    assert result.exit_code == 2
    assert result.stderr == "error: nothing was scored: 1 trace, 1 matched by no rule\n"


def test_junit_has_a_case_per_evaluation(tmp_path: Path, rules: str) -> None:
    out = tmp_path / "junit.xml"

    run("score", *SEVERAL, str(FILE), "-c", rules, "--junit", str(out))

    suite = ElementTree.parse(out).getroot()[0]
    assert suite.get("tests") == str(len(suite))
    assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
    assert suite[0].get("classname") == "travel_agent.booking.tool-call-order"
    names = [(case.get("classname"), case.get("name")) for case in suite]
    assert len(names) == len(set(names))


JUNIT_ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "id"},
    "testcase": {"name", "classname", "time", "assertions", "status"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
}
"""What the schemas of CI systems have in common."""


def test_junit_holds_only_what_ci_systems_know(tmp_path: Path) -> None:
    config = """\
rules:
  - name: all
    evaluators:
      - {type: tool-error-rate}
      - {type: tool-call-count, tool_calls_count: {pay: "= 1"}}
      - {type: tool-args-schema, schemas: {pay: {type: object}}}
      - {type: "tests.cli.raising:raises"}
"""
    path = write(tmp_path / "traces.jsonl", agent_trace(1, ["search"]))
    out = tmp_path / "junit.xml"

    run("score", path, "-c", write(tmp_path / "c.yaml", config), "--junit", str(out))

    elements = list(ElementTree.parse(out).iter())
    assert {each.tag for each in elements} == JUNIT_ATTRIBUTES.keys()
    assert all(set(each.keys()) <= JUNIT_ATTRIBUTES[each.tag] for each in elements)
    failure = next(each for each in elements if each.tag == "failure")
    assert (failure.get("type"), failure.get("message")) == ("tool-call-count", "0, passes at 1")
    assert failure.text == "pay called 0 times, expected = 1"


def test_junit_survives_what_xml_cannot_hold(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", agent_trace(1, ["se\x01<arch>"], agent='a"&<\x00b'))
    out = tmp_path / "junit.xml"

    run("score", path, "--junit", str(out))

    assert ElementTree.parse(out).getroot().get("tests") == "2"


def test_markdown_for_a_pull_request(tmp_path: Path) -> None:
    out = tmp_path / "summary.md"

    run("score", *SEVERAL, "--markdown", str(out))

    assert out.read_text(encoding="utf-8") == snapshot("score.md")


def test_names_from_traces_mean_nothing_to_markdown_or_a_terminal(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", agent_trace(1, ["x"], agent="a|<b>\x1b[31m"))
    out = tmp_path / "summary.md"

    result = run("score", path, "--markdown", str(out))

    assert r"a\|\<b\>" in out.read_text(encoding="utf-8")
    assert "\x1b" not in result.stdout


def test_more_failures_than_can_be_shown_are_counted(tmp_path: Path) -> None:
    rules = "rules: [{name: r, evaluators: [{type: tool-allowlist, forbidden: ['x*']}]}]"
    text = "".join(agent_trace(at, [f"x{at}"]) for at in range(1, 26))

    result = run(
        "score", write(tmp_path / "t.jsonl", text), "-c", write(tmp_path / "c.yaml", rules)
    )

    assert result.stdout.count("✗") == 20
    assert "and 5 more that failed; --json tells them all" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("1 rule failed in 25 traces")


def test_what_fails_in_the_same_words_is_told_once(tmp_path: Path) -> None:
    rules = "rules: [{name: r, evaluators: [{type: tool-allowlist, forbidden: [x]}]}]"
    text = "".join(agent_trace(at, ["x"]) for at in range(1, 26))
    text += agent_trace(26, ["x"], agent="other")
    out = tmp_path / "summary.md"

    result = run(
        *("score", write(tmp_path / "t.jsonl", text), "--markdown", str(out)),
        *("-c", write(tmp_path / "c.yaml", rules)),
    )

    reason = "r / tool-allowlist 0.00, passes at 1.00: 1 of 1 call not allowed: x (call 1)"
    assert result.stdout.splitlines()[4:-2] == [
        *(f"trace {at:032x} helper" for at in range(1, 6)),
        "and 20 more like these",
        f"  ✗ {reason}",
        f"trace {26:032x} other",
        f"  ✗ {reason}",
    ]
    assert f"trace {5:032x} helper<br>and 20 more like these\n" in out.read_text(encoding="utf-8")


def test_a_rule_that_matches_nothing_is_told(tmp_path: Path) -> None:
    rules = """\
rules:
  - {name: mine, evaluators: [{type: tool-loop}]}
  - {name: typo, match: {agent: hepler}, evaluators: [{type: tool-loop}]}
"""
    path = write(tmp_path / "t.jsonl", agent_trace(1, ["search"]))

    result = run("score", path, "-c", write(tmp_path / "c.yaml", rules))

    assert result.exit_code == 0
    assert result.stderr == "warning: 1 rule matched nothing: typo\n"


def test_evaluators_that_all_raise_close_with_a_line_too(tmp_path: Path) -> None:
    rules = 'rules: [{name: r, evaluators: [{type: "tests.cli.raising:raises"}]}]'
    path = write(tmp_path / "t.jsonl", agent_trace(1, ["search"]))

    result = run("score", path, "-c", write(tmp_path / "c.yaml", rules))

    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == (
        "scored 0 of 1 trace, 1 whose evaluators raised errors · 1 rule failed in 1 trace"
    )


def test_stdin_and_files_larger_than_memory_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("score", str(FILE)).stdout

    assert run("score", "-", stdin=FILE.read_bytes()).stdout == expected
    monkeypatch.setattr(inputs, "IN_MEMORY_BYTES", 0)
    assert run("score", str(FILE)).stdout == expected
    assert run("score", "-", stdin=gzip.compress(FILE.read_bytes())).stdout == expected


def test_a_named_pipe_is_read_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "IN_MEMORY_BYTES", 0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=[FILE.read_bytes()])

    writer.start()
    result = run("score", str(pipe))
    writer.join()

    assert result.stdout == run("score", str(FILE)).stdout


def test_a_bad_line_is_told_and_the_others_are_scored(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(FILE.read_bytes() + b'{"resourceSpans": 5}\n')

    result = run("score", str(path))

    assert result.stdout == run("score", str(FILE)).stdout
    assert "1 of the lines or records could not be read" in result.stderr


def test_spans_of_otel_eval_itself_are_not_scored(tmp_path: Path) -> None:
    own = agent_trace(2, ["search"]).replace('"name": "test"', '"name": "otel_eval"')
    path = write(tmp_path / "traces.jsonl", agent_trace(1, ["search"]) + own)

    assert "scored 1 of 1 trace ·" in run("score", path).stdout


def test_colours_are_for_terminals_only() -> None:
    assert "\x1b" not in run("score", str(FILE)).stdout


STATUS = Path("/proc/self/status")


@pytest.mark.skipif(not STATUS.exists(), reason="the peak of memory is read from Linux' /proc")
def test_memory_is_bounded_by_the_traces_that_are_open(tmp_path: Path) -> None:
    """30 MB of traces, one after another, need little more than one of them."""
    one, many = tmp_path / "one.jsonl", tmp_path / "many.jsonl"
    one.write_text(agent_trace(1, ["search"], note="x" * 100_000))
    with many.open("w") as out:
        for at in range(1, 301):
            out.write(agent_trace(at, ["search"], note="x" * 100_000))

    limit = peak_mib(one) + 10
    assert peak_mib(many) < limit
    assert peak_mib(many, piped=True) < limit


def peak_mib(path: Path, *, piped: bool = False) -> float:
    """Of a process for which a file of more than a MiB is large."""
    code = (
        "import atexit, sys; from pathlib import Path; from otel_eval.cli import inputs, main; "
        "inputs.IN_MEMORY_BYTES = 1024 * 1024; "
        f"atexit.register(lambda: print(Path('{STATUS}').read_text(), file=sys.stderr)); main()"
    )
    words = [sys.executable, "-c", code, "score", "-" if piped else str(path)]
    with path.open() as file:
        done = subprocess.run(words, stdin=file, capture_output=True, text=True, check=True)
    found = re.search(r"VmHWM:\s+(\d+) kB", done.stderr)
    assert found is not None
    return int(found[1]) / 1024
