"""What the agents of all frameworks do, and what must come of it."""

from otel_eval import Rule
from tests.telemetry import Telemetry, results

EXPECTED = (("get_temperature", "Tokyo"), ("get_forecast", "Tokyo"))
RULE = Rule.parse(
    {
        "name": "weather-flow",
        "match": {"agent": "weather-agent"},
        "evaluators": [
            {"type": "tool-call-order", "tool_calls_order": [name for name, _ in EXPECTED]},
            {
                "type": "tool-call-args",
                "tool_calls": [{"name": name, "args": {"city": city}} for name, city in EXPECTED],
            },
            {
                "type": "tool-call-output",
                "tool_outputs": [
                    {"name": "get_temperature", "output": {"temperature": 25.0}},
                    {"name": "get_forecast", "output": "Sunny"},
                ],
            },
            {"type": "tool-error-rate"},
        ],
    }
)
SCORES = {
    "tool-call-order": 1.0,
    "tool-call-args": 1.0,
    "tool-call-output": 0.5,
    "tool-error-rate": 1.0,
}


def check(telemetry: Telemetry) -> None:
    """One trace, scored once, told in all three ways."""
    told = {
        each["gen_ai.evaluation.name"]: each["gen_ai.evaluation.score.value"]
        for each in telemetry.events()
    }
    assert told == SCORES
    assert telemetry.scores() == SCORES
    assert len(telemetry.evaluations) == len(telemetry.events()) == len(SCORES)
    assert {each["gen_ai.agent.name"] for each in telemetry.events()} == {"weather-agent"}
    assert {each["otel_eval.closed_by"] for each in telemetry.events()} == {"root"}
    [span] = telemetry.evaluation_spans()
    assert span.name == "evaluation weather-flow"
    by_name = {(event.attributes or {})["gen_ai.evaluation.name"] for event in results(span)}
    assert by_name == set(SCORES)
    anchors = {
        each.context.span_id for each in telemetry.spans.get_finished_spans() if each.context
    }
    assert span.parent is not None
    assert span.parent.span_id in anchors
