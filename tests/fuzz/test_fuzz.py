"""What did harm once does none now, and a few inputs of every kind do none either.

`python -m tests.fuzz` does the same for as long as it is told to, and says how far it got.
"""

import pytest

from tests.fuzz.fuzzing import corpus, feed, smallest
from tests.fuzz.surfaces import SURFACES, Surface, plain

by_surface = pytest.mark.parametrize("surface", SURFACES, ids=lambda each: each.name)


@by_surface
@pytest.mark.filterwarnings("default")
def test_only_documented_errors_come_out(surface: Surface) -> None:
    with surface.checking() as check:
        for body in corpus(surface.name):
            check(body)
        feed(surface, check, times=8, seed=1)


def test_an_input_that_fails_is_made_small() -> None:
    def check(body: bytes) -> None:
        assert b"x" not in body or b"y" not in body

    surface = Surface("any", lambda _: b"", lambda: plain(check))

    assert smallest(surface, b"a lot x of text y around it") == b"xy"
