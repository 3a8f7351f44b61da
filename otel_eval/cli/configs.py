"""The configuration that a command is given, or what runs without one."""

import sys

from otel_eval.cli.inputs import NO_NAME, Unusable
from otel_eval.config import Config, load
from otel_eval.errors import ConfigError
from otel_eval.rules import RuleSet


def configured(path: str | None) -> Config:
    """Every problem of the file at once, and no traceback."""
    if path is None:
        return Config()
    if not path:
        raise Unusable(f"-c: {NO_NAME}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # evaluators named as module:Name may lie where the command runs
    try:
        return load(path)
    except ConfigError as error:
        raise Unusable(str(error)) from error


def ready_rules(config: Config) -> RuleSet:
    """The rules with their judges, which wait for their budget: nobody waits for a file."""
    try:
        return config.rule_set()
    except ConfigError as error:
        raise Unusable(str(error)) from error
