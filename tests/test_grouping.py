import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_eval.grouping import MIB, Closed, Grouper, Limits, Place, place_of
from otel_eval.model import Span
from tests.conftest import span

LIMITS = Limits(settle=10, local_settle=30, idle=300, max_age=3600)


def grouper(**limits: float) -> Grouper[str, Span]:
    return Grouper(replace(LIMITS, **limits))


def put(groups: Grouper[str, Span], each: Span, now: float, *, size: int = 0) -> bool:
    return groups.add(
        each.trace_id,
        each,
        now,
        item_id=each.span_id,
        size=size,
        parent=each.parent_id,
        place=place_of(each),
    )


def root(trace: str = "t", span_id: str = "root") -> Span:
    return span(trace_id=trace, span_id=span_id)


def child(span_id: str = "child", parent: str = "root", trace: str = "t", **fields: object) -> Span:
    return span(trace_id=trace, span_id=span_id, parent_id=parent, parent_remote=False, **fields)


def entry(span_id: str = "entry", parent: str = "far", trace: str = "t", **fields: object) -> Span:
    remote = {"parent_remote": True, "kind": "server", **fields}
    return span(trace_id=trace, span_id=span_id, parent_id=parent, **remote)


def only(closed: list[Closed[str, Span]]) -> Closed[str, Span]:
    assert len(closed) == 1
    return closed[0]


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        pytest.param({}, "root", id="no parent"),
        pytest.param({"parent_id": "p", "parent_remote": False}, "inner", id="local parent"),
        pytest.param({"parent_id": "p"}, "inner", id="parent of unknown place"),
        pytest.param({"parent_id": "p", "kind": "server"}, "entry", id="server, not said"),
        pytest.param({"parent_id": "p", "parent_remote": True}, "entry", id="remote parent"),
        pytest.param(
            {"parent_id": "p", "parent_remote": True, "kind": "client"}, "exit", id="remote client"
        ),
    ],
)
def test_a_span_is_placed_by_its_parent(fields: dict[str, object], place: Place) -> None:
    assert place_of(span(**fields)) == place


def test_a_trace_closes_by_root_once_settled() -> None:
    groups = grouper()
    put(groups, child(), 0)
    put(groups, root(), 5)

    assert groups.due(14.9) == []
    closed = only(groups.due(15))

    assert (closed.by, closed.part, closed.whole, closed.late) == ("root", 1, True, False)
    assert [each.span_id for each in closed.items] == ["child", "root"]


def test_each_span_that_arrives_restarts_the_settling() -> None:
    groups = grouper()
    put(groups, root(), 0)
    put(groups, child(), 9)

    assert groups.due(18) == []
    assert only(groups.due(19)).by == "root"


def test_without_a_root_a_trace_closes_by_idle_and_is_not_whole() -> None:
    groups = grouper()
    put(groups, child(), 0)

    assert groups.due(299) == []
    closed = only(groups.due(300))

    assert (closed.by, closed.whole) == ("idle", False)


def test_a_local_root_waits_for_local_settle() -> None:
    groups = grouper()
    put(groups, child(parent="entry"), 0)
    put(groups, entry(), 1)

    assert groups.due(30.9) == []
    closed = only(groups.due(31))

    assert (closed.by, closed.whole) == ("root", True)


def test_a_further_local_root_waits_for_its_own_local_settle() -> None:
    groups = grouper()
    put(groups, entry("first"), 0)
    put(groups, entry("second"), 20)

    assert groups.due(49) == []
    assert only(groups.due(50)).by == "root"


def test_a_client_span_with_a_remote_parent_is_no_local_root() -> None:
    groups = grouper()
    put(groups, entry(kind="client"), 0)

    assert groups.due(299) == []
    assert only(groups.due(300)).by == "idle"


def test_a_local_root_does_not_close_a_trace_that_lacks_a_local_parent() -> None:
    groups = grouper()
    put(groups, entry(), 0)
    put(groups, child(parent="missing"), 0)

    assert only(groups.due(300)).by == "idle"


def test_a_missing_local_parent_makes_a_trace_not_whole() -> None:
    groups = grouper()
    put(groups, child(parent="missing"), 0)
    put(groups, root(), 0)

    closed = only(groups.due(10))

    assert (closed.by, closed.whole) == ("root", False)


def test_a_missing_remote_parent_leaves_a_trace_whole() -> None:
    groups = grouper()
    put(groups, entry(), 0)
    put(groups, root(), 0)

    assert only(groups.due(10)).whole


def test_something_lost_makes_a_trace_not_whole() -> None:
    groups = grouper()
    groups.lose("before")
    put(groups, root("before"), 0)
    put(groups, root("during"), 0)
    groups.lose("during")

    assert [closed.whole for closed in groups.due(10)] == [False, False]


def test_a_span_that_is_lost_runs_no_longer() -> None:
    groups = grouper()
    groups.started("t", "root", 0)
    groups.started("t", "child", 0)
    put(groups, child(), 1)
    groups.lose("t", "root")

    assert groups.due(300) == []
    assert only(groups.due(301)).by == "idle"


def test_a_group_of_which_everything_was_lost_is_gone_and_not_whole_when_it_comes_again() -> None:
    groups = grouper()
    groups.started("t", "child", 0)
    groups.lose("t", "child")

    assert len(groups) == 0
    put(groups, root(), 1)
    assert not only(groups.due(11)).whole


def test_a_running_span_keeps_its_trace_open_past_idle() -> None:
    groups = grouper()
    groups.started("t", "root", 0)
    groups.started("t", "child", 0)
    put(groups, child(), 1000)

    assert groups.due(2000) == []
    put(groups, root(), 2000)
    closed = only(groups.due(2000))

    assert (closed.by, closed.whole) == ("root", True)


def test_with_starts_seen_a_local_root_closes_at_once() -> None:
    groups = grouper()
    groups.started("t", "entry", 0)
    put(groups, entry(), 1)

    assert only(groups.due(1)).by == "root"


def test_a_span_that_never_ends_holds_an_ended_root_only_for_idle() -> None:
    groups = grouper()
    groups.started("t", "root", 0)
    groups.started("t", "leak", 0)
    put(groups, root(), 1)

    assert groups.due(300) == []
    closed = only(groups.due(301))

    assert (closed.by, closed.whole) == ("root", False)


def test_a_start_that_is_told_after_its_end_holds_nothing_open() -> None:
    groups = grouper()
    put(groups, child(), 0)
    groups.started("t", "child", 0)
    put(groups, root(), 0)

    assert only(groups.due(10)).whole
    groups.started("t", "root", 11)
    assert len(groups) == 0


def test_what_runs_when_a_trace_is_full_still_holds_its_next_part_open() -> None:
    groups = grouper(max_items=1)
    groups.started("t", "root", 0)
    put(groups, child("a"), 1)
    put(groups, child("b"), 2)

    assert [closed.by for closed in groups.due(2_000)] == ["size"]
    put(groups, root(), 2_000)
    assert [(closed.by, closed.part) for closed in groups.due(2_000)] == [("size", 2), ("root", 2)]


def test_memory_of_what_was_lost_is_bounded() -> None:
    groups = grouper(max_remembered=1)
    groups.lose("forgotten")
    groups.lose("kept")
    put(groups, root("forgotten"), 0)
    put(groups, root("kept"), 0)

    assert [closed.whole for closed in groups.due(10)] == [True, False]


def test_a_group_of_running_spans_only_leaves_without_a_trace() -> None:
    groups = grouper()
    groups.started("t", "root", 0)

    assert groups.due(3600) == []
    assert len(groups) == 0


def test_an_old_trace_closes_by_age() -> None:
    groups = grouper()
    for minute in range(60):
        put(groups, child(f"child{minute}"), minute * 60)

    assert groups.due(3599) == []
    assert only(groups.due(3600)).by == "age"


def test_a_trace_over_its_number_of_spans_closes_by_size() -> None:
    groups = grouper(max_items=3)
    for number in range(3):
        put(groups, child(f"child{number}"), 0)

    assert groups.due(0) == []
    put(groups, root(), 0)

    assert only(groups.due(0)).by == "size"
    closed = only(groups.due(10))
    assert (closed.part, closed.whole, closed.after) == (2, False, "size")


def test_a_trace_over_its_bytes_closes_by_size() -> None:
    groups = grouper(max_bytes=100)
    put(groups, child(), 0, size=60)
    put(groups, root(), 0, size=60)

    assert only(groups.due(0)).by == "size"
    assert groups.bytes == 60


def test_over_capacity_the_least_recently_active_trace_closes() -> None:
    groups = grouper(max_open=2)
    put(groups, child("a", trace="a"), 0)
    put(groups, child("b", trace="b"), 1)
    put(groups, child("a2", trace="a"), 2)
    put(groups, child("c", trace="c"), 3)

    closed = only(groups.due(3))

    assert (closed.key, closed.by) == ("b", "capacity")


def test_over_the_buffer_the_least_recently_active_trace_closes() -> None:
    groups = grouper()
    put(groups, child("a", trace="a"), 0, size=5 * MIB)
    put(groups, child("b", trace="b"), 1, size=5 * MIB)

    groups.ease(8 * MIB)

    assert [(closed.key, closed.by) for closed in groups.ready()] == [("a", "capacity")]
    assert groups.bytes == 5 * MIB


def test_flush_closes_ended_roots_and_leaves_the_others() -> None:
    groups = grouper()
    put(groups, root("ended"), 0)
    put(groups, entry(trace="entered"), 0)
    put(groups, child(trace="going on"), 0)

    assert {closed.key: closed.by for closed in groups.flush()} == {
        "ended": "root",
        "entered": "root",
    }
    assert "going on" in groups


def test_drain_closes_everything_as_shutdown() -> None:
    groups = grouper()
    put(groups, root("a"), 0)
    put(groups, child(trace="b"), 0)

    assert [closed.by for closed in groups.drain()] == ["shutdown", "shutdown"]
    assert (len(groups), groups.bytes) == (0, 0)


def test_a_repeated_span_counts_once_while_open_and_after_closing() -> None:
    groups = grouper()

    assert put(groups, root(), 0)
    assert not put(groups, root(), 1)
    only(groups.due(10))
    assert not put(groups, root(), 11)
    assert len(groups) == 0


def test_spans_after_closing_without_a_root_of_their_own_are_late() -> None:
    groups = grouper()
    put(groups, root(), 0)
    groups.due(10)
    put(groups, child(), 20)

    closed = only(groups.due(320))

    assert (closed.late, closed.after) == (True, "root")


def test_spans_after_closing_with_a_root_of_their_own_are_the_next_part() -> None:
    groups = grouper()
    put(groups, root(), 0)
    groups.due(10)
    put(groups, child(), 20)
    groups.due(320)
    put(groups, entry(), 400)

    closed = only(groups.due(430))

    assert (closed.late, closed.part, closed.whole) == (False, 2, True)


def test_a_part_after_one_that_was_cut_off_is_not_whole() -> None:
    groups = grouper()
    put(groups, child(), 0)
    groups.due(300)
    put(groups, root(), 400)

    closed = only(groups.due(410))

    assert (closed.part, closed.by, closed.whole) == (2, "root", False)


def test_a_session_that_goes_on_after_closing_is_the_next_part() -> None:
    sessions: Grouper[str, str] = Grouper(Limits(idle=600, max_age=24 * 3600))
    sessions.add("s", "morning", 0, item_id="1")

    (first,) = sessions.due(600)
    sessions.add("s", "back after 12 minutes", 720, item_id="2")
    (second,) = sessions.due(1320)

    assert (first.by, first.part, first.late) == ("idle", 1, False)
    assert (second.by, second.part, second.late) == ("idle", 2, False)


def test_memory_of_closed_groups_is_bounded() -> None:
    groups = grouper(max_remembered=2)
    for number in range(5):
        put(groups, root(str(number)), 0)
    groups.drain()

    assert put(groups, root("0"), 1)
    assert not put(groups, root("4"), 1)


def test_checks_of_groups_that_closed_early_do_not_pile_up() -> None:
    groups = grouper()
    for number in range(10_000):
        now = number / 100
        put(groups, child(trace=str(number)), now)
        put(groups, root(str(number)), now)
        groups.due(now)

    assert len(groups) <= 1_001
    assert len(groups._heap) < 4_000


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "start", "due", "flush", "lose", "ease", "drain"]),
        st.sampled_from("abc"),
        st.integers(0, 12),
        st.sampled_from(["root", "entry", "exit", "inner", "loose"]),
        st.floats(0, 400),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, 4), st.integers(1, 3))
def test_every_item_leaves_exactly_once(
    steps: list[tuple[str, str, int, Place, float]], max_items: int, max_open: int
) -> None:
    limits = replace(LIMITS, max_items=max_items, max_open=max_open, max_bytes=40)
    groups: Grouper[str, tuple[str, int]] = Grouper(limits)
    given_: Counter[tuple[str, int]] = Counter()
    left: Counter[tuple[str, int]] = Counter()
    now = 0.0

    for action, key, number, place, passed in steps:
        now += passed
        match action:
            case "add":
                fields = {"parent": str(number // 2), "place": place, "size": number}
                if groups.add(key, (key, number), now, item_id=str(number), **fields):
                    given_[key, number] += 1
            case "start":
                groups.started(key, str(number), now)
            case "lose":
                groups.lose(key)
            case "ease":
                groups.ease(number)
                left.update(item for closed in groups.ready() for item in closed.items)
            case "due":
                left.update(item for closed in groups.due(now) for item in closed.items)
            case "flush":
                left.update(item for closed in groups.flush() for item in closed.items)
            case "drain":
                left.update(item for closed in groups.drain() for item in closed.items)
    left.update(item for closed in groups.drain() for item in closed.items)

    assert left == given_
    assert all(times == 1 for times in given_.values())
    assert (len(groups), groups.bytes) == (0, 0)


@given(st.permutations([root(), child("a"), child("b", "a"), child("c", "b"), entry("d", "c")]))
def test_arrival_order_does_not_matter(spans: list[Span]) -> None:
    groups = grouper()
    for each in spans:
        put(groups, each, 0)

    closed = only(groups.due(10))

    assert (closed.by, closed.whole, len(closed.items)) == ("root", True, 5)


def seconds_of_due(open_groups: int) -> float:
    """Of this thread's own time: the machine may have other things to do."""
    groups = grouper()
    for number in range(open_groups):
        put(groups, child(trace=str(number)), 0)
    return min(seconds_of_200_calls(groups) for _ in range(5))


def seconds_of_200_calls(groups: Grouper[str, Span]) -> float:
    started = time.thread_time()
    for now in range(200):
        groups.due(now)
    return time.thread_time() - started


def test_due_costs_what_closes_and_not_what_is_open() -> None:
    assert seconds_of_due(50_000) < 20 * seconds_of_due(50)
