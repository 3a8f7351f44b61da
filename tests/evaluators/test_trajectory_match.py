from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from otel_eval.evaluators.trajectory_match import TrajectoryMatch
from otel_eval.model import Score, Skip, ToolCall
from tests.conftest import call, trajectory

MODES = ("exact", "in_order", "any_order", "unordered", "subset")


def judge(expected: list[Any], calls: list[str | ToolCall], **settings: Any) -> Score:
    outcome = TrajectoryMatch(expected=expected, **settings).evaluate(trajectory(calls))
    assert isinstance(outcome, Score)
    return outcome


def ops(score: Score) -> list[tuple[str, str]]:
    return [(edit["op"], edit["tool"]) for edit in score.details["edit_script"]]


@pytest.mark.parametrize(
    ("calls", "accepted_by"),
    [
        pytest.param(["a", "b"], set(MODES), id="the expected calls"),
        pytest.param(["b", "a"], {"any_order", "unordered", "subset"}, id="in another order"),
        pytest.param(["a", "x", "b"], {"in_order", "any_order"}, id="with another one between"),
        pytest.param(["b", "x", "a"], {"any_order"}, id="in another order, with another one"),
        pytest.param(["a"], {"subset"}, id="with one missing"),
        pytest.param([], {"subset"}, id="no call at all"),
        pytest.param(["a", "a", "b"], {"in_order", "any_order"}, id="with one twice"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_modes_differ_in_what_they_forgive(
    mode: str, calls: list[str | ToolCall], accepted_by: set[str]
) -> None:
    assert judge(["a", "b"], calls, mode=mode).value == float(mode in accepted_by)


@pytest.mark.parametrize(
    ("mode", "value"),
    [("exact", 0.0), ("in_order", 1.0), ("any_order", 1.0), ("unordered", 0.0), ("subset", 0.0)],
)
def test_expecting_nothing_means_no_call_unless_others_are_allowed(mode: str, value: float) -> None:
    assert judge([], ["a"], mode=mode).value == value
    assert judge([], [], mode=mode).value == 1.0


@pytest.mark.parametrize(
    ("args", "given", "value"),
    [
        ("exact", {"q": "cats", "limit": 5}, 1.0),
        ("exact", {"limit": 5.0, "q": "cats"}, 1.0),
        ("exact", {"q": "cats"}, 0.0),
        ("exact", {"q": "cats", "limit": 5, "page": 1}, 0.0),
        ("subset", {"q": "cats"}, 1.0),
        ("subset", {"q": "dogs"}, 0.0),
        ("subset", {"q": "cats", "page": 1}, 0.0),
        ("superset", {"q": "cats", "limit": 5, "page": 1}, 1.0),
        ("superset", {"q": "cats", "page": 1}, 0.0),
        ("ignore", {"page": 1}, 1.0),
        ("ignore", "free text", 1.0),
        ("exact", "free text", 0.0),
    ],
)
def test_argument_modes_say_what_the_arguments_made_are_of_the_expected_ones(
    args: str, given: Any, value: float
) -> None:
    expected = [{"name": "search", "args": {"q": "cats", "limit": 5}}]

    assert judge(expected, [call("search", given)], args=args).value == value


@pytest.mark.parametrize("args", ["exact", "subset", "superset", "ignore"])
def test_a_call_expected_without_args_fits_any_arguments(args: str) -> None:
    calls: list[str | ToolCall] = [call("search", {"q": 1}), "book"]

    assert judge(["search", {"tool": "book"}], calls, args=args).value == 1.0


def test_empty_args_expect_a_call_without_arguments() -> None:
    expected = [{"name": "list", "args": {}}]

    assert judge(expected, [call("list", {})]).value == 1.0
    assert judge(expected, [call("list", "")]).value == 1.0
    assert judge(expected, [call("list", {"page": 1})]).value == 0.0


@pytest.mark.parametrize(
    ("tool_args", "value"),
    [
        pytest.param({"mail": "ignore"}, 1.0, id="mode"),
        pytest.param({"mail": ["to"]}, 1.0, id="key"),
        pytest.param({"mail": ["to", "body"]}, 0.0, id="keys"),
        pytest.param({"mail": ["options.cc"]}, 1.0, id="path"),
        pytest.param({"mail": ["options.html"]}, 0.0, id="path that differs"),
        pytest.param({"mail": ["bcc"]}, 1.0, id="absent from both"),
        pytest.param({"mail": ["extra"]}, 0.0, id="absent from the expected"),
        pytest.param({"other": "ignore"}, 0.0, id="another tool"),
    ],
)
def test_tool_args_overrides_the_mode_for_one_tool(
    tool_args: Mapping[str, Any], value: float
) -> None:
    wanted = {"to": "a", "body": "x", "options": {"cc": ["c"], "html": True}}
    given = {"to": "a", "body": "y", "options": {"cc": ["c"], "html": False}, "extra": 1}

    score = judge([{"name": "mail", "args": wanted}], [call("mail", given)], tool_args=tool_args)

    assert score.value == value


@pytest.mark.parametrize("copies", [1, 5], ids=["tested", "indexed"])
@pytest.mark.parametrize(
    ("wanted", "given", "value"),
    [
        ({"to": None}, {}, 1.0),
        ({}, {"to": None}, 1.0),
        ({"to": None}, {"to": None}, 1.0),
        ({"to": None}, {"to": 0}, 0.0),
        ({"to": {"$absent": True}}, {"to": None}, 0.0),
    ],
)
def test_in_a_list_of_keys_null_is_the_same_as_no_such_key(
    wanted: Mapping[str, Any], given: Mapping[str, Any], value: float, copies: int
) -> None:
    expected = [{"name": "mail", "args": wanted}] * copies
    calls: list[str | ToolCall] = [call("mail", given)] * copies

    assert judge(expected, calls, tool_args={"mail": ["to"]}).value == value


@pytest.mark.parametrize("args", ["exact", "subset", "superset"])
def test_matchers_work_in_every_mode(args: str) -> None:
    wanted = {"q": {"$regex": "^cat"}, "limit": {"$range": [1, 10]}, "page": {"$absent": True}}
    expected = [{"name": "search", "args": wanted}]

    assert judge(expected, [call("search", {"q": "cats", "limit": 5})], args=args).value == 1.0
    assert judge(expected, [call("search", {"q": "dogs", "limit": 5})], args=args).value == 0.0
    paged = call("search", {"q": "cats", "limit": 5, "page": 2})
    assert judge(expected, [paged], args=args).value == 0.0


def test_two_matchers_for_the_same_argument_are_kept_apart() -> None:
    expected = [{"name": "f", "args": {"q": {"$regex": text}}} for text in ("^a", "^b")]

    assert judge(expected, [call("f", {"q": "a1"}), call("f", {"q": "b1"})]).value == 1.0
    assert judge(expected, [call("f", {"q": "a1"}), call("f", {"q": "a2"})]).value == 0.0


def test_pairing_is_not_first_fit() -> None:
    wide, narrow = {"name": "f", "args": {"a": 1}}, {"name": "f", "args": {"a": 1, "b": 2}}
    calls: list[str | ToolCall] = [call("f", {"a": 1, "b": 2}), call("f", {"a": 1})]

    assert judge([wide, narrow], calls, mode="any_order", args="superset").value == 1.0


@pytest.mark.parametrize(
    ("mode", "value"),
    [
        ("exact", 2 * 1 / (2 * 1 + 2 + 1)),
        ("in_order", 2 * 1 / (2 * 1 + 1)),
        ("any_order", 1.0),
        ("unordered", 2 * 2 / (2 * 2 + 1)),
        ("subset", 2 * 2 / (2 * 2 + 1)),
    ],
)
def test_partial_is_an_f1_in_which_only_what_the_mode_forbids_costs(
    mode: str, value: float
) -> None:
    assert judge(["a", "b"], ["b", "x", "a"], mode=mode, partial=True).value == pytest.approx(value)


def test_the_edit_script_leads_from_the_calls_made_to_those_expected() -> None:
    expected = ["auth", {"name": "search", "args": {"q": "cats", "limit": 5}}, "book"]
    calls: list[str | ToolCall] = ["auth", "log", call("search", {"q": "dogs", "page": 1})]

    score = judge(expected, calls)

    assert score.details["edit_script"] == [
        {"op": "keep", "tool": "auth", "expected": 1, "actual": 1},
        {"op": "drop", "tool": "log", "expected": None, "actual": 2},
        {
            "op": "change",
            "tool": "search",
            "expected": 2,
            "actual": 3,
            "keys": ["q", "limit", "page"],
        },
        {"op": "add", "tool": "book", "expected": 3, "actual": None},
    ]
    assert score.reason == (
        "1 of 3 expected calls found (exact); to match: drop log (call 2), "
        "change search (call 3: q, limit, page), add book (expected call 3)"
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("exact", [("add", "a"), ("keep", "b"), ("drop", "x"), ("drop", "a")]),
        ("in_order", [("add", "a"), ("keep", "b")]),
        ("any_order", [("keep", "b"), ("keep", "a")]),
        ("unordered", [("keep", "b"), ("drop", "x"), ("keep", "a")]),
        ("subset", [("keep", "b"), ("drop", "x"), ("keep", "a")]),
    ],
)
def test_the_edit_script_leaves_out_what_the_mode_forgives(
    mode: str, expected: list[tuple[str, str]]
) -> None:
    assert ops(judge(["a", "b"], ["b", "x", "a"], mode=mode)) == expected


def test_changes_are_found_in_any_order() -> None:
    expected = [{"name": "a", "args": {"n": 1}}, {"name": "b", "args": {"n": 2}}]
    calls: list[str | ToolCall] = [call("b", {"n": 3}), call("a", {"n": 4})]

    assert ops(judge(expected, calls, mode="unordered")) == [("change", "b"), ("change", "a")]


def keys_to_change(score: Score) -> dict[int, tuple[int, list[str]]]:
    return {
        edit["actual"]: (edit["expected"], edit["keys"])
        for edit in score.details["edit_script"]
        if edit["op"] == "change"
    }


@pytest.mark.parametrize("mode", ["any_order", "unordered"])
def test_in_any_order_the_nearest_calls_are_changed(mode: str) -> None:
    expected = [{"name": "a", "args": {"n": n, "x": n, "y": n}} for n in (1, 2)]
    calls: list[str | ToolCall] = [
        call("a", {"n": 2, "x": 2, "y": 9}),
        call("a", {"n": 1, "x": 9, "y": 9}),
    ]

    assert keys_to_change(judge(expected, calls, mode=mode)) == {1: (2, ["y"]), 2: (1, ["x", "y"])}


def test_in_order_the_nearest_call_is_changed() -> None:
    expected = [{"name": "a", "args": {"n": 1, "x": 1}}]
    calls: list[str | ToolCall] = [call("a", {"n": 7, "x": 7}), call("a", {"n": 1, "x": 7})]

    assert keys_to_change(judge(expected, calls)) == {2: (1, ["x"])}


@pytest.mark.parametrize("mode", ["exact", "unordered"])
def test_as_many_calls_as_possible_are_changed(mode: str) -> None:
    expected = [{"name": "a", "args": {"n": n, "x": 0}} for n in range(3)]
    calls: list[str | ToolCall] = [call("a", {"n": 2, "x": 1}), call("a", {"n": 9}), "a"]

    assert ops(judge(expected, calls, mode=mode)) == [("change", "a")] * 3


@pytest.mark.parametrize("mode", ["exact", "unordered"])
def test_of_very_many_calls_the_first_left_over_is_changed(mode: str) -> None:
    expected = [{"name": "a", "args": {"n": n}} for n in range(30)]
    calls: list[str | ToolCall] = [call("a", {"n": n}) for n in range(100, 130)]

    changes = keys_to_change(judge(expected, calls, mode=mode))

    assert changes == {n: (n, ["n"]) for n in range(1, 31)}


def test_a_long_reason_is_cut_and_names_no_values() -> None:
    calls: list[str | ToolCall] = [call(f"t{i}", {"key": "secret"}) for i in range(8)]

    reason = judge([{"name": "t0", "args": {"key": "private"}}], calls).reason

    assert reason.endswith("drop t4 (call 5), 3 more")
    assert "secret" not in reason
    assert "private" not in reason


@pytest.mark.parametrize("mode", MODES)
def test_an_incomplete_trajectory_is_skipped(mode: str) -> None:
    made = trajectory(["a"], whole=False, closed_by="idle")

    outcome = TrajectoryMatch(expected=["a"], mode=mode).evaluate(made)

    assert isinstance(outcome, Skip)
    assert outcome.code == "incomplete"


def test_unrecorded_arguments_that_would_decide_are_skipped() -> None:
    match = TrajectoryMatch(expected=[{"name": "search", "args": {"q": "cats"}}])

    outcome = match.evaluate(trajectory(["search"], dialect="traceloop"))

    assert outcome == Skip(
        "arguments_unrecorded",
        "arguments of search were not recorded: set TRACELOOP_TRACE_CONTENT to true",
    )


@pytest.mark.parametrize(
    ("expected", "calls", "settings"),
    [
        pytest.param(["search"], ["search"], {}, id="no arguments expected"),
        pytest.param(
            [{"name": "search", "args": {"q": 1}}], ["search", "log"], {}, id="fails anyway"
        ),
        pytest.param(
            [{"name": "search", "args": {"q": 1}}], ["search"], {"args": "ignore"}, id="ignored"
        ),
        pytest.param(
            [{"name": "search", "args": {"q": 1}}],
            ["search", call("search", {"q": 1})],
            {"mode": "any_order"},
            id="another call fits",
        ),
    ],
)
def test_unrecorded_arguments_that_decide_nothing_are_scored(
    expected: list[Any], calls: list[str | ToolCall], settings: dict[str, Any]
) -> None:
    assert judge(expected, calls, **settings).value in (0.0, 1.0)


def test_attempts_that_failed_can_be_left_out() -> None:
    calls: list[str | ToolCall] = [call("a", error="timeout"), "a"]

    assert judge(["a"], calls).value == 0.0
    assert judge(["a"], calls, attempts="succeeded").value == 1.0


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        pytest.param({}, "expected", id="no expectation"),
        pytest.param({"expected": [], "mode": "strict"}, "mode", id="unknown mode"),
        pytest.param({"expected": [], "args": "approx"}, "args", id="unknown argument mode"),
        pytest.param({"expected": [{"args": {}}]}, "expected.0.name", id="no name"),
        pytest.param({"expected": [""]}, "expected.0.name", id="empty name"),
        pytest.param(
            {"expected": [{"name": "a", "args": {"q": {"$rgex": ""}}}]}, "args", id="matcher"
        ),
        pytest.param({"expected": [], "tool_args": {"a": "all"}}, "tool_args.a", id="override"),
        pytest.param({"expected": [], "tool_args": {"a": []}}, "tool_args.a", id="no keys"),
        pytest.param({"expected": [], "ordered": True}, "ordered", id="unknown field"),
    ],
)
def test_bad_settings_name_their_place(settings: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TrajectoryMatch.model_validate(settings)

    assert place in ".".join(map(str, caught.value.errors()[0]["loc"]))


def test_camel_case_is_read() -> None:
    match = TrajectoryMatch.model_validate({"expected": ["a"], "toolArgs": {"a": "ignore"}})

    assert match.tool_args == {"a": "ignore"}
