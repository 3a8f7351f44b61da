"""Scores pushed over OTLP. Needs the extra `sidecar`; imported only where it is used."""

from pathlib import Path

from grpc import ChannelCredentials, Compression, ssl_channel_credentials
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
    OTLPMetricExporter as GrpcExporter,
)
from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
    OTLPMetricExporter as HttpExporter,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader

from otel_eval.settings import ClientTls, Metrics
from otel_eval.sinks.instruments import Pipeline
from otel_eval.sinks.labels import Labels
from otel_eval.sinks.metrics import MetricsSink

HTTP_PATH = "/v1/metrics"


class PushedMetricsSink(MetricsSink):
    """Metrics with a provider of their own, which pushes the last values when it is closed."""

    def __init__(
        self, target: Metrics, *, labels: Labels | None = None, pipeline: Pipeline | None = None
    ) -> None:
        reader = PeriodicExportingMetricReader(
            metric_exporter(target), export_interval_millis=1000 * target.interval
        )
        self._provider = MeterProvider([reader], shutdown_on_exit=False)
        super().__init__(meter_provider=self._provider, labels=labels, pipeline=pipeline)

    def close(self) -> None:
        self._provider.shutdown()


def metric_exporter(target: Metrics) -> MetricExporter:
    return _http(target) if target.protocol == "http" else _grpc(target)


def _grpc(target: Metrics) -> MetricExporter:
    """An endpoint without a scheme is not encrypted, like http://."""
    secure = str(target.endpoint).startswith("https://")
    return GrpcExporter(
        endpoint=target.endpoint,
        insecure=not secure,
        credentials=_credentials(target.tls) if secure else None,
        headers=tuple((name.lower(), value) for name, value in target.headers.items()),
        timeout=target.timeout,
        compression=Compression.Gzip if target.compression == "gzip" else Compression.NoCompression,
    )


def _http(target: Metrics) -> MetricExporter:
    return HttpExporter(
        endpoint=http_endpoint(str(target.endpoint)),
        certificate_file=_name(target.tls.ca_file),
        client_key_file=_name(target.tls.key_file),
        client_certificate_file=_name(target.tls.cert_file),
        headers=dict(target.headers),
        timeout=target.timeout,
        compression=HttpCompression.Gzip
        if target.compression == "gzip"
        else HttpCompression.NoCompression,
    )


def http_endpoint(endpoint: str) -> str:
    """With a scheme, and with the path of OTLP unless it has one already."""
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    return url if url.endswith(HTTP_PATH) else url.rstrip("/") + HTTP_PATH


def _credentials(tls: ClientTls) -> ChannelCredentials:
    return ssl_channel_credentials(_bytes(tls.ca_file), _bytes(tls.key_file), _bytes(tls.cert_file))


def _bytes(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)
