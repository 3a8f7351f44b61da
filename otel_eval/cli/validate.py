"""`otel-eval validate`: whether a configuration can be used, with every problem at once."""

import click

from otel_eval.cli.configs import configured
from otel_eval.cli.steps import plural
from otel_eval.rules import default_rules


@click.command()
@click.argument("file", metavar="FILE")
def command(file: str) -> None:
    """Check a configuration; - is stdin.

    Exit code 0: it can be used. 2: it cannot; every problem is told, with its line.

    \b
    Example:
      otel-eval validate otel-eval.yaml
    """
    config = configured(file)
    rules = default_rules().rules if config.rules is None else config.rules
    evaluators = sum(len(rule.evaluators) for rule in rules)
    click.echo(f"{file} is valid: {plural(len(rules), 'rule')}, {plural(evaluators, 'evaluator')}")
