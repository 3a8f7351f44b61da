import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.args_schema import ToolArgsSchema
from otel_eval.model import Score, Skip, Tool, ToolCall
from tests.conftest import call, trajectory

SEARCH = {
    "type": "object",
    "properties": {"q": {"type": "string", "pattern": "^[a-z]+$"}, "limit": {"type": "integer"}},
    "required": ["q"],
    "additionalProperties": False,
}
GOOD = call("search", {"q": "cats", "limit": 5.0})
BAD = call("search", {"limit": "secret", "page": 1})


def judge(calls: list[ToolCall], **fields: Any) -> Score | Skip:
    return ToolArgsSchema(schemas={"search": SEARCH}).evaluate(trajectory(calls, **fields))


def value(outcome: Score | Skip) -> float:
    assert isinstance(outcome, Score)
    return outcome.value


def code(outcome: Score | Skip) -> str:
    assert isinstance(outcome, Skip)
    return outcome.code


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([GOOD, GOOD], 1.0, id="all valid"),
        pytest.param([GOOD, BAD], 0.5, id="one invalid"),
        pytest.param([GOOD, call("other", {"x": 1})], 1.0, id="other tools are not judged"),
        pytest.param([call("search", "")], 0.0, id="no arguments"),
        pytest.param([call("search", "free text")], 0.0, id="text"),
        pytest.param([call("search", None)], 0.0, id="null"),
        pytest.param([call("search", {"q": "CATS"})], 0.0, id="pattern"),
    ],
)
def test_share_of_calls_whose_arguments_validate(calls: list[ToolCall], expected: float) -> None:
    assert value(judge(calls)) == expected


def test_the_reason_names_arguments_but_no_values() -> None:
    score = judge([GOOD, BAD])

    assert isinstance(score, Score)
    assert score.reason == (
        "1 of 2 calls with invalid arguments: "
        "search (call 2: limit: type, q: required, page: additionalProperties)"
    )
    (entry,) = score.details["invalid"]
    assert (entry["tool"], entry["position"]) == ("search", 2)
    assert entry["problems"][0] == {
        "path": "limit",
        "keyword": "type",
        "message": "'secret' is not of type 'integer'",
    }


def test_places_deep_inside_are_given_as_paths() -> None:
    schema = {"properties": {"tags": {"items": {"required": ["id"]}}}}
    check = ToolArgsSchema(schemas={"tag": schema})

    score = check.evaluate(trajectory([call("tag", {"tags": [{"id": 1}, {}]})]))

    assert isinstance(score, Score)
    assert "tag (call 1: tags.1.id: required)" in score.reason


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([], "no_tool_calls", id="no call"),
        pytest.param([call("other")], "no_tool_calls", id="no call of these tools"),
        pytest.param([GOOD, call("search")], "arguments_unrecorded", id="unrecorded"),
    ],
)
def test_what_cannot_be_judged_is_skipped(calls: list[ToolCall], expected: str) -> None:
    assert code(judge(calls)) == expected


def test_an_incomplete_trajectory_is_scored() -> None:
    assert value(judge([BAD], whole=False)) == 0.0


class TestRecordedDefinitions:
    def judge(self, calls: list[ToolCall], *tools: Tool) -> Score | Skip:
        return ToolArgsSchema().evaluate(trajectory(calls, available_tools=tools))

    def test_are_used_if_no_schemas_are_given(self) -> None:
        assert value(self.judge([GOOD, BAD], Tool(name="search", parameters=SEARCH))) == 0.5

    def test_are_those_of_the_calling_agent(self) -> None:
        strict = Tool(name="search", parameters=SEARCH, agent="strict")
        loose = Tool(name="search", parameters={}, agent="loose")
        calls = [call("search", {"page": 1}, agent=agent) for agent in ("strict", "loose")]

        assert value(self.judge(calls, strict, loose)) == 0.5

    @pytest.mark.parametrize(
        "parameters",
        [
            *(None, "text", [1], {"type": "objekt"}, {"$ref": "https://example.com/schema"}),
            {"maximum": 2**80},
        ],
    )
    def test_that_cannot_be_used_are_unknown(self, parameters: Any) -> None:
        outcome = self.judge([GOOD], Tool(name="search", parameters=parameters))

        assert code(outcome) == "tools_unknown"

    def test_that_are_missing_are_unknown(self) -> None:
        assert code(self.judge([GOOD])) == "tools_unknown"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        pytest.param({"type": "objekt"}, "is not JSON Schema", id="unknown type"),
        pytest.param({"properties": {"q": {"pattern": "("}}}, "is not JSON Schema", id="pattern"),
        pytest.param({"$ref": "https://example.com/a"}, "nothing is fetched", id="remote"),
        pytest.param(
            {"properties": {"q": {"$ref": "#/$defs/q"}}}, "leads out of the schema", id="nowhere"
        ),
        pytest.param({"$ref": "#"}, "leads back to itself", id="endless"),
        pytest.param(3, "takes a JSON Schema", id="not a schema"),
    ],
)
def test_a_bad_schema_is_refused_at_its_place(schema: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        ToolArgsSchema(schemas={"search": schema})

    assert caught.value.errors()[0]["loc"] == ("schemas", "search")


def test_what_a_pattern_names_is_not_too_much() -> None:
    schema = {"patternProperties": {"^x-": {}}, "additionalProperties": False}
    check = ToolArgsSchema(schemas={"f": schema})

    score = check.evaluate(trajectory([call("f", {"x-id": 1, "id": 2})]))

    assert score.reason.endswith("f (call 1: id: additionalProperties)")


def test_false_accepts_no_call_at_all() -> None:
    check = ToolArgsSchema(schemas={"f": False})

    assert value(check.evaluate(trajectory([call("f", {})]))) == 0.0


def test_empty_schemas_are_refused() -> None:
    with pytest.raises(ValidationError, match="schemas"):
        ToolArgsSchema(schemas={})


def test_local_references_are_followed() -> None:
    schema = {
        "$id": "https://example.com/search",
        "$defs": {"q": {"$anchor": "query", "type": "string"}},
        "properties": {"q": {"$ref": "#query"}, "or": {"$ref": "search#/$defs/q"}},
    }
    check = ToolArgsSchema(schemas={"search": schema})

    assert value(check.evaluate(trajectory([call("search", {"q": "a", "or": "b"})]))) == 1.0
    assert value(check.evaluate(trajectory([call("search", {"q": "a", "or": 1})]))) == 0.0


def test_an_evil_pattern_does_not_hang() -> None:
    check = ToolArgsSchema(schemas={"f": {"properties": {"q": {"pattern": "^(a+)+$"}}}})

    assert value(check.evaluate(trajectory([call("f", {"q": "a" * 5000 + "!"})]))) == 0.0


def test_what_re2_cannot_do_is_left_to_python() -> None:
    check = ToolArgsSchema(schemas={"f": {"properties": {"q": {"pattern": "^(?!x)"}}}})

    assert (
        value(check.evaluate(trajectory([call("f", {"q": "ax"}), call("f", {"q": "xa"})]))) == 0.5
    )


def test_jsonschema_is_imported_only_when_a_schema_is_there() -> None:
    code = (
        "import sys, otel_eval.evaluators.args_schema as a; a.ToolArgsSchema();"
        "assert 'jsonschema' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
