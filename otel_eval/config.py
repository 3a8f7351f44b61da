"""A configuration file as the program uses it, and what is built from it.

The only module that knows every concrete class: front doors take what they need from here.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from otel_eval import evaluators
from otel_eval.document import Document, Problem, read
from otel_eval.engine import Grouping, Sink
from otel_eval.errors import ConfigError
from otel_eval.extract import Keys
from otel_eval.match import is_literal
from otel_eval.model import Json
from otel_eval.quantities import DURATION_SCHEMA, to_bytes
from otel_eval.rules import Rule, RuleSet, default_rules
from otel_eval.settings import (
    Admin,
    Emit,
    Extract,
    Forward,
    GroupingSettings,
    Journal,
    Judge,
    Log,
    Receivers,
    Section,
)
from otel_eval.sinks.event import ResultEvent
from otel_eval.sinks.instruments import Pipeline
from otel_eval.sinks.labels import Labels
from otel_eval.sinks.log_events import LogEventSink
from otel_eval.sinks.metrics import MetricsSink
from otel_eval.sinks.span_events import SpanEventSink
from otel_eval.validation import describe, known_part, parse_rules, validate

if TYPE_CHECKING:
    from otel_eval.judge.client import ModelJudge
    from otel_eval.sinks.prometheus import PrometheusSink

C = TypeVar("C", bound="Config")

STDIN: Final = "-"
ANSWERS_DEPEND_ON: Final = ("model", "base_url", "temperature", "redact", "max_input_chars")
"""Of the section `judge`; the rest is about cost and patience."""
DURATIONS: Final = (("Alert", "for"), ("ToolBudget", "max_duration"))
"""Fields of rules that may be written as `15m`, which their own schema does not say."""


class Config(Section):
    """Everything that can be configured; the defaults are what runs without a file."""

    receivers: Receivers = Receivers()
    admin: Admin = Admin()
    grouping: GroupingSettings = GroupingSettings()
    extract: Extract = Extract()
    rules: tuple[Rule, ...] | None = None
    """Default rules for every agent unless given; [] is no rules at all."""
    forward: Forward | None = None
    emit: Emit = Emit()
    journal: Journal | None = None
    judge: Judge = Judge()
    log: Log = Log()

    @classmethod
    def parse(cls, given: str | Mapping[str, Json], source: str = "") -> Self:
        """From YAML text, or from what such a text says; raises ConfigError with every problem."""
        document = read(given, source) if isinstance(given, str) else Document(source, dict(given))
        problems: list[Problem] = []
        config = _parse(cls, document.data, problems)
        told = {problem.place for problem in document.problems}
        every = document.problems + [each for each in problems if each.place not in told]
        if config is None or every:
            raise ConfigError(document.told(every))
        return config

    def rule_set(self, *, patient: bool = False) -> RuleSet:
        """Ready to run: raises ConfigError where a judge lacks its model, its extra or its key.

        With `patient`, judges wait for their budget instead of skipping.
        """
        return self._patient_rules if patient else self._ready_rules

    @cached_property
    def _ready_rules(self) -> RuleSet:
        return self._bound_rules()

    @cached_property
    def _patient_rules(self) -> RuleSet:
        return self._bound_rules(patient=True)

    def _bound_rules(self, *, patient: bool = False) -> RuleSet:
        if not _have_judges(self._rules):
            return RuleSet(self._rules)
        from otel_eval import judges

        models = self._judge_models
        return RuleSet(judges.bound(self._rules, self.judge, models, patient=patient))

    @property
    def _rules(self) -> tuple[Rule, ...]:
        """As they were written: enough to be described, and in need of no key."""
        return default_rules().rules if self.rules is None else self.rules

    def _judge_models(self, names: Sequence[str]) -> "Mapping[str, ModelJudge]":
        with extra("judge"):
            from otel_eval.judge.models import PydanticAiJudge
        base_url, temperature = self.judge.base_url, self.judge.temperature
        return {
            name: PydanticAiJudge(name, base_url=base_url, temperature=temperature)
            for name in names
        }

    def keys(self) -> Keys:
        return Keys(agent=self.extract.agent_keys, session=self.extract.session_keys)

    def grouping_limits(self, **defaults: float) -> Grouping:
        """`defaults` are a front door's own, for what the file does not say."""
        given = self.grouping.model_dump()
        unsaid = defaults.keys() - self.grouping.model_fields_set
        given |= {name: defaults[name] for name in unsaid}
        trace, buffer = given.pop("max_trace_mib"), given.pop("max_buffer_mib")
        return Grouping(**given, max_trace_bytes=to_bytes(trace), max_buffer_bytes=to_bytes(buffer))

    @cached_property
    def hash(self) -> str:
        """Changes with everything that may change a score."""
        rules = [rule.model_dump(warnings=False) for rule in self._rules]
        asked = self.judge.model_dump(mode="json", include=set(ANSWERS_DEPEND_ON))
        text = repr(_canonical([rules, asked]))
        return blake2b(text.encode(), digest_size=6).hexdigest()

    def labels(self) -> Labels:
        """For metric sinks; agents that a rule names literally keep their names."""
        agents = (rule.match.agent for rule in self._rules)
        return Labels(
            extra=self.emit.metrics.labels,
            max_agents=self.emit.metrics.max_agents,
            literal_agents=[agent for agent in agents if agent is not None and is_literal(agent)],
        )

    def result_event(self) -> ResultEvent:
        """For event sinks."""
        return ResultEvent(content=self.emit.content, config_hash=self.hash)


def _canonical(value: Any) -> Any:
    """The same for equal values, in every process: of a plug-in's own objects only the name."""
    match value:
        case Mapping():
            return sorted(([_canonical(key), _canonical(value[key])] for key in value), key=repr)
        case set() | frozenset():
            return sorted(map(_canonical, value), key=repr)
        case list() | tuple():
            return list(map(_canonical, value))
        case None | bool() | int() | float() | str():
            return value
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', '')}:{name}"


def load(path: str | Path) -> Config:
    """From a YAML file; `-` is standard input."""
    source = str(path)
    try:
        raw = sys.stdin.buffer.read() if source == STDIN else Path(path).read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not UTF-8 text") from error
    return Config.parse(text, "stdin" if source == STDIN else source)


def _parse(model: type[C], data: Json, problems: list[Problem]) -> C | None:
    if data is None:
        return model()
    if not isinstance(data, Mapping):
        problems.append(Problem("", f"should be sections such as rules:, found {describe(data)}"))
        return None
    kept = known_part(model, data, "", problems)
    if "rules" in kept:
        rules = parse_rules(kept["rules"], problems)
        kept["rules"] = [rule for rule in rules if rule is not None]
        problems.extend(_judge_problems(rules, kept.get("judge", {})))
    return validate(model, kept, problems)


def _judge_problems(rules: Sequence[Rule | None], section: Json) -> Iterable[Problem]:
    """Also where other things are wrong: who mends a file wants to know all of them."""
    has_judges = _have_judges([rule for rule in rules if rule is not None])
    judge = validate(Judge, section, []) if has_judges else None
    if judge is None:
        return ()
    from otel_eval import judges

    return judges.problems(rules, judge)


def _have_judges(rules: Sequence[Rule]) -> bool:
    """What judges need is imported only where there are any: agents pay for the import."""
    return any(each.needs_model for rule in rules for each in rule.evaluators)


def schema() -> dict[str, Json]:
    """The JSON Schema of a configuration file, for editors."""
    found = Config.model_json_schema()
    each = evaluators.schema()
    parts = found["$defs"]
    parts |= each.pop("$defs", {})
    parts["Evaluator"] = each
    for model, field in DURATIONS:
        parts[model]["properties"][field] = DURATION_SCHEMA
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def in_process_sinks(
    config: Config,
    *,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    tracer_provider: TracerProvider | None = None,
    pipeline: Pipeline | None = None,
    evaluation_spans: bool = True,
) -> list[Sink]:
    """What a processor or an exporter tells; the global providers unless handed in.

    Without `evaluation_spans` the caller puts span events on copies of the anchors itself.
    """
    form = config.result_event()
    sinks: list[Sink] = [
        MetricsSink(meter_provider=meter_provider, labels=config.labels(), pipeline=pipeline)
    ]
    if "log" in config.emit.events:
        sinks.append(LogEventSink(logger_provider=logger_provider, form=form))
    if "span" in config.emit.events and evaluation_spans:
        sinks.append(SpanEventSink(tracer_provider=tracer_provider, form=form))
    return sinks


def prometheus_sink(config: Config, pipeline: Pipeline | None = None) -> "PrometheusSink":
    """The sidecar's scrape page."""
    with extra("sidecar"):
        from otel_eval.sinks.prometheus import PrometheusSink
    return PrometheusSink(labels=config.labels(), pipeline=pipeline)


def pushed_metrics(config: Config, pipeline: Pipeline | None = None) -> Sink | None:
    """The sidecar's metrics over OTLP; None unless `emit.metrics.endpoint` is set."""
    if config.emit.metrics.endpoint is None:
        return None
    with extra("sidecar"):
        from otel_eval.sinks.pushed import PushedMetricsSink
    return PushedMetricsSink(config.emit.metrics, labels=config.labels(), pipeline=pipeline)


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around the imports of what an extra installs: says which one is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        text = f"{error.name} is not installed; pip install 'otel-eval[{name}]'"
        raise ConfigError(text) from error
