"""One table of everything, measured side by side: `python -m tests.benchmarks`."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from tests.benchmarks.rows import Row, machine, result, table

SECTIONS: Final = (
    "processor",
    "pipeline",
    "sidecar",
    "evaluators",
    "holding",
    "startup",
    "instructions",
)


def rows(section: str, quick: bool) -> Iterator[Row]:
    """What a section needs may be missing: then that is its line of the table."""
    try:
        module = import_module(f"tests.benchmarks.{section}")
    except (ModuleNotFoundError, SystemExit) as error:
        yield Row(what=section, note=str(error))
        return
    yield from module.rows(quick)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all of them")
    parser.add_argument("--quick", action="store_true", help="once and small: does it still run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the result is written to")
    given = parser.parse_args()
    found: list[Row] = []
    for section in given.sections or SECTIONS:
        print(f"{section} …", file=sys.stderr, flush=True)
        found += rows(section, given.quick)
    print(table(found))
    print("\n" + ", ".join(f"{name}: {value}" for name, value in machine().items()))
    if given.json:
        given.json.write_text(json.dumps(result(found), indent=2, ensure_ascii=False) + "\n")
    return 0


def what_is_installed() -> int:
    """Again in a process that finds the tests, but not the sources beside them: they are never
    compiled, and what people run is what is installed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tests").symlink_to(Path(__file__).parents[1])
        environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": folder}
        command = [sys.executable, "-m", "tests.benchmarks", *sys.argv[1:]]
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main() if sys.flags.safe_path else what_is_installed())
