from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_eval.integers import DIGITS, has_long_integer, look_for_long_integer

LONG = "9" * DIGITS
texts = st.lists(st.text("09", max_size=2 * DIGITS) | st.text(max_size=3)).map("".join)
each_way = pytest.mark.parametrize("look", [has_long_integer, look_for_long_integer])


@each_way
@pytest.mark.parametrize("before", range(2 * DIGITS))
@pytest.mark.parametrize("after", [0, 1, DIGITS])
def test_a_long_integer_is_found_wherever_it_stands(
    look: Callable[[str], bool], before: int, after: int
) -> None:
    assert look("x" * before + LONG + "x" * after)


@each_way
@pytest.mark.parametrize("text", ["", "7", LONG[1:], f'{{"a": {LONG[1:]}, "b": {LONG[1:]}}}'])
def test_shorter_ones_are_not(look: Callable[[str], bool], text: str) -> None:
    assert not look(text)


@pytest.mark.parametrize("around", ["", "é", "漢", "\U0001f642", "\ud800"], ids=ascii)
@given(texts)
def test_a_compiled_look_finds_what_python_finds(around: str, text: str) -> None:
    """In texts of every width; the digits of other scripts are none."""
    text = f"{around}{text}\u0663{around}"

    assert has_long_integer(text) is look_for_long_integer(text)
