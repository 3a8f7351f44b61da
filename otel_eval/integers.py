"""Integers that a fast JSON parser would round."""

import re
from typing import Final

DIGITS: Final = 19
"""What has fewer fits into 64 bits."""

_DIGIT: Final = frozenset("0123456789")
_long_integer: Final = re.compile(rf"\d{{{DIGITS}}}").search


def has_long_integer(text: str) -> bool:
    """Whether 64 bits may be too few for an integer in the text: orjson makes a float of such.

    So many digits in a row cannot lie between two characters of every 19th, wherever one begins.
    Looking at those alone takes a tenth of the time, and that was more than it takes to parse the
    text; few texts have digits at both of two beginnings.
    """
    if _DIGIT.isdisjoint(text[DIGITS - 1 :: DIGITS]) or _DIGIT.isdisjoint(
        text[DIGITS // 2 :: DIGITS]
    ):
        return False
    return _long_integer(text) is not None
