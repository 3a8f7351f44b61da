"""Finds the programs that outside tests drive; `.ci/programs` installs them.

Call these in a test or a fixture, never while a module is imported. Where a program is absent the
test is skipped with the reason. The environment variable OTEL_EVAL_CI changes that: with `1` an
absent program is a failure, with `0` nothing is looked for and every outside test is skipped.
"""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest


def promtool() -> Path:
    return _command("promtool")


def prometheus() -> Path:
    return _command("prometheus")


def alertmanager() -> Path:
    """Debian prefixes the name."""
    return _command("prometheus-alertmanager", "alertmanager")


def chromium() -> Path:
    """`.ci/programs` installs it once a test module says `programs.chromium`."""
    return _command("chromium", "chromium-browser")


def valgrind() -> Path:
    return _command("valgrind")


def node() -> Path:
    return _command("node")


def node_modules() -> Path:
    """Holds the JavaScript OTLP exporters; scripts find them with NODE_PATH set to it."""
    _look_for("the JavaScript OTLP exporters")
    modules = _cache() / "node" / "node_modules"
    if not (modules / "@opentelemetry").is_dir():
        _absent("the JavaScript OTLP exporters")
    return modules


def collector() -> Path:
    """An OpenTelemetry Collector with the components of `.ci/collector.yaml`."""
    return _command("otelcol", under=_cache() / "collector")


def _command(*names: str, under: Path | None = None) -> Path:
    """The first of these commands: what `.ci/programs` built before what PATH has."""
    _look_for(names[0])
    path = os.pathsep.join(filter(None, [str(under or ""), os.environ.get("PATH", "")]))
    found = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    if found is None:
        _absent(names[0])
    return Path(found)


def _cache() -> Path:
    """Where `.ci/programs` keeps what it built."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "otel-eval-ci"


def _look_for(what: str) -> None:
    if os.environ.get("OTEL_EVAL_CI") == "0":
        pytest.skip(f"{what} is not looked for: OTEL_EVAL_CI=0")


def _absent(what: str) -> NoReturn:
    reason = f"{what} is not installed (.ci/programs installs it)"
    if os.environ.get("OTEL_EVAL_CI") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
