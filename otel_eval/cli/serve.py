"""`otel-eval serve`: the sidecar, until it is told to stop."""

import signal
import sys
from collections.abc import Callable
from urllib.parse import urlsplit

import click

from otel_eval.cli.configs import configured
from otel_eval.cli.inputs import Unusable
from otel_eval.config import STDIN, Config, extra, load
from otel_eval.errors import ConfigError
from otel_eval.settings import Forward

OTLP_HTTP_PORT = 4318


@click.command()
@click.option(
    "-c", "--config", "path", metavar="FILE", help="Rules and settings; without: the defaults."
)
@click.option(
    "--forward", "target", metavar="URL", help="Send spans on to here, not to forward.endpoint."
)
def command(path: str | None, target: str | None) -> None:
    """Take OTLP, score it, and show the scores on /metrics.

    Runs until SIGTERM or Ctrl-C, scores what is open and leaves. SIGHUP reads the configuration
    again; where that is no good, the old rules stay.

    Exit code 0: everything was scored and delivered. 1: time ran out before that. 2: it could not
    start: a configuration that cannot be used, or a port that is taken.

    --forward speaks gRPC, or HTTP where the port is 4318 or the URL has a path.

    \b
    Example:
      otel-eval serve -c otel-eval.yaml --forward http://collector:4317
    """
    # Until there is something to reload, it would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    config = _usable(configured(path), target)
    try:
        with extra("sidecar"):
            from otel_eval.sidecar.app import serve
    except ConfigError as error:
        raise Unusable(str(error)) from error
    sys.exit(serve(config, banner=click.echo, reload=_reload(path, target)))


def _usable(config: Config, target: str | None) -> Config:
    """What can be said before anything listens."""
    try:
        config = _forwarding(config, target)
        config.rule_set()
    except ConfigError as error:
        raise Unusable(str(error)) from error
    return config


def _reload(path: str | None, target: str | None) -> Callable[[], Config] | None:
    """None where there is nothing to read again: no file, or one that was piped in."""
    if path is None or path == STDIN:
        return None
    return lambda: _forwarding(load(path), target)


def _forwarding(config: Config, target: str | None) -> Config:
    """With another target; headers, certificates and limits stay as they are in the file."""
    if target is None:
        return config
    given = {} if config.forward is None else config.forward.model_dump()
    given |= {"endpoint": target, "protocol": _protocol(target)}
    try:
        forward = Forward.model_validate(given)
    except ValueError as error:
        text = f"--forward {target}: no endpoint; write it like http://collector:4317"
        raise ConfigError(text) from error
    return config.model_copy(update={"forward": forward})


def _protocol(target: str) -> str:
    try:
        url = urlsplit(target if "://" in target else f"//{target}")
        return "http" if url.port == OTLP_HTTP_PORT or url.path.strip("/") else "grpc"
    except ValueError:  # told by the endpoint's own check
        return "grpc"
