"""How judges get what they ask: from the configuration, when the program starts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_eval.config import Config
from otel_eval.errors import ConfigError
from otel_eval.evaluators.judging import JudgeEvaluator
from otel_eval.judge.question import Question
from otel_eval.model import Outcome, Score, Trajectory
from otel_eval.rules import Rule
from tests.conftest import call, trajectory
from tests.judge import server
from tests.judge.server import serving

SELECTION = {"type": "tool-selection-accuracy"}


def parse(*evaluators: dict[str, Any], **judge: Any) -> Config:
    rules = [{"name": "judged", "evaluators": list(evaluators)}]
    return Config.parse({"rules": rules, "judge": judge})


def problems(*evaluators: dict[str, Any], **judge: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(*evaluators, **judge)
    return list(caught.value.problems)


def judges(config: Config) -> list[JudgeEvaluator]:
    every = [each for rule in config.rule_set().rules for each in rule.evaluators]
    return [each for each in every if isinstance(each, JudgeEvaluator)]


def first(judge: JudgeEvaluator, of: Trajectory) -> Outcome:
    ((_, outcome),) = judge.outcomes(of)
    return outcome


def test_a_model_is_required_and_none_is_assumed() -> None:
    assert problems(SELECTION) == [
        "rules[0].evaluators[0].model: missing; name a model here, or in judge.model for all"
    ]


def test_only_if_needs_something_to_look_at() -> None:
    (problem,) = problems({**SELECTION, "only_if": "fail"}, model="openai:x")

    assert problem.startswith("rules[0].evaluators[0].only_if: needs an evaluator that asks no")


def test_a_base_url_goes_with_an_openai_model() -> None:
    (problem,) = problems(SELECTION, model="anthropic:x", base_url="http://localhost/v1")

    assert problem.startswith("judge.base_url: goes with a model openai:")


def test_a_file_is_checked_without_a_key_but_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    config = parse(SELECTION, model="openai:gpt-5-mini")

    assert config.hash
    assert config.labels()
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        config.rule_set()


def test_a_missing_extra_is_named_at_start() -> None:
    script = (
        "import sys\n"
        "sys.modules['pydantic_ai'] = None\n"
        "from otel_eval.config import Config\n"
        "rule = {'name': 'a', 'evaluators': [{'type': 'tool-selection-accuracy'}]}\n"
        "config = Config.parse({'rules': [rule], 'judge': {'model': 'openai:x'}})\n"
        "config.rule_set()\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    last = run.stderr.strip().splitlines()[-1]
    assert "pydantic_ai is not installed; pip install 'otel-eval[judge]'" in last


def test_judges_without_a_model_library_stay_light() -> None:
    script = (
        "import sys\n"
        "import otel_eval.judges, otel_eval.evaluators.tool_selection\n"
        "assert not {'pydantic_ai', 'openai', 'httpx'} & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_evaluators_own_model_comes_before_the_shared_one() -> None:
    with serving(server.says()) as chat:
        own = {**SELECTION, "name": "own", "model": "openai:own"}
        config = parse(SELECTION, own, model="openai:shared", base_url=chat.base_url)
        for each in judges(config):
            first(each, trajectory([call("search", {})]))

    assert [request["model"] for request in chat.requests] == ["shared", "own"]


def test_the_limits_hold_for_all_judges_together() -> None:
    with serving(server.says()) as chat:
        config = parse(
            SELECTION,
            {**SELECTION, "name": "other", "rubric": "Other."},
            model="openai:x",
            base_url=chat.base_url,
            max_calls_per_minute=1,
        )
        found = [first(each, trajectory([call("search", {})])) for each in judges(config)]

    assert isinstance(found[0], Score)
    assert getattr(found[1], "code", None) == "budget"


def test_redaction_truncation_and_cache_are_as_configured(tmp_path: Path) -> None:
    of = trajectory([call("search", {"q": "sk-123 " + "x" * 5_000})])
    with serving(server.says()) as chat:
        config = parse(
            SELECTION,
            model="openai:x",
            base_url=chat.base_url,
            redact=[r"sk-\d+"],
            max_input_chars=2_000,
            cache={"path": tmp_path / "cache.sqlite"},
        )
        (judge,) = judges(config)
        first(judge, of)
        first(judge, of)

    (request,) = chat.requests
    prompt = request["messages"][1]["content"]
    assert "sk-123" not in prompt
    assert "[redacted]" in prompt
    assert "characters left out" in prompt
    assert len(prompt) < 3_000


def test_a_callable_needs_neither_key_nor_extra_nor_configuration() -> None:
    def judge(question: Question) -> Any:
        return question.answer.model_validate({"reasoning": "fine", "answer": "Yes"})

    rule = Rule.parse({"name": "a", "evaluators": [{**SELECTION, "model": judge}]})
    (bound,) = judges(Config(rules=(rule,)))

    assert first(bound, trajectory([call()])) == Score(1.0, "fine", label="Yes")


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "openai:y"},
        {"temperature": 1.0},
        {"redact": ["x"]},
        {"base_url": "http://localhost:1"},
    ],
)
def test_the_hash_changes_with_what_may_change_an_answer(changed: dict[str, Any]) -> None:
    base = parse(SELECTION, model="openai:x")

    assert parse(SELECTION, **{"model": "openai:x", **changed}).hash != base.hash
    assert parse(SELECTION, model="openai:x", timeout=5).hash == base.hash


def test_rules_made_in_python_are_held_to_the_same() -> None:
    rule = Rule.parse({"name": "a", "evaluators": [SELECTION]})

    with pytest.raises(ConfigError, match=r"rules\[0\]\.evaluators\[0\]\.model: missing"):
        Config(rules=(rule,)).rule_set()
