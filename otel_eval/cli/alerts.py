"""`otel-eval alerts`: Prometheus rules for a configuration."""

import click

from otel_eval import alerts
from otel_eval.cli.configs import configured

FORMATS = {"prometheus": alerts.rule_file, "prometheusrule": alerts.prometheus_rule}


@click.command()
@click.option("-c", "--config", "path", metavar="FILE", help="Rules and their alert blocks.")
@click.option("--tests", is_flag=True, help="promtool tests for the rules instead of the rules.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="prometheus",
    show_default=True,
    help="A rule file, or the custom resource of the Prometheus operator.",
)
def command(path: str | None, tests: bool, form: str) -> None:
    """Write Prometheus recording and alert rules for the rules of a configuration.

    \b
    Example:
      otel-eval alerts -c otel-eval.yaml > otel-eval.rules.yaml
      otel-eval alerts -c otel-eval.yaml --tests > otel-eval.test.yaml
      promtool test rules otel-eval.test.yaml
    """
    if tests and form != "prometheus":
        raise click.UsageError("promtool tests a rule file: --tests goes with --format prometheus")
    config = configured(path)
    text = alerts.promtool_tests(config) if tests else FORMATS[form](alerts.groups(config))
    click.echo(text, nl=False)
