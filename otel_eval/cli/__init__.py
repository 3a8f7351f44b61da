"""The command line. Commands are imported when they are used, so that `--help` stays quick."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

COMMANDS = {
    "serve": "the sidecar: OTLP in, scores out",
    "demo": "sample agents and their scores, live, for a minute",
    "score": "recorded traces against rules, for people and CI",
    "explain": "one trace step by step, with what each step cost",
    "trajectories": "what was extracted, per trace",
    "validate": "whether a configuration can be used",
    "schema": "the JSON Schema of a configuration, for editors",
    "init": "a starter configuration",
    "convert": "eval sets of other tools into rules",
    "alerts": "Prometheus rules for a configuration",
    "judge-check": "how far a judge agrees with people",
}


class Commands(click.Group):
    """A group that knows its commands by name: each lives in the module of that name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"otel_eval.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = get_close_matches(args[0], COMMANDS, n=1)
        if near and args[0] not in COMMANDS:
            ctx.fail(f"No such command '{args[0]}', did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line():
            return super().invoke(ctx)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if "NO_COLOR" in os.environ:
            kwargs["color"] = False
        return super().main(*args, **kwargs)


@contextmanager
def _one_line() -> Iterator[None]:
    """A mistake with a flag is told like every other mistake: in one line."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        from otel_eval.cli.inputs import Unusable

        told = error.format_message().replace("\n", " ").rstrip(".")
        name = error.ctx.command_path if error.ctx else "otel-eval"
        raise Unusable(f"{told} (see {name} --help)") from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="otel-eval", prog_name="otel-eval")
def main() -> None:
    """Scores the tool calls of AI agents from their OpenTelemetry spans.

    \b
    Example:
      otel-eval demo
    """
