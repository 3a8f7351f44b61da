"""The index answers for all calls at once what `differences` answers for one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_eval.evaluators.call_index import Expectation, at, index
from otel_eval.evaluators.matchers import compile_pattern
from otel_eval.evaluators.trajectory_match import ExpectedCall
from tests.conftest import call

values = st.sampled_from([0, 1, 1.0, True, None, "x", [1], {"k": 1}])
arguments = st.dictionaries(st.sampled_from("pqr"), values, max_size=3)
matchers = st.sampled_from([{"$any": True}, {"$range": [0, 1]}, {"$absent": True}, {"$in": [1]}])
wanted = st.dictionaries(st.sampled_from("pqr"), values | matchers, max_size=3)
modes = st.sampled_from(["exact", "subset", "superset", "ignore", ("p",), ("p", "q.k"), ("s",)])


@settings(deadline=None, max_examples=300)
@given(
    args=wanted,
    mode=modes,
    # Few calls are tested one by one and more are indexed.
    made=st.lists(arguments, min_size=1, max_size=3) | st.lists(arguments, min_size=4, max_size=8),
)
def test_a_call_fits_exactly_where_nothing_differs(
    args: dict[str, Any], mode: Any, made: list[dict[str, Any]]
) -> None:
    expectation = ExpectedCall(name="f", args=args).expectation(mode)

    mask = index([call("f", each) for each in made])["f"].fitting(expectation)

    assert [bool(mask >> j & 1) for j in range(len(made))] == [
        not expectation.differences(each) for each in made
    ]


def test_calls_are_kept_apart_by_tool() -> None:
    tools = index([call("a", {"n": 1}), call("b", {"n": 1}), call("a", {"n": 2})])

    anything = Expectation({}, may_have_more=True)

    assert tools["a"].fitting(anything) == 0b101
    assert tools["b"].fitting(anything) == 0b010


@pytest.mark.parametrize("times", [1, 2], ids=["few", "indexed"])
def test_what_is_not_an_object_fits_only_where_arguments_do_not_matter(times: int) -> None:
    tool = index([call("a", "text"), call("a", None), call("a")] * times)["a"]
    one = Expectation({("n",): compile_pattern(1)}, may_lack=True)

    assert tool.fitting(one) == 0
    assert tool.fitting(Expectation({}, may_have_more=True)) == (1 << 3 * times) - 1
    assert tool.unrecorded == (0b100, 0b100100)[times - 1]


@pytest.mark.parametrize(
    ("path", "expected"), [((), {"a": {"b": 1}}), (("a",), {"b": 1}), (("a", "b"), 1)]
)
def test_a_path_leads_down_the_keys(path: tuple[str, ...], expected: Any) -> None:
    assert at({"a": {"b": 1}}, path) == expected
