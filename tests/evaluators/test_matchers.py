"""Matchers inside expected values."""

import copy
import pickle
from typing import Any

import pytest

from otel_eval.evaluators.matchers import PatternError, compile_fields, compile_pattern
from otel_eval.evaluators.matching import key


@pytest.mark.parametrize(
    ("expected", "good", "bad"),
    [
        ({"$any": True}, [None, 0, "", [], {}], []),
        ({"$regex": "b+$"}, ["ab", "b", "\ud800b"], ["ba", 3, None, "\udfff"]),
        ({"$regex": "^a.b$"}, ["a\ud800b", "a\ud83d\ude00b", "a\U0001f600b"], ["a\ud800"]),
        ({"$range": [1, 2]}, [1, 1.5, 2], [0.9, 2.1, True, "1", None]),
        ({"$range": [None, 2]}, [-1e9, 2], [3]),
        ({"$range": [1, None]}, [1, 1e9], [0]),
        ({"$approx": [1.0, 0.1]}, [1.1, 0.9, 1], [1.11, "1", True]),
        ({"$approx": [1.5, 1]}, [2], [10**400, -(10**400)]),
        ({"$approx": [10**400, 1]}, [10**400 + 1], [10**400 + 2, 1.5, float("inf")]),
        ({"$approx": [0, 0]}, [0, 0.0, -0.0], [1e-12, False]),
        ({"$in": [1, "a", {"$regex": "^x"}]}, [1.0, "a", "xy"], [True, "b", None]),
        ({"$type": "string"}, [""], [None, 1]),
        ({"$type": "number"}, [1, 1.5], [True, "1"]),
        ({"$type": "integer"}, [1, 2.0], [1.5, True, float("inf"), float("nan")]),
        ({"$type": "boolean"}, [True], [1]),
        ({"$type": "array"}, [[], (1,)], [{}, "a"]),
        ({"$type": "object"}, [{}], [[]]),
        ({"$type": "null"}, [None], [0, ""]),
        ({"$literal": {"$any": True}}, [{"$any": True}], [1, {}]),
        ({"a": {"$any": True}}, [{"a": None}], [{}, {"a": 1, "b": 1}, []]),
        ({"a": 1, "b": {"$absent": True}}, [{"a": 1}], [{"a": 1, "b": None}]),
        ([1, {"$any": True}], [[1, 2]], [[1], [1, 2, 3], [2, 2], {}]),
        ({"a": [1, {"b": None}]}, [{"a": [1.0, {"b": None}]}], [{"a": [True, {"b": None}]}]),
        (True, [True], [1, "true"]),
        (float("nan"), [float("nan")], [0, None]),
    ],
    ids=repr,
)
def test_a_pattern_accepts_and_refuses(expected: Any, good: list[Any], bad: list[Any]) -> None:
    pattern = compile_pattern(expected)

    assert [value for value in good if not pattern.accepts(value)] == []
    assert [value for value in bad if pattern.accepts(value)] == []


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({"a": {"$regexx": "x"}}, ".a: unknown matcher $regexx (did you mean $regex?"),
        ({"a": {"$x": 1}}, ".a: unknown matcher $x (known: $any, $regex,"),
        ({"a": {"$any": True, "b": 1}}, ".a: $any stands alone in its object"),
        ({"a": {"$any": False}}, ".a: $any takes true"),
        ({"a": {"$absent": 1}}, ".a: $absent takes true"),
        ({"a": [{"$absent": True}]}, ".a[0]: $absent stands for a key"),
        ({"a": {"$regex": "("}}, ".a: $regex not an RE2 expression: "),
        ({"a": {"$regex": 1}}, ".a: $regex takes a regular expression"),
        ({"a": {"$range": [2, 1]}}, ".a: $range the lowest value comes first"),
        ({"a": {"$range": [1]}}, ".a: $range takes [lowest, highest]"),
        ({"a": {"$range": ["a", 1]}}, ".a: $range takes [lowest, highest]"),
        ({"a": {"$approx": [1, -1]}}, ".a: $approx takes [value, tolerance]"),
        ({"a": {"$approx": 1}}, ".a: $approx takes [value, tolerance]"),
        ({"a": {"$in": []}}, ".a: $in takes a list"),
        ({"a": {"$in": [{"$x": 1}]}}, ".a: $in [0]: unknown matcher $x"),
        ({"a": {"$type": "text"}}, ".a: $type takes one of string, number"),
    ],
    ids=repr,
)
def test_a_matcher_that_cannot_be_used_is_told_by_its_place(expected: Any, problem: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(expected)

    assert str(caught.value).startswith(problem)


def test_equal_matchers_have_equal_keys_and_literals_have_others() -> None:
    matcher, same = compile_pattern({"a": {"$any": True}}), compile_pattern({"a": {"$any": True}})
    literal = compile_pattern({"$literal": {"a": {"$any": True}}})

    assert matcher.key == same.key
    assert matcher.key != literal.key
    assert literal.key == key({"a": {"$any": True}})


def test_only_fields_may_be_absent() -> None:
    fields = compile_fields({"a": {"$absent": True}, "b": 1})

    assert [name for name, pattern in fields.items() if pattern.absent] == ["a"]
    assert [name for name, pattern in fields.items() if pattern.plain] == ["b"]


def test_keys_survive_copies_and_pickles() -> None:
    value = key({"a": [True, False, float("nan"), None]})

    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
