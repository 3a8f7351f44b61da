"""OTLP in, scores out, spans forwarded: otel_eval as a process of its own. Extra `sidecar`."""

import os

# gRPC's own lines on stderr are in no format that was asked for; it looks when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
