"""`otel-eval init`: a configuration to start from."""

from importlib.resources import files
from pathlib import Path

import click

from otel_eval.cli.inputs import Unusable


@click.command()
@click.argument("file", default="otel-eval.yaml", metavar="[FILE]")
@click.option("--force", is_flag=True, help="Overwrite the file if it is there.")
def command(file: str, force: bool) -> None:
    """Write a commented configuration to start from: otel-eval.yaml unless named.

    \b
    Example:
      otel-eval init
    """
    text = files("otel_eval.cli").joinpath("starter.yaml").read_text(encoding="utf-8")
    try:
        with Path(file).open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        if Path(file).is_dir():
            raise Unusable(f"{file}: is a directory; expected a file to write") from error
        raise Unusable(f"{file} is there already; --force overwrites it") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unusable(f"{file}: cannot be written: {reason}") from error
    click.echo(f"wrote {file}; next: otel-eval score traces.jsonl -c {file}")
