"""One way in, fed for a while or for so many times; what goes wrong is made small and kept."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from pathlib import Path
from random import Random
from traceback import extract_tb, format_exception
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.inputs import CORPUS
from tests.fuzz.surfaces import Check, Surface

ROUND: Final = 50
"""So many inputs at a time: between rounds the clock is looked at."""
SHRINK_SECONDS: Final = 20.0


@dataclass(slots=True)
class Result:
    """What became of it."""

    surface: str
    executions: int = 0
    seconds: float = 0.0
    finding: str = ""
    """The traceback, if there was one."""
    kept: Path | None = None
    """The smallest input that was found to do it."""


def fuzz(surface: Surface, *, seconds: float, seed: int, findings: Path) -> Result:
    """Until time is up, or something is found."""
    result, began, rounds = Result(surface.name), time.monotonic(), count(seed)
    try:
        with surface.checking() as check:
            for body in corpus(surface.name):
                _count(result, check, body)
            while time.monotonic() - began < seconds:
                feed(surface, lambda body: _count(result, check, body), ROUND, next(rounds))
    # Whatever it is: that is what is looked for.
    except Exception as error:
        result.finding = "".join(format_exception(error))
        if (body := getattr(error, "fuzzed", None)) is not None:
            result.kept = _keep(findings / surface.name, smallest(surface, body))
    result.seconds = time.monotonic() - began
    return result


def feed(surface: Surface, check: Check, times: int, seed: int) -> None:
    """Made-up inputs: the same ones for the same seed."""

    @hypothesis.seed(seed)
    @settings(
        max_examples=times,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(st.randoms(use_true_random=True))
    def run(random: Random) -> None:
        check(surface.make(random))

    run()


def corpus(name: str) -> list[bytes]:
    """Inputs that were worth keeping: each did harm once, or reaches what chance seldom does."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def _count(result: Result, check: Callable[[bytes], None], body: bytes) -> None:
    result.executions += 1
    try:
        check(body)
    # To be told with what did it.
    except Exception as error:
        error.fuzzed = body  # type: ignore[attr-defined]
        raise


def smallest(surface: Surface, body: bytes) -> bytes:
    """What is left of it when all is taken out that is not needed to fail in the same way."""
    wanted, size, ends = _failure(surface, body), len(body) // 2, time.monotonic() + SHRINK_SECONDS
    while size and wanted:
        start = 0
        while start < len(body) and time.monotonic() < ends:
            shorter = body[:start] + body[start + size :]
            if _failure(surface, shorter) == wanted:
                body = shorter
            else:
                start += size
        size //= 2
    return body


def _failure(surface: Surface, body: bytes) -> str:
    """Where and how it fails, in short; none where it does not, or only with others before it."""
    try:
        with surface.checking() as check:
            check(body)
    # As above.
    except Exception as error:
        return f"{type(error).__name__} at {extract_tb(error.__traceback__)[-1].lineno}"
    return ""


def _keep(folder: Path, body: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / blake2b(body, digest_size=6).hexdigest()
    path.write_bytes(body)
    return path
