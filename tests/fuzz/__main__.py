"""Feed every way in with what is almost right: `python -m tests.fuzz --seconds 1200`.

Prints what was executed, the lines of decode and extract that it reached, and what was found.
Fails where something was found, or where less than 95 % of these lines were reached.
"""

import argparse
import sys
from pathlib import Path
from random import randrange
from typing import Final

from coverage import Coverage

LEAST: Final = 95.0
SHOWN: Final = 2_000
"""So much of an input is printed too: where this runs, what was kept may not be for long."""
PACKAGES: Final = ("otel_eval/decode", "otel_eval/extract")


def main() -> int:
    given = _arguments()
    # Before anything of ours is imported: what a module does then counts too.
    coverage = Coverage(
        data_file=None, config_file=False, include=[f"{each}/*" for each in PACKAGES]
    )
    coverage.start()
    from tests.fuzz.fuzzing import Result, fuzz
    from tests.fuzz.surfaces import SURFACES

    surfaces = [each for each in SURFACES if not given.surfaces or each.name in given.surfaces]
    results: list[Result] = []
    for surface in surfaces:
        seconds = given.seconds / len(surfaces)
        results.append(fuzz(surface, seconds=seconds, seed=given.seed, findings=given.findings))
        found = results[-1]
        rate = found.executions / max(found.seconds, 0.001)
        print(f"{found.surface:14} {found.executions:9,} executions, {rate:6,.0f}/s", flush=True)
        if found.finding:
            print(found.finding, flush=True)
        if found.kept:
            print(f"{found.kept}: {found.kept.read_bytes()[:SHOWN]!r}", flush=True)
    coverage.stop()
    covered = _covered(coverage)
    findings = sum(bool(each.finding) for each in results)
    executions = sum(each.executions for each in results)
    print(
        f"seed {given.seed}: {executions:,} executions, {findings} findings, "
        f"{covered:.1f} % of the lines reached"
    )
    return int(findings > 0 or (covered < LEAST and not given.surfaces))


def _covered(coverage: Coverage) -> float:
    return coverage.report(file=sys.stdout, show_missing=True, skip_covered=True, precision=1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("surfaces", nargs="*", help="only these ways in; all of them unless given")
    parser.add_argument("--seconds", type=float, default=40.0, help="for all of them together")
    parser.add_argument("--seed", type=int, default=randrange(1 << 32), help="another each time")
    parser.add_argument(
        "--findings", type=Path, default=Path("findings"), help="where inputs that do harm are kept"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
