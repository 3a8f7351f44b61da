"""Plug-ins: one is out of order, one knows no more than half."""

from otel_eval.model import Trajectory


def raises(_trajectory: Trajectory) -> bool:
    raise RuntimeError("out of order")


def half(_trajectory: Trajectory) -> float:
    return 0.5
