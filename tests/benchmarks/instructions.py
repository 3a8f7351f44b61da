"""Instructions per span of the whole pipeline, counted by callgrind.

What a change costs shows here even where times are too noisy to tell. The floor is counted too:
another interpreter or protobuf moves both, so it is their ratio that is compared with the stored.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import google.protobuf

from tests.benchmarks.rows import Row, compiled
from tests.benchmarks.workload import SPANS_PER_REQUEST

STORED: Final = Path(__file__).with_name("instructions.json")
WHAT: Final = "instructions per span, whole pipeline"
MOST_GROWTH: Final = 1.1
FEW, MANY = 4, 12
Counts: TypeAlias = dict[str, Any]
"""Instructions per span of the pipeline and of the floor, and with which versions."""
_COUNT: Final = re.compile(r"Collected : (\d+)")
_RUNS: Final = {
    "pipeline": """
from otel_eval.sinks.prometheus import PrometheusSink
from tests.benchmarks.pipeline import score
run = lambda bodies: score(bodies, PrometheusSink())
""",
    "floor": "from tests.benchmarks.workload import floor as run\n",
}
_PROGRAM: Final = f"""
import gc, sys
from tests.benchmarks.workload import Traces
gc.disable()
bodies = Traces().bodies({FEW + MANY})
run(bodies[-{FEW}:])
run(bodies[:int(sys.argv[1])])
"""


def rows(_quick: bool) -> Iterator[Row]:
    if shutil.which("valgrind") is None:
        yield Row(what=WHAT, note="valgrind is not installed")
        return
    found = _count()
    yield Row(what=WHAT, against="floor", value=_ratio(found), note=_told(found))
    yield compared(found, json.loads(STORED.read_text()))


def compared(found: Counts, stored: Counts) -> Row:
    """How the ratio to the floor has grown since the stored result."""
    is_same = found["with"] == stored["with"]
    told = _told(stored)
    return Row(
        what=WHAT,
        against="last stored result",
        value=_ratio(found) / _ratio(stored),
        goal=MOST_GROWTH,
        note=told if is_same else f"{told}, with {_listed(stored['with'])}",
    )


def store() -> None:
    """Run as a program: makes what is now the standard."""
    STORED.write_text(json.dumps(_count()) + "\n")
    print(STORED.read_text(), end="")


def _count() -> Counts:
    counts = {what: round(_per_span(what)) for what in _RUNS}
    return {**counts, "with": _versions()}


def _ratio(counts: Counts) -> float:
    ratio: float = counts["pipeline"] / counts["floor"]
    return ratio


def _told(counts: Counts) -> str:
    return f"{counts['pipeline']:,}, floor {counts['floor']:,}"


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "protobuf": google.protobuf.__version__,
        "compiled": compiled(),
    }


def _per_span(what: str) -> float:
    """Two runs of different length, so that what comes before and after is left out."""
    running = [_start(what, count) for count in (FEW, MANY)]
    few, many = (_finish(each) for each in running)
    return (many - few) / ((MANY - FEW) * SPANS_PER_REQUEST)


def _start(what: str, count: int) -> subprocess.Popen[str]:
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [*tool, sys.executable, "-c", _RUNS[what] + _PROGRAM, str(count)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def _finish(running: subprocess.Popen[str]) -> int:
    _, told = running.communicate()
    found = _COUNT.search(told)
    assert found, told
    return int(found.group(1))


if __name__ == "__main__":
    store()
