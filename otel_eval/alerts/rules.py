"""A recording rule, an alert rule, a group of them: what a Prometheus rule file holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from otel_eval.model import Json

RUNBOOK: Final = "https://github.com/otel-eval/otel-eval/blob/main/deploy/README.md"
INTERVAL: Final = "1m"
RECORDING, SCORES, PIPELINE = ORDER = (
    "otel-eval-recording",
    "otel-eval-scores",
    "otel-eval-pipeline",
)
"""The groups: what is recorded, what wakes someone about scores, and about the pipeline."""

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    record: str
    expr: str
    labels: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Json]:
        labels = {"labels": self.labels} if self.labels else {}
        return {"record": self.record, "expr": self.expr, **labels}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    alert: str
    expr: str
    for_seconds: float
    severity: str
    summary: str
    description: str
    labels: dict[str, str] = field(default_factory=dict)
    """Further labels, beside those that the expression leaves."""

    def document(self) -> dict[str, Json]:
        return {
            "alert": self.alert,
            "expr": self.expr,
            "for": duration(self.for_seconds),
            "labels": {"severity": self.severity, **self.labels},
            "annotations": self.annotations(),
        }

    def annotations(self) -> dict[str, str]:
        return {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": f"{RUNBOOK}#{self.alert.lower()}",
        }


AnyRule: TypeAlias = Recording | AlertRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    name: str
    rules: Sequence[AnyRule]

    def document(self) -> dict[str, Json]:
        rules = [rule.document() for rule in self.rules]
        return {"name": self.name, "interval": INTERVAL, "rules": rules}


def duration(seconds: float) -> str:
    """As Prometheus writes it, in whole units: 900 is 15m, 5400 is 90m."""
    milliseconds = round(seconds * 1000)
    if milliseconds % 1000:
        return f"{milliseconds}ms"
    whole = milliseconds // 1000
    size, unit = next((each for each in _UNITS if whole % each[0] == 0), (1, "s"))
    return f"{whole // size}{unit}" if whole else "0s"
