import pytest

from otel_eval.integers import DIGITS, has_long_integer

LONG = "9" * DIGITS


@pytest.mark.parametrize("before", range(2 * DIGITS))
@pytest.mark.parametrize("after", [0, 1, DIGITS])
def test_a_long_integer_is_found_wherever_it_stands(before: int, after: int) -> None:
    assert has_long_integer("x" * before + LONG + "x" * after)


@pytest.mark.parametrize("text", ["", "7", LONG[1:], f'{{"a": {LONG[1:]}, "b": {LONG[1:]}}}'])
def test_shorter_ones_are_not(text: str) -> None:
    assert not has_long_integer(text)
