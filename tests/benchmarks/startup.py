"""What it takes before the first span: import, help, a sidecar that is ready, and its memory."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from tests.benchmarks.rows import Row
from tests.sidecar.processes import process
from tests.sidecar.running import config_of


def rows(quick: bool) -> Iterator[Row]:
    times = 1 if quick else 7
    python = [sys.executable, "-c"]
    bare = _milliseconds([*python, "pass"], times)
    for what, command in (
        ("import otel_eval", [*python, "import otel_eval"]),
        ("otel-eval --help", [*python, "from otel_eval.cli import main; main(['--help'])"]),
    ):
        took = _milliseconds(command, times)
        note = f"{took:.0f} ms with the interpreter's own {bare:.0f}"
        yield Row(what=what, against="a bare interpreter", value=took - bare, unit="ms", note=note)
    yield from _sidecar(times)


def _milliseconds(command: Sequence[str], times: int) -> float:
    return 1000 * min(_cpu_seconds(command) for _ in range(times))


def _cpu_seconds(command: Sequence[str]) -> float:
    """Of a process of its own."""
    nowhere = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    child = os.posix_spawn(command[0], command, os.environ, file_actions=[nowhere])
    _, status, used = os.wait4(child, 0)
    assert status == 0, command
    return used.ru_utime + used.ru_stime


def _sidecar(times: int) -> Iterator[Row]:
    ready, resident = [], []
    for _ in range(times):
        began = perf_counter()
        with tempfile.TemporaryDirectory() as folder, process(Path(folder), config_of()) as sidecar:
            ready.append(perf_counter() - began)
            sidecar.page()
            resident.append(_resident_mib(sidecar.pid))
    yield Row(what="sidecar ready", value=1000 * min(ready), unit="ms", note="wall clock")
    yield Row(what="sidecar idle, resident memory", value=min(resident), unit="MiB")


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = next(line.split()[1] for line in lines if line.startswith("VmRSS"))
    return int(kib) / 1024
