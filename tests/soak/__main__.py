"""Hold a rate against a sidecar for a while: `python -m tests.soak --seconds 1800 --rate 10000`.

The sidecar is a process of its own, with a journal and a forward target, and without judges.
Fails where its memory is not flat after warm-up, where an identity does not hold, or where a span
that was acknowledged is not scored and forwarded in the end.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM
from statistics import quantiles
from typing import Any, Final

from tests.benchmarks.rows import machine
from tests.benchmarks.workload import RULE
from tests.sidecar.processes import Process, process
from tests.sidecar.running import config_of
from tests.soak.page import Page
from tests.soak.traffic import Sender, Target, target
from tests.soak.watch import Watch

PATIENCE_SECONDS: Final = 120.0
MAX_QUEUED: Final = 20_000
"""Spans beyond those that wait for their traces to settle; the engine takes three times as many."""


def main() -> int:
    given = _arguments()
    with tempfile.TemporaryDirectory() as folder, target() as (far, port):
        config = _config(given, port, Path(folder))
        with process(Path(folder), config) as sidecar:
            assert sidecar.ports is not None, sidecar.log
            watch = Watch(
                sidecar.pid,
                every=min(2.0, max(0.5, given.seconds / 300)),
                open_spans=lambda: Page(sidecar.page()).spans()["open"],
            )
            sender = Sender(sidecar.ports.grpc, rate=given.rate)
            sender.behind = lambda: watch.open_spans > sender.rate * given.settle + MAX_QUEUED
            sender.send(given.seconds)
            watch.stop()
            page = _settled(sidecar, far, sender.spans)
            sidecar.signal(SIGTERM)
            code = sidecar.exit_code()
    print(_summary(given, sender, watch, page))
    problems = list(_problems(sender, far, watch, page, code))
    print("\n".join(f"FAILED: {each}" for each in problems) or "all of it holds")
    return int(bool(problems))


def _config(given: argparse.Namespace, port: int, folder: Path) -> dict[str, Any]:
    journal = {} if given.no_journal else {"journal": {"path": str(folder / "journal")}}
    return config_of(
        rules=[RULE],
        grouping={"settle": f"{given.settle}s", "local_settle": f"{given.settle}s"},
        forward={"endpoint": f"http://127.0.0.1:{port}", "compression": "none"},
        **journal,
    )


def _settled(sidecar: Process, far: Target, spans: int) -> Page:
    """Once all is scored and forwarded, or nothing more can be expected."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        page = Page(sidecar.page())
        counted = page.spans()
        is_done = counted["scored"] >= spans <= far.spans and not counted["open"]
        if is_done or time.monotonic() > ends:
            return page
        time.sleep(0.5)


def _summary(given: argparse.Namespace, sender: Sender, watch: Watch, page: Page) -> str:
    hundredths = [1000 * each for each in quantiles(sender.latencies, n=100)]
    first, last = watch.ends()
    course = " ".join(f"{each:.0f}" for each in watch.course())
    lines = {
        "rate": f"{sender.rate:,.0f} spans/s of {given.rate:,.0f}, for {sender.took:.0f} s",
        "CPU": f"{watch.cores:.2f} cores, {1e6 * watch.cores / sender.rate:.0f} µs a span",
        "RSS": f"{first:.0f} MiB after warm-up, {last:.0f} MiB at the end; in between {course}",
        "acknowledged": f"p50 {hundredths[49]:.1f} ms, p99 {hundredths[98]:.1f} ms",
        "lag": f"p50 ≤ {page.lag(0.5):g} s, p99 ≤ {page.lag(0.99):g} s, settle {given.settle:g} s",
        "refused": ", ".join(f"{code} {n}" for code, n in sender.refused.items()) or "none",
        "spans": ", ".join(f"{name} {count}" for name, count in page.spans().items() if count),
        "machine": ", ".join(f"{name}: {value}" for name, value in machine().items()),
    }
    return "\n".join(f"{name:13}{text}" for name, text in lines.items())


def _problems(sender: Sender, far: Target, watch: Watch, page: Page, code: int) -> Iterator[str]:
    spans = page.spans()
    yield from page.broken()
    if not watch.is_flat:
        yield "the memory is not flat: from {:.0f} to {:.0f} MiB".format(*watch.ends())
    for name in ("received", "scored", "forwarded"):
        if spans[name] < sender.spans:
            yield f"{sender.spans} spans were acknowledged, {spans[name]} {name}"
    if far.spans < sender.spans:
        yield f"{sender.spans} spans were acknowledged, {far.spans} came to the target"
    if spans["dropped"]:
        yield f"{spans['dropped']} spans were dropped"
    if code:
        yield f"the sidecar ended with {code}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--rate", type=float, default=10_000.0, help="spans per second")
    parser.add_argument("--settle", type=float, default=10.0, help="grouping.settle, in seconds")
    parser.add_argument("--no-journal", action="store_true", help="without a journal")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
