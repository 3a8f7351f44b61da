import pytest

from otel_eval.model import Failure, Outcome, Score, Skip
from otel_eval.sinks.event import ResultEvent
from tests.conftest import call, trajectory
from tests.sinks.builders import evaluation

CANARY = "canary-7f3a"


def test_a_score_says_everything_the_contract_lists() -> None:
    judged = trajectory(["search"], agent="shop", session="s-1", part=2, closed_by="idle")
    told = evaluation(Score(0.5, "1 of 2 in order"), trajectory=judged, sample=0.25)

    assert ResultEvent(config_hash="c0ffee").attributes(told) == {
        "gen_ai.evaluation.name": "order",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "fail",
        "gen_ai.evaluation.explanation": "1 of 2 in order",
        "gen_ai.agent.name": "shop",
        "gen_ai.conversation.id": "s-1",
        "otel_eval.verdict": "fail",
        "otel_eval.rule": "flow",
        "otel_eval.evaluator.type": "tool-call-order",
        "otel_eval.per": "trace",
        "otel_eval.part": 2,
        "otel_eval.closed_by": "idle",
        "otel_eval.whole": True,
        "otel_eval.sample": 0.25,
        "otel_eval.config_hash": "c0ffee",
    }


@pytest.mark.parametrize(
    ("outcome", "present", "absent"),
    [
        pytest.param(
            Score(1.0, label="Yes"),
            {"gen_ai.evaluation.score.label": "Yes", "otel_eval.verdict": "pass"},
            {"gen_ai.evaluation.explanation", "error.type", "otel_eval.skip.code"},
            id="own label",
        ),
        pytest.param(
            Skip("incomplete", "the root is missing"),
            {
                "otel_eval.skip.code": "incomplete",
                "otel_eval.verdict": "skip",
                "gen_ai.evaluation.explanation": "the root is missing",
            },
            {"gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value", "error.type"},
            id="skip",
        ),
        pytest.param(
            Failure("ValueError", CANARY),
            {"error.type": "ValueError", "otel_eval.verdict": "error"},
            {"gen_ai.evaluation.score.label", "gen_ai.evaluation.explanation"},
            id="failure",
        ),
    ],
)
def test_each_outcome_has_its_own_attributes(
    outcome: Outcome, present: dict[str, str], absent: set[str]
) -> None:
    found = ResultEvent().attributes(evaluation(outcome))

    assert present.items() <= found.items()
    assert not absent & found.keys()


QUOTING = [
    pytest.param("tool-selection-accuracy", Score(0.0, CANARY), id="judge"),
    pytest.param("tool-parameter-accuracy", Score(0.0, CANARY), id="parameters"),
    pytest.param("trajectory-judge", Score(0.0, CANARY), id="trajectory"),
    pytest.param("trajectory-judge", Skip("timeout", CANARY), id="skipping judge"),
    pytest.param("my.checks:Tone", Score(0.0, CANARY), id="plug-in"),
    pytest.param("tone", Score(0.0, CANARY), id="entry point"),
    pytest.param("tool-call-args", Failure("KeyError", CANARY), id="exception"),
]


@pytest.mark.parametrize(("type_", "outcome"), QUOTING)
def test_without_content_nothing_that_may_quote_is_told(type_: str, outcome: Outcome) -> None:
    judged = trajectory([call("search", {"q": CANARY}, output=CANARY)], input=CANARY)
    told = evaluation(outcome, type=type_, trajectory=judged)

    assert CANARY not in str(ResultEvent(content=False).attributes(told))


@pytest.mark.parametrize(("type_", "outcome"), QUOTING)
def test_with_content_the_reason_is_told(type_: str, outcome: Outcome) -> None:
    found = ResultEvent(content=True).attributes(evaluation(outcome, type=type_))

    assert found["gen_ai.evaluation.explanation"] == CANARY
