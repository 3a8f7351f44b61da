"""The sample agents are not the user's: what is set for those does not hold for these."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "grpc_proxy", "all_proxy"})


@contextmanager
def plain_environment() -> Iterator[None]:
    """Without OpenTelemetry's variables, and without proxies: nothing leaves this machine."""
    hidden = {name: value for name, value in os.environ.items() if _is_hidden(name)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def _is_hidden(name: str) -> bool:
    return name.startswith("OTEL_") or name.lower() in _PROXIES
