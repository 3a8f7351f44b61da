"""Every example of the documents that the evaluators implement: inputs, score and details."""

import json
from typing import Any

import pytest

from otel_eval import evaluators
from otel_eval.extract import trajectories
from otel_eval.model import Score, Span, Trajectory


def traced(*calls: str | tuple[str, Any, Any]) -> Trajectory:
    """A trace as the documents write it: `tool.name`, and input and output as JSON text."""
    spans = []
    for position, call in enumerate(calls):
        name, given, output = (call, None, None) if isinstance(call, str) else call
        attributes = {"tool.name": name}
        if given is not None:
            attributes["input.value"] = json.dumps(given)
        if output is not None:
            attributes["output.value"] = json.dumps(output)
        spans.append(
            Span(
                trace_id="seed",
                span_id=f"#{position}",
                name=name,
                start_ns=position,
                end_ns=position + 1,
                attributes=attributes,
            )
        )
    return trajectories(spans)[0]


def score(config: dict[str, Any], trajectory: Trajectory) -> Score:
    outcome = evaluators.parse(config).evaluate(trajectory)
    assert isinstance(outcome, Score)
    return outcome


COUNTS: dict[str, tuple[list[str], dict[str, tuple[str, int]], bool, float]] = {
    "basic": (
        ["fetch_data", *["process_item"] * 5, "send_notification"],
        {"fetch_data": ("=", 1), "process_item": ("=", 5), "send_notification": ("=", 1)},
        False,
        1.0,
    ),
    "proportional": (
        ["fetch_data", *["process_item"] * 3, "send_notification"],
        {"fetch_data": ("=", 1), "process_item": ("=", 5), "send_notification": ("=", 1)},
        False,
        2 / 3,
    ),
    "strict": (
        ["authenticate", "fetch_records", "fetch_records", "close_connection"],
        {"authenticate": ("=", 1), "fetch_records": ("=", 1), "close_connection": ("=", 1)},
        True,
        0.0,
    ),
    "redundant": (
        ["expensive_api_call", "database_query", "database_query", "llm_call"],
        {"expensive_api_call": ("<=", 1), "database_query": ("<=", 3), "llm_call": ("<=", 2)},
        False,
        1.0,
    ),
    "loop": (
        ["process_item", "validate_item", "save_result"] * 10,
        {"process_item": ("=", 10), "validate_item": ("=", 10), "save_result": ("=", 10)},
        False,
        1.0,
    ),
    "retry": (
        ["attempt_operation", "log_retry", "attempt_operation", "final_result"],
        {"attempt_operation": ("<=", 3), "log_retry": (">=", 1), "final_result": ("=", 1)},
        False,
        1.0,
    ),
    "minimum": (
        ["validate_input", "check_security", "audit_log"],
        {"validate_input": (">=", 1), "check_security": (">=", 1), "audit_log": (">", 0)},
        False,
        1.0,
    ),
}


@pytest.mark.parametrize(("calls", "counts", "strict", "value"), COUNTS.values(), ids=COUNTS.keys())
def test_seed_000(
    calls: list[str], counts: dict[str, tuple[str, int]], strict: bool, value: float
) -> None:
    config = {"type": "tool-call-count", "tool_calls_count": counts, "strict": strict}

    assert score(config, traced(*calls)).value == pytest.approx(value)


def test_seed_000_explains_each_count() -> None:
    calls, counts, _, _ = COUNTS["proportional"]

    outcome = score({"type": "tool-call-count", "tool_calls_count": counts}, traced(*calls))

    assert outcome.details == {
        "explained_tool_calls_count": {
            "fetch_data": "Actual: 1, Expected: 1, Score: 1.0",
            "process_item": "Actual: 3, Expected: 5, Score: 0.0",
            "send_notification": "Actual: 1, Expected: 1, Score: 1.0",
        }
    }
    assert outcome.reason == "process_item called 3 times, expected = 5"


USER = ["validate_user", "check_inventory", "create_order"]
ACCESS = ["authenticate_user", "verify_permissions", "access_resource"]
DATABASE = ["begin_transaction", "validate_data", "update_records", "commit_transaction"]
API = ["get_api_token", "fetch_user_data", "enrich_data", "post_to_webhook", "log_result"]
ORDERS: dict[str, tuple[list[str], list[str], bool, float, list[str]]] = {
    "lcs": (["A", "X", "B", "D"], ["A", "B", "C", "D"], False, 0.75, ["A", "B", "D"]),
    "basic": (USER, USER, False, 1.0, USER),
    "strict": (ACCESS, ACCESS, True, 1.0, ACCESS),
    "partial": (
        ["search", "filter", "display"],
        ["search", "filter", "sort", "display"],
        False,
        0.75,
        ["search", "filter", "display"],
    ),
    "database": (DATABASE, DATABASE, True, 1.0, DATABASE),
    "api": (API, API, False, 1.0, API),
    "justification": (
        ["tool1", "tool2", "tool3"],
        ["tool1", "tool2", "tool3", "tool4"],
        False,
        0.75,
        ["tool1", "tool2", "tool3"],
    ),
}


@pytest.mark.parametrize(
    ("calls", "order", "strict", "value", "lcs"), ORDERS.values(), ids=ORDERS.keys()
)
def test_seed_001(
    calls: list[str], order: list[str], strict: bool, value: float, lcs: list[str]
) -> None:
    config = {"type": "tool-call-order", "tool_calls_order": order, "strict": strict}

    outcome = score(config, traced(*calls))

    assert outcome.value == value
    assert outcome.details == {
        "actual_tool_calls_order": calls,
        "expected_tool_calls_order": order,
        "lcs": lcs,
    }


def test_seed_001_reads_default_criteria() -> None:
    config = {
        "type": "tool-call-order",
        "name": "ToolCallOrderEvaluator",
        "strict": False,
        "default_evaluation_criteria": {"tool_calls_order": ["init", "process", "cleanup"]},
    }

    assert score(config, traced("init", "process", "cleanup")).value == 1.0


def made(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def test_seed_002_direct_usage() -> None:
    search, article = made("searchWeb", query="AI news"), made("summarize", text="long article...")
    other, extra = (
        made("summarize", text="different text"),
        made("translateText", text="hello", to="es"),
    )
    calls = traced(*((each["tool"], each["args"], None) for each in (search, other, extra)))

    outcome = score({"type": "tool-call-accuracy", "expected": [search, article]}, calls)

    # The document prints 0.667; its own formula gives 0.4.
    assert outcome.value == pytest.approx(0.4)
    assert outcome.details == {
        "total_expected": 2,
        "total_actual": 3,
        "correct_calls": [
            {"expected": search, "actual": search, "status": "correct", "args_match": True}
        ],
        "incorrect_calls": [
            {
                "expected": article,
                "actual": other,
                "status": "incorrect",
                "args_match": False,
                "details": "Tool name matches but arguments differ",
            }
        ],
        "missed_calls": [],
        "extra_calls": [extra],
        "summary": "Accuracy Score: 40.0% | Correct: 1/2 | Incorrect: 1 | Missed: 0 | Extra: 1",
    }


def test_seed_002_research_agent() -> None:
    expected = [
        made("searchWeb", query="latest AI research 2024"),
        made("fetchUrl", url="https://arxiv.org/..."),
        made("summarize", maxLength=500),
    ]
    calls = traced(*((each["tool"], each["args"], None) for each in expected[:2]))

    outcome = score({"type": "tool-call-accuracy", "expected": expected}, calls)

    assert outcome.value == pytest.approx(0.8)
    assert outcome.details["missed_calls"] == [
        {
            "expected": expected[2],
            "status": "missed",
            "args_match": False,
            "details": "Expected call was not made",
        }
    ]
    assert outcome.reason == "2 of 3 expected calls made exactly; missed: summarize"


def weather(city: str) -> Trajectory:
    given = {"city": city}
    return traced(
        ("get_temperature", given, {"content": {"temperature": 25.0, "unit": "fahrenheit"}}),
        ("get_weather_condition", given, {"content": {"condition": "cloudy"}}),
        ("get_humidity", given, {"content": {"humidity": 65}}),
        ("get_forecast", given, {"content": {"forecast": "Overcast with mild temperatures"}}),
    )


TOKYO = json.loads("""
{
  "ToolCallCountEvaluator": {
    "toolCallsCount": {
      "get_temperature": ["=", 1],
      "get_weather_condition": ["=", 1],
      "get_humidity": ["=", 1],
      "get_forecast": ["=", 1]
    }
  },
  "ToolCallOrderEvaluator": {
    "toolCallsOrder": [
      "get_temperature", "get_weather_condition", "get_humidity", "get_forecast"
    ]
  },
  "ToolCallArgsEvaluator": {
    "toolCalls": [
      {"name": "get_temperature", "args": {"city": "Tokyo"}},
      {"name": "get_weather_condition", "args": {"city": "Tokyo"}},
      {"name": "get_humidity", "args": {"city": "Tokyo"}},
      {"name": "get_forecast", "args": {"city": "Tokyo"}}
    ]
  },
  "ToolCallOutputEvaluator": {
    "toolOutputs": [
      {"name": "get_temperature", "output": "{'temperature': 25.0, 'unit': 'fahrenheit'}"},
      {"name": "get_weather_condition", "output": "{'condition': 'cloudy'}"},
      {"name": "get_humidity", "output": "{'humidity': 65}"},
      {"name": "get_forecast", "output": "{'forecast': 'Overcast with mild temperatures'}"}
    ]
  }
}
""")
TYPES = {
    "ToolCallCountEvaluator": "tool-call-count",
    "ToolCallOrderEvaluator": "tool-call-order",
    "ToolCallArgsEvaluator": "tool-call-args",
    "ToolCallOutputEvaluator": "tool-call-output",
}


@pytest.mark.parametrize("name", TYPES)
def test_seed_003_tokyo_forecast(name: str) -> None:
    config = {"type": TYPES[name], **TOKYO[name]}

    assert score(config, weather("Tokyo")).value == 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ToolCallCountEvaluator", 1.0),
        ("ToolCallOrderEvaluator", 1.0),
        ("ToolCallArgsEvaluator", 0.0),
        ("ToolCallOutputEvaluator", 1.0),
    ],
)
def test_seed_003_the_city_matters_to_the_arguments_only(name: str, value: float) -> None:
    assert score({"type": TYPES[name], **TOKYO[name]}, weather("Kyoto")).value == value


SEED_003: dict[str, dict[str, Any]] = {
    "count": {
        "type": "tool-call-count",
        "toolCallsCount": {
            "get_temperature": ["=", 1],
            "get_weather_condition": ["=", 1],
            "get_humidity": ["=", 1],
        },
    },
    "order": {
        "type": "tool-call-order",
        "toolCallsOrder": TOKYO["ToolCallOrderEvaluator"]["toolCallsOrder"],
    },
    "args": {
        "type": "tool-call-args",
        "toolCalls": [
            {"name": "get_temperature", "args": {"city": "New York"}},
            {"name": "get_weather_condition", "args": {"city": "New York"}},
        ],
    },
    "args exact": {
        "type": "tool-call-args",
        "subset": False,
        "toolCalls": [{"name": "get_temperature", "args": {"city": "New York"}}],
    },
    "output": {
        "type": "tool-call-output",
        "toolOutputs": [
            {"name": "get_temperature", "output": "{'temperature': 25.0, 'unit': 'fahrenheit'}"},
            {"name": "get_forecast", "output": "{'forecast': 'Overcast with mild temperatures'}"},
        ],
    },
}


@pytest.mark.parametrize("config", SEED_003.values(), ids=SEED_003.keys())
def test_seed_003_usage(config: dict[str, Any]) -> None:
    assert score(config, weather("New York")).value == 1.0


def test_seed_003_exact_mode_refuses_further_arguments() -> None:
    calls = traced(("get_temperature", {"city": "New York", "unit": "C"}, None))
    expected = [{"name": "get_temperature", "args": {"city": "New York"}}]

    assert score({"type": "tool-call-args", "toolCalls": expected}, calls).value == 1.0
    exact = {"type": "tool-call-args", "toolCalls": expected, "subset": False}
    assert score(exact, calls).value == 0.0
