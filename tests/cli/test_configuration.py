"""validate, schema, init and convert: everything around the rule file."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from otel_eval import cli
from otel_eval.config import Config, load
from otel_eval.document import read
from tests.cli.running import agent_trace, otlp, otlp_span, records, run, snapshot
from tests.evaluators.test_seeds import TOKYO

CASE = {"id": "tokyo_forecast", "name": "Tokyo Weather Forecast", "evaluationCriterias": TOKYO}
STARTER = Path(cli.__file__).with_name("starter.yaml")


def test_a_valid_configuration(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("rules: [{name: a, evaluators: [{type: tool-loop}, {type: tool-error-rate}]}]")

    result = run("validate", str(path))

    assert result.exit_code == 0
    assert result.stdout == f"{path} is valid: 1 rule, 2 evaluators\n"


def test_every_problem_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("rule: []\nrules:\n  - name: a\n    evaluators: [{type: tool-lop}]\nlog: 3\n")

    result = run("validate", str(path))

    assert result.exit_code == 2
    assert result.stdout == ""
    assert [line.removeprefix("error: ").split(": ")[0] for line in result.stderr.splitlines()] == [
        f"{path}:1",
        f"{path}:4",
        f"{path}:5",
    ]


def test_a_configuration_from_stdin() -> None:
    assert run("validate", "-", stdin=b"log: {level: debug}").exit_code == 0


def test_the_schema_accepts_what_validate_accepts() -> None:
    schema = json.loads(run("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    for path in (STARTER, Path("config.example.yaml")):
        validator.validate(read(path.read_text(), environment={}).data or {})
    assert not validator.is_valid({"rules": [{"name": "a"}]})


def test_init_writes_what_validate_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    result = run("init")

    assert result.exit_code == 0
    assert run("validate", "otel-eval.yaml").exit_code == 0
    assert load("otel-eval.yaml").rules


def test_what_is_commented_out_in_the_starter_is_valid_too() -> None:
    head, sign, tail = STARTER.read_text().partition("  # - name: weather-flow")

    config = Config.parse(head + re.sub(r"^( *)# ", r"\1", sign + tail, flags=re.MULTILINE))

    assert config.rules is not None
    assert [rule.name for rule in config.rules] == ["healthy", "weather-flow"]
    assert config.emit.content


def test_init_overwrites_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine")

    refused = run("init", str(path))
    kept = path.read_text()
    forced = run("init", str(path), "--force")

    assert (refused.exit_code, kept) == (2, "mine")
    assert refused.stderr == f"error: {path} is there already; --force overwrites it\n"
    assert forced.exit_code == 0
    assert path.read_text() == STARTER.read_text()


OUTPUTS = {
    "get_temperature": {"temperature": 25.0, "unit": "fahrenheit"},
    "get_weather_condition": {"condition": "cloudy"},
    "get_humidity": {"humidity": 65},
    "get_forecast": {"forecast": "Overcast with mild temperatures"},
}


def weather(city: str, session: str = "tokyo_forecast") -> str:
    """What the seed's agent emits: one span per tool, outputs under `content`."""
    spans = [otlp_span(1, 1, session__id=session)]
    spans += [
        otlp_span(
            1,
            at,
            1,
            tool__name=tool,
            input__value=json.dumps({"city": city}),
            output__value=json.dumps({"content": output}),
        )
        for at, (tool, output) in enumerate(OUTPUTS.items(), start=2)
    ]
    return otlp(spans)


@pytest.fixture
def eval_set(tmp_path: Path) -> Path:
    path = tmp_path / "eval-sets" / "default.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"version": "1.0", "evaluations": [CASE]}))
    return path


def test_a_uipath_eval_set_becomes_rules_by_session(eval_set: Path) -> None:
    result = run("convert", "uipath", str(eval_set))

    assert result.exit_code == 0
    assert result.stdout == snapshot("convert_uipath.yaml")
    assert run("validate", "-", stdin=result.stdout.encode()).exit_code == 0


@pytest.mark.parametrize(
    ("text", "scores", "code"),
    [
        (weather("Tokyo"), [1.0, 1.0, 1.0, 1.0], 0),
        (weather("Kyoto"), [1.0, 1.0, 0.0, 1.0], 1),
        (weather("Tokyo", "another"), [], 2),
    ],
    ids=["as expected", "another city", "another session"],
)
def test_the_tokyo_case_is_scored_right(
    tmp_path: Path, eval_set: Path, text: str, scores: list[float], code: int
) -> None:
    traces, rules = tmp_path / "traces.jsonl", tmp_path / "rules.yaml"
    traces.write_text(text)
    run("convert", "uipath", str(eval_set), "-o", str(rules))

    result = run("score", str(traces), "-c", str(rules), "--json")

    assert [each["score"] for each in records(result)] == scores
    assert result.exit_code == code


def test_what_a_test_case_leaves_open_comes_from_the_evaluators_files(
    tmp_path: Path, eval_set: Path
) -> None:
    folder = tmp_path / "evaluators"
    folder.mkdir()
    settings = {
        "strict": True,
        "defaultEvaluationCriteria": {"toolCallsOrder": ["a", "b"]},
    }
    (folder / "order.json").write_text(json.dumps({"id": "Order", "evaluatorConfig": settings}))
    case = {"id": "c", "evaluationCriterias": {"Order": None, "Exact": {"expectedOutput": "x"}}}
    eval_set.write_text(json.dumps(case))

    result = run("convert", "uipath", str(eval_set))

    rules = Config.parse(result.stdout).rules
    assert rules is not None
    assert rules[0].evaluators[0].model_dump(include={"tool_calls_order", "strict"}) == {
        "tool_calls_order": ("a", "b"),
        "strict": True,
    }
    assert result.stderr == "left out: c: Exact has no criteria about tool calls\n"


VALUES = ["no", "09", "1e5", "2024-05-01", "${env:HOME}", "$$", "~", "é: #x", {"$any": True}, None]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_expected_as_they_are_written(
    tmp_path: Path, eval_set: Path, value: object
) -> None:
    """Whatever YAML, variables or matchers would make of them."""
    calls = [{"name": "t", "args": {"x": value}}]
    case = {"id": "[s]*", "evaluationCriterias": {"Args": {"toolCalls": calls}}}
    eval_set.write_text(json.dumps([case]))
    rules, traces = tmp_path / "rules.yaml", tmp_path / "t.jsonl"
    made = json.dumps({"x": value})
    span = otlp_span(1, 1, tool__name="t", input__value=made, session__id="[s]*")
    traces.write_text(otlp([span]) + agent_trace(2, ["t"], session__id="s"))

    run("convert", "uipath", str(eval_set), "-o", str(rules))

    (record,) = records(run("score", str(traces), "-c", str(rules), "--json"))
    assert (record["session"], record["score"]) == ("[s]*", 1.0)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"{}", "no UiPath eval set"),
        (b'{"evaluations": [5]}', "no UiPath eval set"),
        (b'{"evaluations": [{}]}', "evaluations[0] has no id"),
        (b'[{"id": "a"}, {"id": "a"}]', "evaluations[1] has the id 'a' of another test case"),
        (b'[{"id": "a"}]', "no test case has criteria about tool calls"),
        (
            b'[{"id": "a", "evaluationCriterias": {"C": {"toolCallsCount": {"t": ["~", 1]}}}}]',
            "unknown operator",
        ),
    ],
)
def test_an_eval_set_that_cannot_be_used(eval_set: Path, content: bytes, told: str) -> None:
    eval_set.write_bytes(content)

    result = run("convert", "uipath", str(eval_set))

    assert result.exit_code == 2
    assert result.stdout == ""
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
