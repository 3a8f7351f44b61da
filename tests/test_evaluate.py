import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from otel_eval import ConfigError, DecodeError, Rule, evaluate, trajectories
from otel_eval.model import Evaluation, Score, Span
from tests.conftest import SPAN_ID, span
from tests.telemetry import Telemetry, agent_of

CAPTURES = Path(__file__).parent / "captures"
ORDER = {"type": "tool-call-order", "tool_calls_order": ["search", "book"]}


def rule(*evaluators: dict[str, Any], **fields: Any) -> Rule:
    return Rule.parse({"name": "rule", "evaluators": list(evaluators or (ORDER,)), **fields})


def value(evaluation: Evaluation) -> float:
    assert isinstance(evaluation.outcome, Score)
    return evaluation.outcome.value


def agent_trace(trace: int = 1, **fields: Any) -> list[Span]:
    trace_id = f"{trace:032x}"
    calls = [
        span(
            tool,
            trace_id=trace_id,
            span_id=f"{place + 1:016x}",
            parent_id=SPAN_ID,
            parent_remote=False,
            start_ns=place,
            attributes={"tool.name": tool},
        )
        for place, tool in enumerate(["search", "book"])
    ]
    fields = {"attributes": agent_of("helper"), **fields}
    return [*calls, span("invoke_agent", trace_id=trace_id, **fields)]


def test_spans_of_the_sdk_and_their_otlp_bytes_give_the_same() -> None:
    telemetry = Telemetry()
    telemetry.export_spans()
    telemetry.run("search", "book")
    telemetry.run("book", agent="other")
    spans = telemetry.spans.get_finished_spans()

    from_sdk = evaluate(spans, rules=[rule()])
    from_bytes = evaluate(encode_spans(spans).SerializeToString(), rules=[rule()])

    assert [value(each) for each in from_sdk] == [1.0, 0.5]
    assert [each.trajectory.agent for each in from_sdk] == ["helper", "other"]
    assert [(e.anchor.span_id, value(e)) for e in from_bytes] == [
        (e.anchor.span_id, value(e)) for e in from_sdk
    ]


def test_a_recorded_line_of_json_is_read_too() -> None:
    line = (CAPTURES / "langgraph_openinference_par.otlp.jsonl").read_text().splitlines()

    found = evaluate(line)

    assert {each.evaluator for each in found} == {"tool-error-rate", "tool-loop"}


def test_without_rules_the_default_ones_run() -> None:
    assert [each.evaluator for each in evaluate(agent_trace())] == ["tool-error-rate", "tool-loop"]


def test_a_trace_is_complete_and_closes_by_its_root() -> None:
    [found] = evaluate(reversed(agent_trace()), rules=[rule()])

    assert (found.trajectory.closed_by, found.trajectory.whole) == ("root", True)
    assert value(found) == 1.0


def test_a_trace_without_its_root_closes_as_idle() -> None:
    [found] = evaluate(agent_trace()[:-1], rules=[rule()])

    assert (found.trajectory.closed_by, found.trajectory.whole) == ("idle", False)
    assert found.verdict == "skip"


def test_a_local_root_is_root_enough() -> None:
    local: dict[str, Any] = {"parent_id": "f" * 16, "parent_remote": True, "kind": "server"}

    [found] = evaluate(agent_trace(**local), rules=[rule()])

    assert (found.trajectory.closed_by, found.trajectory.whole) == ("root", True)


def test_rules_about_sessions_and_about_runs() -> None:
    told = {"attributes": {**agent_of("helper"), "session.id": "s"}}
    spans = [*agent_trace(1, **told), *agent_trace(2, **told)]
    twice = {"type": "tool-call-count", "tool_calls_count": {"search": ["=", 2]}}
    rules = [
        rule(twice, name="session", per="session"),
        rule(name="run", per="run", match={"agent": "helper"}),
    ]

    found = evaluate(spans, rules=rules)

    assert [(each.rule, value(each)) for each in found] == [
        ("run", 1.0),
        ("run", 1.0),
        ("session", 1.0),
    ]


def test_a_session_too_long_for_any_limit_is_one_session() -> None:
    told = {"attributes": {**agent_of("helper"), "session.id": "s"}}
    spans = [each for trace in range(1, 200) for each in agent_trace(trace, **told)]
    count = {"type": "tool-call-count", "tool_calls_count": {"search": ["=", 199]}}

    [found] = evaluate(spans, rules=[rule(count, per="session")])

    assert value(found) == 1.0


def test_a_rule_file_may_be_given_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"rules": [{"name": "file", "evaluators": [ORDER]}]}))

    by_path = evaluate(agent_trace(), file)
    replaced = evaluate(agent_trace(), str(file), rules=[rule(name="given")])

    assert [each.rule for each in by_path] == ["file"]
    assert [each.rule for each in replaced] == ["given"]


def test_no_spans_are_a_trace_in_which_nothing_was_called() -> None:
    """A test whose agent did nothing must not pass because there was nothing to look at."""
    anyone = rule(name="anyone")
    agents = rule(name="agents", match={"agent": "weather"})

    (found,) = evaluate([], rules=[anyone, agents])

    assert (found.rule, found.verdict) == ("anyone", "fail")
    assert [each.verdict for each in evaluate([])] == ["skip", "skip"]


@pytest.mark.parametrize("given", [b"\x00no otlp", [object()]], ids=["bytes", "objects"])
def test_what_is_no_span_is_refused(given: Any) -> None:
    with pytest.raises(DecodeError):
        evaluate(given)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        evaluate([], tmp_path / "none.yaml")


def test_trajectories_of_any_spans() -> None:
    telemetry = Telemetry()
    telemetry.export_spans()
    telemetry.run("search")

    [found] = trajectories(telemetry.spans.get_finished_spans())

    assert [call.name for call in found.tool_calls] == ["search"]
    assert found.agent == "helper"


def test_rules_may_be_given_in_place_of_a_configuration() -> None:
    by_place = evaluate(agent_trace(), [rule()])

    assert by_place == evaluate(agent_trace(), rules=[rule()])
    with pytest.raises(ConfigError, match="expected a Config, the path of a file, or rules"):
        evaluate(agent_trace(), 5)  # type: ignore[arg-type]
