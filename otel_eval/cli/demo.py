"""`otel-eval demo`: scores of sample agents, live."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from otel_eval.cli.inputs import Unusable
from otel_eval.cli.numbers import in_range
from otel_eval.config import extra
from otel_eval.errors import ConfigError

NAME = "otel-eval"
SHORTEST, LONGEST = 4, 86_400


@click.command()
@click.option(
    "--seconds",
    callback=in_range(int, SHORTEST, LONGEST),
    default="60",
    show_default=True,
    metavar="N",
    help="How long, at least 4; one agent goes bad half way.",
)
def command(seconds: int) -> None:
    """Show scores of sample agents, live, from a real sidecar.

    Needs no network and no key. Leaves otel-eval-demo.jsonl (the traces) and otel-eval-demo.yaml
    (the rules) in the current directory, for `score` and `explain`. Ctrl-C ends it.

    \b
    Example:
      otel-eval demo --seconds 20
    """
    try:
        with extra("sidecar"):
            from otel_eval.demo.demo import Demo
        Demo(seconds=seconds, folder=Path(), program=program()).run()
    except BrokenPipeError:
        raise  # a reader that has seen enough; click ends quietly
    except ConfigError as error:
        raise Unusable(str(error)) from error
    except OSError as error:
        raise Unusable(_told(error)) from error


def program() -> str:
    """The name where the shell finds it by that; else, as in a new environment, the path."""
    called = Path(sys.argv[0])
    is_found = called.name != NAME or shutil.which(NAME) is not None
    return NAME if is_found else shlex.quote(sys.argv[0])


def _told(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
