"""Where a running sidecar is reached: its ports, also where the configuration says 0."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    grpc: int
    http: int
    admin: int
