"""`otel-eval demo`: scores of sample agents, live."""

from pathlib import Path

import click

from otel_eval.cli.inputs import Unusable
from otel_eval.config import extra
from otel_eval.errors import ConfigError

SHORTEST, LONGEST = 4, 86_400


@click.command()
@click.option(
    "--seconds",
    type=click.IntRange(SHORTEST, LONGEST),
    default=60,
    show_default=True,
    metavar="N",
    help="How long; one agent goes bad half way.",
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
        Demo(seconds=seconds, folder=Path()).run()
    except BrokenPipeError:
        raise  # a reader that has seen enough; click ends quietly
    except ConfigError as error:
        raise Unusable(str(error)) from error
    except OSError as error:
        raise Unusable(_told(error)) from error


def _told(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
