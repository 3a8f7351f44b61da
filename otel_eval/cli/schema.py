"""`otel-eval schema`: what an editor needs to complete and check a configuration."""

import json

import click

from otel_eval import config


@click.command()
def command() -> None:
    """Print the JSON Schema of a configuration.

    \b
    Example:
      otel-eval schema > otel-eval.schema.json
    """
    click.echo(json.dumps(config.schema(), indent=2, ensure_ascii=False))
