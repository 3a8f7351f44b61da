"""Sample agents that send real OTLP to a real sidecar: what `otel-eval demo` shows."""
