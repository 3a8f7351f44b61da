"""Prometheus rules for a configuration: Config in, rule groups and their promtool tests out.

The files in `deploy/prometheus/` are what this gives for a configuration without a file.
"""

from otel_eval.alerts.documents import prometheus_rule, rule_file
from otel_eval.alerts.pipeline import pipeline_alerts
from otel_eval.alerts.plan import Plan
from otel_eval.alerts.quality import quality_alerts
from otel_eval.alerts.recording import recordings
from otel_eval.alerts.rules import PIPELINE, RECORDING, SCORES, Group
from otel_eval.alerts.scenarios import promtool_tests
from otel_eval.config import Config

__all__ = ["groups", "prometheus_rule", "promtool_tests", "rule_file"]


def groups(config: Config) -> list[Group]:
    """Prometheus runs groups side by side, so recordings that need each other share one."""
    plan = Plan.of(config)
    return [
        Group(name=RECORDING, rules=recordings(plan)),
        Group(name=SCORES, rules=quality_alerts(plan)),
        Group(name=PIPELINE, rules=pipeline_alerts(plan)),
    ]
