import json
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from click.testing import CliRunner, Result

from otel_eval.cli import main
from tests.extract.captures import CAPTURES, spans_of
from tests.judge import server
from tests.judge.server import Reply, serving


def check(
    folder: Path,
    labels: list[Any],
    *script: Reply,
    evaluators: list[dict[str, Any]] | None = None,
    options: tuple[str, ...] = (),
    at_a_time: int = 1,
) -> Result:
    """Run the command on these lines, with a server that answers by the script."""
    lines = [line if isinstance(line, str) else json.dumps(line) for line in labels]
    (folder / "labels.jsonl").write_text("\n".join(lines))
    with serving(*(script or (server.says(),))) as chat:
        rule = {"name": "q", "evaluators": evaluators or [{"type": "tool-selection-accuracy"}]}
        judge: dict[str, Any] = {"model": "openai:local", "base_url": chat.base_url}
        judge["max_concurrency"] = at_a_time
        (folder / "eval.yaml").write_text(json.dumps({"rules": [rule], "judge": judge}))
        arguments = ["judge-check", str(folder / "labels.jsonl"), "-c", str(folder / "eval.yaml")]
        return CliRunner().invoke(main, [*arguments, *options])


def case(label: Any, tool: str = "search", **fields: Any) -> dict[str, Any]:
    return {"label": label, "tool_calls": [{"name": tool, "arguments": {}}], **fields}


def test_accuracy_kappa_and_the_wrong_cases_are_told(tmp_path: Path) -> None:
    labels = [case("Yes"), case("No"), case("Yes", id="third"), case("No")]
    answers = [server.says(a, f"reason {n}") for n, a in enumerate(("Yes", "No", "No", "No"))]

    result = check(tmp_path, labels, *answers)

    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "q/tool-selection-accuracy asks openai:local",
        "4 cases, 4 judged",
        "accuracy  0.75  (3 of 4)",
        "kappa     0.50",
        "0 passed that should fail, 1 failed that should pass",
        "",
        "labels.jsonl:3 third: label Yes, judge No",
        "  reason 2",
    ]


def test_cases_are_judged_several_at_a_time_and_told_in_their_order(tmp_path: Path) -> None:
    both = Barrier(2)
    together = server.first(lambda: both.wait(20), server.says("No"))

    result = check(tmp_path, [case("Yes", id="a"), case("Yes", id="b")], together, at_a_time=2)

    assert [line for line in result.output.splitlines() if line.startswith("labels")] == [
        "labels.jsonl:1 a: label Yes, judge No",
        "labels.jsonl:2 b: label Yes, judge No",
    ]


def test_what_was_not_judged_is_counted_apart(tmp_path: Path) -> None:
    result = check(tmp_path, [case("Yes"), case("No")], server.says(), server.refuses())

    assert "2 cases, 1 judged, 1 JudgeRefusedError" in result.output
    assert "kappa     undefined" in result.output


def test_if_nothing_was_judged_the_exit_code_says_so(tmp_path: Path) -> None:
    result = check(tmp_path, [case("Yes")], server.fails(401))

    assert result.exit_code == 2
    assert "no case was judged" in result.output


def test_a_recorded_call_is_a_case_too(tmp_path: Path) -> None:
    name = "strands_legacy_seq.otlp.jsonl"
    (tmp_path / name).write_bytes((CAPTURES / name).read_bytes())
    tools = [s for s in spans_of("strands_legacy_seq") if s.name == "execute_tool send_summary"]
    line = {"label": "Yes", "file": name, "span_id": tools[0].span_id}

    result = check(tmp_path, [line])

    assert "accuracy  1.00  (1 of 1)" in result.output


def test_a_trajectory_judge_is_compared_by_pass_or_fail(tmp_path: Path) -> None:
    judge = {"type": "trajectory-judge", "expected_behavior": "Searches.", "pass_at": 0.5}

    result = check(
        tmp_path,
        [case("pass"), case(0.2), case(True)],
        server.grades(0.6),
        server.grades(0.4),
        server.grades(0.1),
        evaluators=[judge],
    )

    assert "accuracy  0.67  (2 of 3)" in result.output
    assert "labels.jsonl:3: label True, judge 0.1" in result.output


def test_of_several_judges_one_is_chosen_by_name(tmp_path: Path) -> None:
    several = [{"type": "tool-selection-accuracy"}, {"type": "tool-parameter-accuracy"}]

    unclear = check(tmp_path, [case("Yes")], evaluators=several)
    clear = check(
        tmp_path,
        [case("Yes")],
        evaluators=several,
        options=("--judge", "tool-parameter-accuracy"),
    )

    assert unclear.exit_code == 2
    assert "q/tool-selection-accuracy, q/tool-parameter-accuracy" in unclear.output
    assert clear.output.startswith("q/tool-parameter-accuracy asks")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("{", "labels.jsonl:1: not JSON", id="no JSON"),
        pytest.param({}, "labels.jsonl:1: label: Field required", id="no label"),
        pytest.param(case("Maybe"), "label is 'Maybe'; use Yes, No, pass", id="label"),
        pytest.param(case("Yes", call=3), "there is no call 3", id="call"),
        pytest.param({"label": "Yes"}, "no tool call to be judged", id="no calls"),
        pytest.param({"label": "Yes", "lable": 1}, "lable: Extra inputs", id="typo"),
        pytest.param({"label": "Yes", "file": "missing"}, "missing", id="file"),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path: Path, line: Any, problem: str) -> None:
    result = check(tmp_path, [line])

    assert result.exit_code == 2
    assert problem in result.output


def test_a_judge_that_cannot_be_asked_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    rule = {"name": "q", "evaluators": [{"type": "tool-selection-accuracy"}]}
    file = tmp_path / "eval.yaml"
    file.write_text(json.dumps({"rules": [rule], "judge": {"model": "openai:gpt-5-mini"}}))

    result = CliRunner().invoke(main, ["judge-check", "labels.jsonl", "-c", str(file)])

    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.output
    assert "Traceback" not in result.output
