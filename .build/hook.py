"""Builds the wheel with what every span passes through compiled, where that can be done.

That is what is written in C, and the modules named in pyproject.toml, which are ordinary Python and
compiled by mypyc. Without a C compiler or the headers of Python the wheel is made without them, and
does the same things more slowly. An editable install never has the modules compiled, so that what
is edited is what runs.

OTEL_EVAL_PURE=1: compile nothing. OTEL_EVAL_COMPILED=1: fail where something cannot be compiled.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def is_set(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")


class Compile(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if is_set("OTEL_EVAL_PURE"):
            return
        self.work = Path(tempfile.mkdtemp(prefix="otel-eval-build-"))
        # The wheel is written later, and that may fail without a word to this hook.
        atexit.register(shutil.rmtree, self.work, ignore_errors=True)
        # In a copy, so that nothing is left behind where somebody works.
        others = shutil.ignore_patterns(".*", "__pycache__")
        shutil.copytree(Path(self.root, "otel_eval"), self.work / "otel_eval", ignore=others)
        found = self.compile("extensions")
        if version != "editable":
            found |= self.compile("modules", *self.config["modules"])
        if found:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"].update(found)

    def compile(self, what: str, *modules: str) -> dict[str, str]:
        """What was compiled: each file, and its place in the wheel."""
        folder = self.work / what
        script = Path(self.root, ".build", "compile.py")
        done = subprocess.run(
            [sys.executable, str(script), str(folder), *modules],
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if done.returncode == 0:
            files = [each for each in folder.rglob("*") if each.suffix in (".so", ".pyd")]
            return {str(each): each.relative_to(folder).as_posix() for each in files}
        if is_set("OTEL_EVAL_COMPILED"):
            raise RuntimeError(f"the {what} cannot be compiled:\n{done.stdout}")
        why = (done.stdout.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        self.app.display_warning(f"otel_eval is built without the compiled {what}: {why}")
        return {}
