"""Who appears in promtool tests: agents and instances in trouble, and what must be said of them."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from otel_eval.alerts.pipeline import pipeline_alerts
from otel_eval.alerts.plan import Level, Plan, Watch
from otel_eval.alerts.quality import percent, watch_alerts
from otel_eval.alerts.rules import AlertRule
from otel_eval.alerts.series import Labels, Story, series

JOB: Final = "otel-eval"
SPANS_PER_MINUTE: Final = 10
TROUBLED: Final = "judge-1:9464"
"""The instance whose spans come late, are dropped and pile up; it goes on scoring."""
SILENT: Final = "judge-2:9464"
LEAST_FOR_QUIET: Final = 4
"""With fewer evaluations wanted than this, two bad traces are enough for an alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An alert that must fire, for these labels, with this value."""

    rule: AlertRule
    labels: Labels
    value: float
    baseline: str = "1.00"

    def document(self) -> dict[str, dict[str, str]]:
        texts = {name: self._render(text) for name, text in self.rule.annotations().items()}
        return {
            "exp_labels": {**self.labels, "severity": self.rule.severity},
            "exp_annotations": texts,
        }

    def _render(self, template: str) -> str:
        """What Prometheus makes of the few template forms that our alerts use."""
        text = re.sub(r"{{ with .*?{{ end }}", self.baseline, template)
        text = re.sub(r"{{ \$labels\.(\w+) }}", lambda found: self.labels[found[1]], text)
        text = text.replace("{{ $value | humanizePercentage }}", percent(self.value))
        return re.sub(r'{{ \$value \| printf "(.*?)" }}', lambda found: found[1] % self.value, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    series: list[dict[str, str]]
    troubles: list[Trouble] = field(default_factory=list)


class Cast:
    """The agents of one watch."""

    def __init__(self, plan: Plan, watch: Watch, story: Story) -> None:
        self._plan = plan
        self._watch = watch
        self._story = story
        self._rules = {rule.alert: rule for rule in watch_alerts(plan, watch)}
        self._busy = math.ceil(watch.alert.min_evaluations / 30)

    def everyone(self) -> Iterator[Actor]:
        yield self.falling()
        yield self.raising()
        yield self.blind()
        if self._watch.alert.drop:
            yield self.sliding(self._watch.alert.drop)
        if self._watch.alert.min_evaluations >= LEAST_FOR_QUIET:
            yield self.quiet()

    def falling(self) -> Actor:
        """Every trace passes, then every trace fails."""
        return Actor(
            series=self._judged("falling", self._busy),
            troubles=[
                *self._of_rule("falling", "OtelEvalPassRateLow", 0.0),
                *self._of_rule("falling", "OtelEvalFailuresBurnFast", 1.0),
                *self._of_rule("falling", "OtelEvalFailuresBurnSlow", 1.0),
                *self._of_evaluator("falling", "OtelEvalScoreDrop", 0.0),
            ],
        )

    def steady(self) -> Actor:
        """The same of an agent that has enough evaluations in a day, never in an hour."""
        rate = self._watch.alert.min_evaluations / 4 / 60
        return Actor(
            series=self._judged("steady", rate),
            troubles=[
                *self._of_rule("steady", "OtelEvalPassRateLow", 0.0),
                *self._of_evaluator("steady", "OtelEvalScoreDrop", 0.0),
            ],
        )

    def sliding(self, drop: float) -> Actor:
        """Every trace still passes, with a score that is only just too low."""
        score = max(0.0, math.floor(100 - 110 * drop) / 100)
        labels = self._labels("sliding")
        counts = self._story.counter(well=self._busy, ill=self._busy)
        sums = self._story.counter(well=self._busy, ill=self._busy * score)
        return Actor(
            series=[
                series("otel_eval_evaluations_total", {**labels, "verdict": "pass"}, counts),
                series("otel_eval_score_count", labels, counts),
                series("otel_eval_score_sum", labels, sums),
            ],
            troubles=self._of_evaluator("sliding", "OtelEvalScoreDrop", score),
        )

    def quiet(self) -> Actor:
        """Two bad traces in an hour, of an agent that did nothing else."""
        labels, story = self._labels("quiet"), self._story
        counts = f"0+0x{story.good} 1 2+0x{story.bad + story.after - 2}"
        return Actor(
            series=[
                series("otel_eval_evaluations_total", {**labels, "verdict": "fail"}, counts),
                series("otel_eval_evaluations_total", {**labels, "verdict": "error"}, counts),
                series("otel_eval_evaluations_total", {**labels, "verdict": "skip"}, counts),
                series("otel_eval_skips_total", self._skip_labels("quiet"), counts),
                series("otel_eval_score_count", labels, counts),
                series("otel_eval_score_sum", labels, f"0+0x{story.good + story.bad}"),
            ]
        )

    def raising(self) -> Actor:
        """The evaluator raises about every trace."""
        labels = self._labels("raising")
        return Actor(
            series=[
                self._verdict(labels, "pass", well=self._busy, ill=0),
                self._verdict(labels, "error", well=0, ill=self._busy),
            ],
            troubles=self._of_evaluator("raising", "OtelEvalEvaluatorErrors", 1.0),
        )

    def blind(self) -> Actor:
        """The arguments are no longer recorded."""
        labels = self._labels("blind")
        skips = self._story.counter(well=0, ill=self._busy)
        kept = self._plan.skip_level
        return Actor(
            series=[
                self._verdict(labels, "pass", well=self._busy, ill=0),
                self._verdict(labels, "skip", well=0, ill=self._busy),
                series("otel_eval_skips_total", self._skip_labels("blind"), skips),
            ],
            troubles=self._troubles("blind", "OtelEvalSkipShareHigh", kept, 1.0),
        )

    def _judged(self, agent: str, rate: float) -> list[dict[str, str]]:
        labels, counter = self._labels(agent), self._story.counter
        return [
            self._verdict(labels, "pass", well=rate, ill=0),
            self._verdict(labels, "fail", well=0, ill=rate),
            series("otel_eval_score_count", labels, counter(well=rate, ill=rate)),
            series("otel_eval_score_sum", labels, counter(well=rate, ill=0)),
        ]

    def _verdict(self, labels: Labels, verdict: str, *, well: float, ill: float) -> dict[str, str]:
        values = self._story.counter(well=well, ill=ill)
        return series("otel_eval_evaluations_total", {**labels, "verdict": verdict}, values)

    def _of_rule(self, agent: str, alert: str, value: float) -> list[Trouble]:
        return self._troubles(agent, alert, self._plan.rule_level, value)

    def _of_evaluator(self, agent: str, alert: str, value: float) -> list[Trouble]:
        return self._troubles(agent, alert, self._plan.evaluator_level, value)

    def _troubles(self, agent: str, alert: str, level: Level, value: float) -> list[Trouble]:
        """None where these thresholds are not watched."""
        if alert not in self._rules:
            return []
        labels = self._kept(agent, level.labels)
        return [Trouble(rule=self._rules[alert], labels=labels, value=value)]

    def _labels(self, agent: str) -> dict[str, str]:
        own = {
            "job": JOB,
            "instance": TROUBLED,
            "agent": agent,
            "rule": self._watch.rule or "default",
        }
        return {**own, "evaluator": "check", **dict.fromkeys(self._plan.configured, "here")}

    def _skip_labels(self, agent: str) -> dict[str, str]:
        kept = self._kept(agent, self._plan.skip_level.labels)
        return {"job": JOB, "instance": TROUBLED, **kept, "code": "arguments_unrecorded"}

    def _kept(self, agent: str, names: tuple[str, ...]) -> dict[str, str]:
        labels = self._labels(agent)
        return {name: labels[name] for name in names}


def instances(plan: Plan, story: Story) -> Iterator[Actor]:
    yield _overloaded(plan, story)
    yield _silent(plan, story)


def _overloaded(plan: Plan, story: Story) -> Actor:
    where = {"job": JOB, "instance": TROUBLED}
    lossy = story.counter(well=0, ill=SPANS_PER_MINUTE)
    full, shed = {**where, "reason": "queue_full"}, {**where, "reason": "shed"}
    over_http, over_grpc = {**full, "protocol": "http"}, {**full, "protocol": "grpc"}
    leaving = {**where, "reason": "shutdown", "protocol": "http"}
    always = story.counter(well=SPANS_PER_MINUTE, ill=SPANS_PER_MINUTE)
    most = plan.limits["max_open_traces"]
    in_15m = 15.0 * SPANS_PER_MINUTE
    limit = {**where, "limit": "max_open_traces"}
    return Actor(
        series=[
            series("otel_eval_spans_received_total", where, always),
            series("otel_eval_spans_late_total", where, lossy),
            series("otel_eval_spans_dropped_total", full, lossy),
            series("otel_eval_spans_unevaluated_total", shed, lossy),
            series("otel_eval_requests_refused_total", over_http, lossy),
            series("otel_eval_requests_refused_total", over_grpc, lossy),
            series("otel_eval_requests_refused_total", leaving, always),
            series("otel_eval_open_traces", where, story.gauge(well=0, ill=most)),
            series("otel_eval_journal_damaged_total", where, story.gauge(well=0, ill=1)),
        ],
        troubles=[
            told(plan, "OtelEvalSpansLate", labels=where, value=1.0),
            told(plan, "OtelEvalSpansDropped", labels=full, value=in_15m),
            told(plan, "OtelEvalSpansUnevaluated", labels=shed, value=in_15m),
            told(plan, "OtelEvalRequestsRefused", labels=full, value=2 * in_15m),
            told(plan, "OtelEvalNearCapacity", labels=limit, value=1.0),
            told(plan, "OtelEvalJournalDamaged", labels=where, value=1.0),
        ],
    )


def _silent(plan: Plan, story: Story) -> Actor:
    """Takes spans as ever, and scores none of them."""
    where = {"job": JOB, "instance": SILENT}
    labels = {**where, "agent": "unheard", "rule": "elsewhere", "evaluator": "check"}
    always = story.counter(well=SPANS_PER_MINUTE, ill=SPANS_PER_MINUTE)
    return Actor(
        series=[
            series("otel_eval_spans_received_total", where, always),
            series("otel_eval_score_count", labels, story.counter(well=1, ill=0)),
        ],
        troubles=[told(plan, "OtelEvalNothingScored", labels=where, value=60.0 * SPANS_PER_MINUTE)],
    )


def told(plan: Plan, alert: str, labels: Labels, value: float) -> Trouble:
    rule = next(rule for rule in pipeline_alerts(plan) if rule.alert == alert)
    return Trouble(rule=rule, labels=labels, value=value)
