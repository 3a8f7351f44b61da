"""What the types promise to those who write evaluators of their own."""

import subprocess
import sys
from pathlib import Path


def test_a_plug_in_passes_strict_checks() -> None:
    plugin = Path(__file__).with_name("plugin.py")
    # Errors of the package itself are the business of its own check.
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(plugin)]

    done = subprocess.run(command, capture_output=True, text=True, cwd=plugin.parents[2])

    assert done.returncode == 0, done.stdout
