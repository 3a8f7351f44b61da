"""`otel-eval convert`: what other tools expect of an agent, as rules."""

from pathlib import Path

import click

from otel_eval.cli import uipath
from otel_eval.cli.inputs import Unusable
from otel_eval.cli.rule_file import write_rules
from otel_eval.config import Config
from otel_eval.errors import ConfigError


@click.group()
def command() -> None:
    """Turn eval sets of other tools into rules.

    \b
    Example:
      otel-eval convert uipath evaluations/eval-sets/default.json -o otel-eval.yaml
    """


@command.command("uipath")
@click.argument("file", metavar="EVALSET")
@click.option("-o", "--output", metavar="FILE", help="Write there; without: to stdout.")
@click.option("--force", is_flag=True, help="Overwrite the file if it is there.")
def from_uipath(file: str, output: str | None, force: bool) -> None:
    """Turn a UiPath eval set into one rule per test case.

    A rule matches the session that has the id of the test case. What the criteria leave to the
    evaluators' own files is read from the folder `evaluators` beside the one of the eval set.

    \b
    Example:
      otel-eval convert uipath evaluations/eval-sets/default.json -o otel-eval.yaml
    """
    found = uipath.read(file)
    for each in found.left_out:
        click.echo(click.style("left out: ", fg="yellow") + each, err=True)
    if not found.rules:
        raise Unusable(f"{file}: no test case has criteria about tool calls")
    text = write_rules(found.rules, f"Converted from the UiPath eval set {Path(file).name}.")
    _check(text, file)
    if output is None:
        click.echo(text, nl=False)
    else:
        _write(output, text, force)


def _check(text: str, file: str) -> None:
    """The eval set may hold criteria that no evaluator can use."""
    try:
        Config.parse(text)
    except ConfigError as error:
        problems = [f"{file}: {each.partition(': ')[2]}" for each in error.problems]
        raise Unusable("\n".join(problems)) from error


def _write(output: str, text: str, force: bool) -> None:
    try:
        with Path(output).open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        if Path(output).is_dir():
            raise Unusable(f"{output}: is a directory; expected a file to write") from error
        raise Unusable(f"{output} is there already; --force overwrites it") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unusable(f"{output}: cannot be written: {reason}") from error
