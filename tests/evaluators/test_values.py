"""How recorded values are read for comparison."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_eval.evaluators.matching import key
from otel_eval.evaluators.values import arguments, failed, output_forms, read_text
from otel_eval.extract.values import value as recorded
from otel_eval.model import UNRECORDED
from tests.conftest import call


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("done", "done"),
        (" done ", " done "),
        ("42", 42),
        ("-1.5e3", -1500.0),
        ("12345678901234567890123", 12345678901234567890123),
        ('{"a": [-12345678901234567890123]}', {"a": [-12345678901234567890123]}),
        ("Infinity", math.inf),
        ("[-Infinity, 1234567890123456789]", [-math.inf, 1234567890123456789]),
        ("1e400", math.inf),
        ("9" * 5000, "9" * 5000),
        ("0.12345678901234567890123", 0.12345678901234567890123),
        ("true", True),
        ("True", True),
        ("None", None),
        ("null", None),
        ("nothing", "nothing"),
        ('"quoted"', "quoted"),
        ("'quoted'", "quoted"),
        ('"1"', "1"),
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("{'a': (1, None, True)}", {"a": [1, None, True]}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("{1: 2}", {"1": 2}),
        ("{1}", [1]),
        ("b'x'", "b'x'"),
        ("[b'x']", ["b'x'"]),
        ("[1j]", "[1j]"),
        ("[1, 2", "[1, 2"),
        ("(f)(x)", "(f)(x)"),
        (r"'\d+'", r"'\d+'"),
        (r"'\n'", "\n"),
        (repr({"path": r"C:\dir"}), {"path": r"C:\dir"}),
        ("[" * 3000 + "]" * 3000, "[" * 3000 + "]" * 3000),
        ("'" + "x" * 200_001 + "'", "'" + "x" * 200_001 + "'"),
        (3, 3),
        (None, None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_text_is_read_as_what_it_stands_for(text: Any, value: Any) -> None:
    assert read_text(text) == value
    assert type(read_text(text)) is type(value)


def test_nan_is_read_as_a_number() -> None:
    assert math.isnan(read_text("NaN"))
    assert math.isnan(read_text("[NaN]")[0])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("ab'\"\\{[ é\n", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text("ab", max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)
TEXTS = (
    st.text("{}[]()'\",:0123 .-+eaNTrue\\", max_size=12)
    | VALUES.map(repr)
    | VALUES.map(lambda each: json.dumps(each, default=list))
    | VALUES.map(lambda each: json.dumps(json.dumps(each)))
)


@given(TEXTS)
@example("NaN")
@example("[NaN]")
@example("-Infinity")
@example("1e400")
@example("{'a'}")
@example("{1: 2}")
@example('"\\ud800"')
@example(r"'\d+'")
@example(repr({"path": r"C:\dir"}))
def test_expected_text_always_equals_the_same_text_recorded(text: str) -> None:
    output = recorded(text)

    if output is not UNRECORDED:  # the text was cut off
        assert key(read_text(text)) in map(key, output_forms(output))


@pytest.mark.parametrize(
    ("output", "forms"),
    [
        ({"a": 1}, [{"a": 1}]),
        ("text", ["text"]),
        ("1", ["1", 1]),
        ({"content": "1"}, [{"content": "1"}, "1", 1]),
        ('{"content": [1]}', ['{"content": [1]}', {"content": [1]}, [1]]),
        ({"content": {"content": 1}}, [{"content": {"content": 1}}, {"content": 1}]),
    ],
    ids=repr,
)
def test_an_output_counts_in_each_of_its_forms(output: Any, forms: list[Any]) -> None:
    assert output_forms(output) == forms


def test_a_call_without_arguments_may_be_written_as_empty_text() -> None:
    assert arguments(call(arguments="")) == {}
    assert arguments(call(arguments=None)) is None
    assert arguments(call()) is UNRECORDED


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, False),
        ({"error": ""}, True),
        ({"error": "timeout"}, True),
        ({"output": {"isError": True}}, True),
        ({"output": {"is_error": True, "content": []}}, True),
        ({"output": {"isError": False}}, False),
        ({"output": {"isError": "no"}}, False),
        ({"output": "isError"}, False),
    ],
    ids=repr,
)
def test_a_call_failed_by_its_status_or_by_its_own_word(
    fields: dict[str, Any], wrong: bool
) -> None:
    assert failed(call(**fields)) == wrong
