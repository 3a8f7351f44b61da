"""What an operator reads first: where to send, what is evaluated, where scores appear."""

from collections.abc import Iterable

from otel_eval.config import Config
from otel_eval.quantities import host_and_port
from otel_eval.sidecar.ports import Ports


def banner(config: Config, ports: Ports) -> str:
    lines = [
        *_receivers(config, ports),
        *_labelled("rules", _rules(config)),
        *_labelled("scores", _scores(config, ports)),
    ]
    return "\n".join(["otel-eval is ready", *lines])


def _receivers(config: Config, ports: Ports) -> Iterable[str]:
    otlp = config.receivers.otlp
    grpc = url(otlp.grpc.endpoint, ports.grpc, secure=otlp.grpc.tls.cert_file is not None)
    http = url(otlp.http.endpoint, ports.http, secure=otlp.http.tls.cert_file is not None)
    variable = "OTEL_EXPORTER_OTLP_TRACES"
    yield from _labelled("OTLP/gRPC", [f"{variable}_ENDPOINT={grpc} {variable}_PROTOCOL=grpc"])
    yield from _labelled(
        "OTLP/HTTP", [f"{variable}_ENDPOINT={http}/v1/traces {variable}_PROTOCOL=http/protobuf"]
    )


def _rules(config: Config) -> Iterable[str]:
    for rule in config.rule_set().rules:
        names = ", ".join(evaluator.name for evaluator in rule.evaluators)
        yield f"{rule.name}: {names}" + ("  (no rules are configured)" * (config.rules is None))


def _scores(config: Config, ports: Ports) -> Iterable[str]:
    yield f"{url(config.admin.endpoint, ports.admin)}/metrics"
    logs = config.emit.logs.endpoint or (config.forward and config.forward.endpoint)
    if logs and "log" in config.emit.events:
        yield f"log events to {logs}"
    if config.forward and "span" in config.emit.events:
        how = "on their spans" if config.forward.mode == "attach" else "as spans"
        yield f"span events, {how}, to {config.forward.endpoint}"
    if config.emit.metrics.endpoint:
        yield f"metrics to {config.emit.metrics.endpoint}"


def _labelled(label: str, texts: Iterable[str]) -> list[str]:
    return [f"  {label if at == 0 else '':<10} {text}" for at, text in enumerate(texts)]


def url(endpoint: str, port: int, *, secure: bool = False) -> str:
    """Where a client on this machine reaches it."""
    host, _ = host_and_port(endpoint)
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"
