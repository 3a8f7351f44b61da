"""Instructions per span of the whole pipeline, counted by callgrind: the same on every machine.

What a change costs shows here even where times are too noisy to tell. The stored count is of the
Python and the protobuf that it names; with others it is shown, but not compared.
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
from typing import Any, Final

import google.protobuf

from tests.benchmarks.rows import Row
from tests.benchmarks.workload import SPANS_PER_REQUEST

STORED: Final = Path(__file__).with_name("instructions.json")
MOST_GROWTH: Final = 1.05
FEW, MANY = 4, 16
_COUNT: Final = re.compile(r"Collected : (\d+)")
_PROGRAM: Final = f"""
import gc, sys
from tests.benchmarks.pipeline import score
from otel_eval.sinks.prometheus import PrometheusSink
from tests.benchmarks.workload import Traces, floor
gc.disable()
count = int(sys.argv[2])
bodies = Traces().bodies(2 * {MANY})
run = floor if sys.argv[1] == "floor" else lambda bodies: score(bodies, PrometheusSink())
run(bodies[-{FEW}:])
run(bodies[:count])
"""


def rows(_quick: bool) -> Iterator[Row]:
    if shutil.which("valgrind") is None:
        yield Row(what="instructions per span, whole pipeline", note="valgrind is not installed")
        return
    counted, least = _per_span("pipeline"), _per_span("floor")
    note = f"{counted:,.0f}, floor {least:,.0f}"
    yield Row(
        what="instructions per span, whole pipeline",
        against="floor",
        value=counted / least,
        note=note,
    )
    stored = json.loads(STORED.read_text())
    if stored["with"] != _versions():
        yield Row(what="instructions per span", note=f"stored with {stored['with']}")
        return
    yield Row(
        what="instructions per span, whole pipeline",
        against="last stored result",
        value=counted / stored["instructions_per_span"],
        goal=MOST_GROWTH,
        note=f"{stored['instructions_per_span']:,.0f} stored",
    )


def store() -> None:
    """Run as a program: makes what is now the standard."""
    counted = round(_per_span("pipeline"))
    STORED.write_text(json.dumps({"instructions_per_span": counted, "with": _versions()}) + "\n")
    print(STORED.read_text(), end="")


def _versions() -> dict[str, Any]:
    return {"python": platform.python_version(), "protobuf": google.protobuf.__version__}


def _per_span(what: str) -> float:
    """Two runs of different length, so that what comes before and after is left out."""
    running = [_start(what, count) for count in (FEW, MANY)]
    few, many = (_finish(each) for each in running)
    return (many - few) / ((MANY - FEW) * SPANS_PER_REQUEST)


def _start(what: str, count: int) -> subprocess.Popen[str]:
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [*tool, sys.executable, "-c", _PROGRAM, what, str(count)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def _finish(running: subprocess.Popen[str]) -> int:
    _, told = running.communicate()
    found = _COUNT.search(told)
    assert found, told
    return int(found.group(1))


if __name__ == "__main__":
    store()
