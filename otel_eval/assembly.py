"""What the in-process front doors have in common: from what the user gives to a running engine."""

import logging
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from typing import TypeAlias

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider

from otel_eval.config import Config, in_process_sinks, load
from otel_eval.engine import ClosedTrace, Engine, Grouping
from otel_eval.errors import ConfigError
from otel_eval.model import Evaluation
from otel_eval.rules import Rule

log = logging.getLogger("otel_eval")

Given: TypeAlias = Config | str | PathLike[str] | Sequence[Rule] | None
"""A configuration, the path of its file, rules, or None: then what is default."""
OnEvaluation: TypeAlias = Callable[[Evaluation], object]


def read_config(given: Given, rules: Iterable[Rule] | None = None) -> Config:
    """`rules` stand in for those of the configuration. Raises ConfigError."""
    config = _config(given)
    if rules is None:
        return config
    said = {name: getattr(config, name) for name in config.model_fields_set}
    return Config(**{**said, "rules": _checked(rules)})


def _config(given: Given) -> Config:
    if given is None:
        return Config()
    if isinstance(given, Config):
        return given
    if isinstance(given, str | PathLike):
        return load(fspath(given))
    if isinstance(given, list | tuple):
        return Config(rules=_checked(given))
    raise ConfigError(f"a {type(given).__name__}, expected a Config, the path of a file, or rules")


def _checked(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    every = tuple(rules)
    for position, rule in enumerate(every):
        if not isinstance(rule, Rule):
            raise ConfigError(f"rules[{position}]: a {type(rule).__name__}, expected a Rule")
    return every


def make_engine(
    config: Config,
    grouping: Grouping,
    *,
    meter_provider: MeterProvider | None,
    logger_provider: LoggerProvider | None,
    on_evaluation: OnEvaluation | None,
    on_closed: Callable[[ClosedTrace], None] | None = None,
) -> Engine:
    """With metrics and log events; span events are for the front door to add."""
    engine = Engine(
        config.rule_set(),
        grouping=grouping,
        keys=config.keys(),
        slow_threads=config.judge.max_concurrency,
        on_closed=on_closed,
    )
    sinks = in_process_sinks(
        config,
        meter_provider=meter_provider,
        logger_provider=logger_provider,
        pipeline=engine.snapshot,
        evaluation_spans=False,
    )
    for sink in sinks:
        engine.add_sink(sink)
    if on_evaluation is not None:
        engine.add_sink(CallbackSink(on_evaluation))
    return engine


class CallbackSink:
    """Tells the application's own function."""

    def __init__(self, on_evaluation: OnEvaluation) -> None:
        self._on_evaluation = on_evaluation

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        for evaluation in evaluations:
            try:
                self._on_evaluation(evaluation)
            except KeyboardInterrupt:
                raise
            # The application's own code may even exit; the next evaluation is waiting.
            except BaseException as error:
                log.warning("on_evaluation raised %s", type(error).__name__)

    def close(self) -> None:
        """Nothing to do."""
