from dataclasses import FrozenInstanceError, replace

import pytest

from otel_eval.closed import Closed
from otel_eval.drafts import quick
from otel_eval.model import UNRECORDED, Evaluation, ModelCall, ToolCall, Trajectory


@pytest.mark.parametrize("record", [Closed, Evaluation, ModelCall, ToolCall, Trajectory])
def test_a_record_made_quickly_is_the_record(record: type) -> None:
    fields = {name: name for name in record.__slots__}

    made = quick(record)(**fields)

    assert type(made) is record
    assert made == record(**fields)


def test_what_is_not_given_has_its_default() -> None:
    made = quick(ToolCall)(name="search")

    assert made.arguments is UNRECORDED
    assert made == ToolCall(name="search")


def test_a_record_made_quickly_is_frozen_and_can_be_replaced() -> None:
    made = quick(ToolCall)(name="search")

    with pytest.raises(FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    assert replace(made, name="other") == ToolCall(name="other")


def test_what_has_no_default_must_be_given() -> None:
    with pytest.raises(TypeError, match="name"):
        quick(ToolCall)()  # type: ignore[call-arg]
