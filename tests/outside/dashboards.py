"""The queries of the shipped Grafana dashboard, as Grafana would send them."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "otel-eval.json"
VARIABLES = {"$__rate_interval": "20s", "$__range": "30s", "$agent": ".*", "$rule": ".*"}


@dataclass(frozen=True)
class Query:
    panel: str
    written: str
    legend: str

    @property
    def expression(self) -> str:
        text = self.written
        for name, value in VARIABLES.items():
            text = text.replace(name, value)
        return text

    @property
    def labels(self) -> set[str]:
        return set(re.findall(r"{{(\w+)}}", self.legend))


def queries() -> list[Query]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [
        Query(panel["title"], target["expr"], target["legendFormat"])
        for panel in panels
        for target in panel.get("targets", ())
    ]
