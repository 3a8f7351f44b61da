"""Builds the wheel with the modules of the hot path compiled, where that can be done.

They are ordinary Python, compiled by mypyc from the same files. Without a C compiler or the headers
of Python the wheel is made without, and does the same things more slowly. An editable install is
never compiled, so that what is edited is what runs.

OTEL_EVAL_PURE=1: do not compile. OTEL_EVAL_COMPILED=1: fail where it cannot be done.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent


class Compile(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get("OTEL_EVAL_PURE"):
            return
        self.work = Path(tempfile.mkdtemp(prefix="otel-eval-build-"))
        found = self.compile()
        if found:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"].update(found)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "work"):
            shutil.rmtree(self.work, ignore_errors=True)

    def compile(self) -> dict[str, str]:
        """Each compiled file, and its place in the wheel; in a copy, so that none is left here."""
        source, built = self.work / "source", self.work / "built"
        for package in ("otel_eval",):
            shutil.copytree(Path(self.root) / package, source / package)
        command = [sys.executable, str(HERE / "compile.py"), str(built), *self.config["modules"]]
        done = subprocess.run(
            command, cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode == 0:
            return {str(each): str(each.relative_to(built)) for each in built.rglob("*.so")} | {
                str(each): str(each.relative_to(built)) for each in built.rglob("*.pyd")
            }
        if os.environ.get("OTEL_EVAL_COMPILED"):
            raise RuntimeError(f"the hot path cannot be compiled:\n{done.stdout}")
        reason = done.stdout.strip().splitlines()[-1:] or ["no reason given"]
        self.app.display_warning(f"otel_eval is built without compiled modules: {reason[0]}")
        return {}
