"""What a configuration asks to be alerted about, in the terms of Prometheus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from otel_eval.config import Config
from otel_eval.quantities import to_bytes
from otel_eval.rule import Alert, Rule

DEFAULTS: Final = Alert(pass_rate=0.9, drop=0.1)
"""For rules without an `alert` block; a block that names no threshold gets these two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What is told apart: the labels of a recorded series, and the first part of its name."""

    labels: tuple[str, ...]

    @property
    def prefix(self) -> str:
        return "_".join(self.labels)

    @property
    def by(self) -> str:
        return f"by ({', '.join(self.labels)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Thresholds, and the rule that has them; None stands for every rule."""

    alert: Alert
    rule: str | None = None

    @property
    def test(self) -> str:
        """The label test that picks the rule's series; empty where it is all of them."""
        return "" if self.rule is None else f"rule={quoted(self.rule)}"

    @property
    def selector(self) -> str:
        return f"{{{self.test}}}" if self.test else ""

    @property
    def labels(self) -> dict[str, str]:
        """Tells the rules of Prometheus apart that are alike but for the watched rule."""
        return {} if self.rule is None else {"rule": self.rule}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    configured: tuple[str, ...]
    watches: tuple[Watch, ...]
    limits: dict[str, int]
    """What the sidecar may hold, by the option that says so."""

    @classmethod
    def of(cls, config: Config) -> Self:
        grouping = config.grouping
        return cls(
            configured=tuple(config.emit.metrics.labels),
            watches=_watches(config.rules),
            limits={
                "max_open_traces": grouping.max_open_traces,
                "max_open_sessions": grouping.max_open_sessions,
                "max_buffer_mib": to_bytes(grouping.max_buffer_mib),
            },
        )

    @property
    def rule_level(self) -> Level:
        return Level(labels=("agent", "rule", *self.configured))

    @property
    def evaluator_level(self) -> Level:
        return Level(labels=("agent", "rule", "evaluator", *self.configured))

    @property
    def skip_level(self) -> Level:
        """Skips by code do not carry the configured labels."""
        return Level(labels=("agent", "rule", "evaluator"))


def _watches(rules: Sequence[Rule] | None) -> tuple[Watch, ...]:
    if rules is None:
        return (Watch(alert=DEFAULTS),)
    return tuple(Watch(alert=_thresholds(rule.alert), rule=rule.name) for rule in rules)


def _thresholds(alert: Alert | None) -> Alert:
    if alert is None:
        return DEFAULTS
    if alert.pass_rate is None and alert.drop is None:
        given = {"pass_rate": DEFAULTS.pass_rate, "drop": DEFAULTS.drop}
        return alert.model_copy(update=given)
    return alert


def quoted(text: str) -> str:
    """A string of PromQL."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'
