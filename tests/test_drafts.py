from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from sys import getrefcount

import pytest

from otel_eval.closed import Closed
from otel_eval.drafts import drafted, quick
from otel_eval.model import UNRECORDED, Evaluation, ModelCall, ToolCall, Trajectory

Quick = Callable[[type], Callable[..., object]]

WAYS = pytest.mark.parametrize("quick", [quick, drafted], ids=["compiled", "in Python"])


@WAYS
@pytest.mark.parametrize("record", [Closed, Evaluation, ModelCall, ToolCall, Trajectory])
def test_a_record_made_quickly_is_the_record(record: type, quick: Quick) -> None:
    fields = {name: name for name in record.__slots__}

    made = quick(record)(**fields)

    assert type(made) is record
    assert made == record(**fields)


@WAYS
def test_what_is_not_given_has_its_default(quick: Quick) -> None:
    made = quick(ToolCall)(name="search")

    assert made.arguments is UNRECORDED
    assert made == ToolCall(name="search")


@WAYS
def test_a_record_made_quickly_is_frozen_and_can_be_replaced(quick: Quick) -> None:
    made = quick(ToolCall)(name="search")

    with pytest.raises(FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    assert replace(made, name="other") == ToolCall(name="other")


@WAYS
def test_what_has_no_default_must_be_given(quick: Quick) -> None:
    with pytest.raises(TypeError, match="name"):
        quick(ToolCall)()


@WAYS
def test_fields_may_be_given_in_any_order(quick: Quick) -> None:
    made = quick(ToolCall)(end_ns=2, name="search", start_ns=1)

    assert made == ToolCall(name="search", start_ns=1, end_ns=2)


@WAYS
def test_what_is_no_field_is_refused(quick: Quick) -> None:
    with pytest.raises(TypeError, match="tool"):
        quick(ToolCall)(name="search", tool="search")


@WAYS
def test_fields_are_given_by_name(quick: Quick) -> None:
    with pytest.raises(TypeError):
        quick(ToolCall)("search")


@WAYS
def test_what_a_record_held_is_let_go_with_it(quick: Quick) -> None:
    held = ["kept"]
    before = getrefcount(held)

    made = quick(ToolCall)(name="search", arguments=held)
    during = getrefcount(held)
    del made

    assert during == before + 1
    assert getrefcount(held) == before
