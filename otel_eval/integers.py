"""Integers that a fast JSON parser would round."""

from collections.abc import Callable
from typing import Final

from otel_eval.native import NATIVE

DIGITS: Final = 19
"""What has fewer fits into 64 bits."""

_DIGIT: Final = frozenset("0123456789")
_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG: Final = b"0" * DIGITS


def look_for_long_integer(text: str) -> bool:
    """Whether 64 bits may be too few for an integer in the text: orjson makes a float of such.

    So many digits in a row cannot lie between two characters of every 19th: where none of these is
    a digit, which is so for most short texts, nothing else need be looked at. With every digit made
    a zero the rest is a search for one word: in 3 KB with many numbers it takes a tenth of the time
    that a regular expression takes.
    """
    if _DIGIT.isdisjoint(text[DIGITS - 1 :: DIGITS]):
        return False
    return _LONG in text.encode("utf-8", "surrogatepass").translate(_ZEROS)


has_long_integer: Final[Callable[[str], bool]] = (
    NATIVE.has_long_integer if NATIVE else look_for_long_integer
)
"""The same, compiled where that can be had."""
