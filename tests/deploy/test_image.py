"""The Dockerfile, and what compose makes of the image. No container engine is at hand."""

import shutil
import subprocess
import sys
from pathlib import Path

from otel_eval.config import load
from tests.deploy.files import DEPLOY, documents

SERVICES = documents(DEPLOY / "compose.yaml")[0]["services"]


def test_the_dockerfile_is_linted() -> None:
    """hadolint comes with the development dependencies, beside this Python."""
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint is not None

    done = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout


def test_the_image_runs_as_nobody_in_particular_and_is_watched() -> None:
    text = (DEPLOY / "Dockerfile").read_text()

    assert text.count("\nFROM ") == 2
    assert "\nUSER 10001:10001\n" in text
    assert "\nHEALTHCHECK " in text


def test_compose_has_everything_on_a_read_only_root() -> None:
    wanted = {"agent", "collector", "otel-eval", "prometheus", "alertmanager", "grafana"}

    assert wanted <= SERVICES.keys()
    assert all(each["read_only"] for each in SERVICES.values())


def test_only_otel_eval_itself_is_asked_for_its_health() -> None:
    """The image brings a check that fails wherever it runs something else."""
    others = [each for each in SERVICES.values() if each["image"] == "otel-eval"]

    unasked = [each for each in others if each.get("healthcheck") == {"disable": True}]

    assert [each for each in others if each not in unasked] == [SERVICES["otel-eval"]]


def test_compose_mounts_what_is_there() -> None:
    mounts = [
        mount.split(":")[0] for each in SERVICES.values() for mount in each.get("volumes", ())
    ]

    missing = [path for path in mounts if path.startswith(".") and not (DEPLOY / path).exists()]

    assert missing == []


def test_the_configuration_for_containers_loads() -> None:
    config = load(DEPLOY / "otel-eval.yaml")

    assert config.receivers.otlp.grpc.endpoint == "0.0.0.0:4317"
