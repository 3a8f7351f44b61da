"""What holds for every trajectory and every expectation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from otel_eval.evaluators import BUILT_IN, Evaluator, parse
from otel_eval.evaluators.matching import (
    EqualTo,
    align,
    align_weighted,
    assign,
    equal,
    key,
    lcs,
    lcs_of_groups,
    pair,
)
from otel_eval.model import UNRECORDED, ModelCall, Score, Skip, Tool, ToolCall, Trajectory
from tests.conftest import trajectory

law = settings(deadline=None, max_examples=100)

# Few tools, keys and values, so that calls often agree and often nearly agree.
tools = st.sampled_from("abc")
values = st.sampled_from([0, 1, 1.0, True, None, "x", [1], {"k": 1}])
arguments = st.dictionaries(st.sampled_from("pqr"), values, max_size=3)
matchers = st.sampled_from([{"$any": True}, {"$range": [0, 1]}, {"$absent": True}, {"$in": [1]}])
expected_arguments = st.dictionaries(st.sampled_from("pqr"), values | matchers, max_size=3)
recorded = st.builds(
    ToolCall,
    name=tools,
    arguments=arguments,
    output=values,
    error=st.none() | st.none() | st.just("timeout"),
)
partly_recorded = st.builds(
    ToolCall,
    name=tools,
    arguments=arguments | st.just(UNRECORDED),
    output=values | st.just(UNRECORDED),
    error=st.none() | st.none() | st.just("timeout"),
)
model_calls = st.builds(ModelCall, input_tokens=st.none() | st.integers(0, 50))
offered = st.builds(
    Tool, name=tools, parameters=st.sampled_from([None, {}, {"required": ["p"]}, {"type": "bad"}])
)


def trajectories(calls: st.SearchStrategy[ToolCall]) -> st.SearchStrategy[Trajectory]:
    return st.builds(
        trajectory,
        st.lists(calls, max_size=7),
        model_calls=st.lists(model_calls, max_size=3),
        available_tools=st.lists(offered, max_size=3),
        end_ns=st.integers(0, 10**10),
    )


def named(name: str, field: str, content: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.fixed_dictionaries({name: tools, field: content}), min_size=1, max_size=5)


bounds = st.tuples(st.sampled_from(["=", "==", "!=", ">", ">=", "<", "<="]), st.integers(0, 3))
steps = tools | st.lists(tools, min_size=1, max_size=3)
modes = st.sampled_from(["exact", "in_order", "any_order", "unordered", "subset"])
argument_modes = st.sampled_from(["exact", "subset", "superset", "ignore"])
overrides = st.dictionaries(tools, argument_modes | st.just(["p"]), max_size=2)
globs = st.lists(tools | st.sampled_from(["*", "[ab]", "/^c/"]), min_size=1, max_size=2)
limits = st.integers(0, 5)
FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "tool-call-count": {"tool_calls_count": st.dictionaries(tools, bounds, min_size=1)},
    "tool-call-order": {"tool_calls_order": st.lists(steps, min_size=1, max_size=5)},
    "tool-call-args": {
        "tool_calls": named("name", "args", expected_arguments),
        "subset": st.booleans(),
    },
    "tool-call-output": {"tool_outputs": named("name", "output", values)},
    "tool-call-accuracy": {"expected": named("tool", "args", arguments)},
    "trajectory-match": {
        "expected": named("name", "args", expected_arguments) | st.just([]),
        "mode": modes,
        "args": argument_modes,
        "tool_args": overrides,
        "partial": st.booleans(),
    },
    "tool-allowlist": {"allowed": globs, "forbidden": globs, "required": globs},
    "tool-error-rate": {"tools": globs},
    "tool-loop": {"max_repeats": st.integers(1, 3), "ignore": st.none() | globs},
    "tool-budget": {"max_calls": limits, "max_duration": limits, "max_tokens": limits},
    "tool-args-schema": {"schemas": st.none() | st.just({"a": {"required": ["p"]}})},
}
STRICT = ("tool-call-count", "tool-call-order", "tool-call-args", "tool-call-output")
PAIRING = {
    "tool-call-args": "tool_calls",
    "tool-call-output": "tool_outputs",
    "tool-call-accuracy": "expected",
}


def settings_of(type_id: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(type_id), **FIELDS[type_id]})


def evaluators(type_id: str) -> st.SearchStrategy[Evaluator]:
    attempts = st.fixed_dictionaries({"attempts": st.sampled_from(["all", "succeeded"])})
    return st.builds(lambda own, more: parse({**own, **more}), settings_of(type_id), attempts)


def value(evaluator: Evaluator, judged: Trajectory) -> float | None:
    outcome = evaluator.evaluate(judged)
    return outcome.value if isinstance(outcome, Score) else None


def test_every_deterministic_evaluator_is_under_these_laws() -> None:
    judges = {"tool-selection-accuracy", "tool-parameter-accuracy", "trajectory-judge"}

    assert set(FIELDS) == set(BUILT_IN) - judges


@pytest.mark.parametrize("type_id", FIELDS)
@law
@given(data=st.data(), judged=trajectories(partly_recorded), whole=st.booleans())
def test_scores_lie_between_0_and_1_and_have_a_reason(
    type_id: str, data: st.DataObject, judged: Trajectory, whole: bool
) -> None:
    evaluator = data.draw(evaluators(type_id))

    outcome = evaluator.evaluate(replace(judged, whole=whole))

    assert outcome.reason
    if isinstance(outcome, Score):
        assert 0 <= outcome.value <= 1


@pytest.mark.parametrize("type_id", FIELDS)
@law
@given(data=st.data(), judged=trajectories(partly_recorded))
def test_a_whole_trajectory_never_skips_as_incomplete(
    type_id: str, data: st.DataObject, judged: Trajectory
) -> None:
    outcome = data.draw(evaluators(type_id)).evaluate(judged)

    assert not isinstance(outcome, Skip) or outcome.code != "incomplete"


@pytest.mark.parametrize("type_id", sorted(set(FIELDS) - {"tool-budget", "tool-args-schema"}))
@law
@given(data=st.data(), judged=trajectories(recorded))
def test_what_is_whole_and_recorded_skips_only_for_want_of_calls(
    type_id: str, data: st.DataObject, judged: Trajectory
) -> None:
    outcome = data.draw(evaluators(type_id)).evaluate(judged)

    assert not isinstance(outcome, Skip) or outcome.code == "no_tool_calls"


@pytest.mark.parametrize("type_id", STRICT)
@law
@given(data=st.data(), judged=trajectories(recorded))
def test_strict_scores_at_most_as_much(
    type_id: str, data: st.DataObject, judged: Trajectory
) -> None:
    own = data.draw(settings_of(type_id))
    strict, loose = parse({**own, "strict": True}), parse({**own, "strict": False})

    strict_value, loose_value = value(strict, judged), value(loose, judged)

    assert strict_value is not None
    assert loose_value is not None
    assert strict_value <= loose_value


@pytest.mark.parametrize("type_id", PAIRING)
@law
@given(data=st.data(), judged=trajectories(partly_recorded))
def test_the_order_of_expected_items_changes_no_score(
    type_id: str, data: st.DataObject, judged: Trajectory
) -> None:
    own = data.draw(settings_of(type_id))
    field = PAIRING[type_id]
    shuffled = {**own, field: data.draw(st.permutations(own[field]))}

    assert value(parse(own), judged) == value(parse(shuffled), judged)


@law
@given(data=st.data(), judged=trajectories(recorded))
def test_exact_implies_in_order_implies_any_order(data: st.DataObject, judged: Trajectory) -> None:
    own = data.draw(settings_of("trajectory-match"))

    exact, in_order, any_order = (
        value(parse({**own, "mode": mode}), judged) for mode in ("exact", "in_order", "any_order")
    )

    assert exact is not None
    assert in_order is not None
    assert any_order is not None
    assert exact <= in_order <= any_order


@law
@given(data=st.data(), judged=trajectories(recorded))
def test_partial_is_1_exactly_where_the_trajectory_matches(
    data: st.DataObject, judged: Trajectory
) -> None:
    own = data.draw(settings_of("trajectory-match"))
    partial, whole = parse({**own, "partial": True}), parse({**own, "partial": False})

    assert (value(partial, judged) == 1.0) == (value(whole, judged) == 1.0)


@law
@given(judged=trajectories(recorded), mode=modes, args=argument_modes)
def test_every_trajectory_matches_itself(judged: Trajectory, mode: str, args: str) -> None:
    expected = [
        {"name": call.name, "args": {name: {"$literal": each} for name, each in given_args.items()}}
        for call in judged.tool_calls
        if isinstance(given_args := call.arguments, dict)
    ]
    evaluator = parse(
        {"type": "trajectory-match", "expected": expected, "mode": mode, "args": args}
    )

    assert value(evaluator, judged) == 1.0


@law
@given(data=st.data(), judged=trajectories(partly_recorded))
def test_a_score_stands_whatever_the_unrecorded_arguments_were(
    data: st.DataObject, judged: Trajectory
) -> None:
    evaluator = parse(data.draw(settings_of("trajectory-match")))
    filled = [
        ToolCall(
            name=call.name,
            arguments=data.draw(arguments) if call.arguments is UNRECORDED else call.arguments,
        )
        for call in judged.tool_calls
    ]

    outcome = evaluator.evaluate(judged)

    if isinstance(outcome, Score):
        assert value(evaluator, trajectory(filled)) == outcome.value


@law
@given(judged=trajectories(recorded), data=st.data())
def test_the_edit_script_accounts_for_every_call(judged: Trajectory, data: st.DataObject) -> None:
    own = data.draw(settings_of("trajectory-match"))
    outcome = parse({**own, "mode": "exact"}).evaluate(judged)

    assert isinstance(outcome, Score)
    script = outcome.details["edit_script"]
    made = [edit["actual"] for edit in script if edit["actual"]]
    wanted = [edit["expected"] for edit in script if edit["expected"]]
    assert made == list(range(1, len(judged.tool_calls) + 1))
    assert wanted == list(range(1, len(own["expected"]) + 1))


class TestMatching:
    @law
    @given(left=st.lists(tools, max_size=12), right=st.lists(tools, max_size=12))
    def test_lcs_agrees_with_a_plain_dynamic_programme(
        self, left: list[str], right: list[str]
    ) -> None:
        found = lcs(left, right)

        assert len(found) == plain_lcs(left, right, lambda a, b: float(a == b))
        assert is_subsequence(found, left)
        assert is_subsequence(found, right)

    @law
    @given(
        groups=st.lists(st.lists(tools, min_size=1, max_size=3), max_size=4),
        actual=st.lists(tools, max_size=10),
    )
    def test_lcs_of_groups_is_the_best_over_all_orders(
        self, groups: list[list[str]], actual: list[str]
    ) -> None:
        orders: list[list[str]] = [[]]
        for group in groups:
            orders = [[*head, *tail] for head in orders for tail in set(permutations(group))]

        found = lcs_of_groups(groups, actual)

        best = max(plain_lcs(order, actual, lambda a, b: float(a == b)) for order in orders)
        assert len(found) == best
        assert is_subsequence(found, actual)

    @law
    @given(masks=st.lists(st.integers(0, 127), max_size=7))
    def test_pair_agrees_with_brute_force(self, masks: list[int]) -> None:
        found = pair(masks)

        assert all(masks[i] >> j & 1 for i, j in found.items())
        assert len(set(found.values())) == len(found)
        assert len(found) == brute_force([[float(m >> j & 1) for j in range(7)] for m in masks])

    @law
    @given(data=st.data(), rows=st.integers(0, 7), columns=st.integers(0, 7))
    def test_assign_agrees_with_brute_force(
        self, data: st.DataObject, rows: int, columns: int
    ) -> None:
        row = st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=columns, max_size=columns)
        weights = data.draw(st.lists(row, min_size=rows, max_size=rows))

        found = assign(weights)

        assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)
        assert sum(weights[i][j] for i, j in found) == pytest.approx(brute_force(weights))

    @law
    @given(masks=st.lists(st.integers(0, 255), max_size=8))
    def test_align_agrees_with_a_plain_dynamic_programme(self, masks: list[int]) -> None:
        found = align(masks, 8)

        assert all(masks[i] >> j & 1 for i, j in found)
        assert is_monotone(found)
        best = plain_lcs(range(len(masks)), range(8), lambda i, j: float(masks[i] >> j & 1))
        assert len(found) == best

    @law
    @given(weights=st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=5, max_size=5)))
    def test_align_weighted_agrees_with_a_plain_dynamic_programme(
        self, weights: list[list[float]]
    ) -> None:
        found = align_weighted(len(weights), 5, lambda i, j: weights[i][j])

        assert is_monotone(found)
        best = plain_lcs(range(len(weights)), range(5), lambda i, j: weights[i][j])
        assert sum(weights[i][j] for i, j in found) == pytest.approx(best)

    @law
    @given(left=values, right=values, other=values)
    def test_json_equality_is_an_equivalence_and_keys_follow_it(
        self, left: Any, right: Any, other: Any
    ) -> None:
        assert equal(left, left)
        assert equal(left, right) == equal(right, left) == (key(left) == key(right))
        assert not (equal(left, right) and equal(right, other)) or equal(left, other)


def plain_lcs(
    left: Sequence[Any], right: Sequence[Any], weight: Callable[[Any, Any], float]
) -> float:
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left, start=1):
        for j, b in enumerate(right, start=1):
            best[i][j] = max(best[i - 1][j], best[i][j - 1], best[i - 1][j - 1] + weight(a, b))
    return best[-1][-1]


def brute_force(weights: Sequence[Sequence[float]]) -> float:
    """The best total over all one-to-one pairings, row by row over the columns that are taken."""
    totals = {0: 0.0}
    for row in weights:
        after = dict(totals)
        for taken, total in totals.items():
            for j, weight in enumerate(row):
                if not taken >> j & 1:
                    with_j = taken | 1 << j
                    after[with_j] = max(after.get(with_j, 0.0), total + weight)
        totals = after
    return max(totals.values())


def is_subsequence(part: Sequence[str], full: Sequence[str]) -> bool:
    rest = iter(full)
    return all(name in rest for name in part)


def is_monotone(pairs: Sequence[tuple[int, int]]) -> bool:
    return all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


JSON = st.recursive(
    values | st.floats() | st.sampled_from([False, 0.0, (1,), {"k": True}]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(tools, inner, max_size=2),
    max_leaves=5,
)


@law
@given(JSON, JSON)
@example({"a": [1]}, {"a": [True]})
@example({"a": [False]}, {"a": [0]})
@example([1], [1.0])
@example([(0,)], [[0]])
def test_comparing_with_one_value_is_json_equality(value: Any, other: Any) -> None:
    assert EqualTo(value)(other) == equal(value, other)
    assert EqualTo(value)(value)
