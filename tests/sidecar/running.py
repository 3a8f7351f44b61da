"""A whole sidecar on port 0, and what its scrape page says."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from otel_eval.config import Config
from otel_eval.model import Json
from otel_eval.sidecar.ports import Ports
from otel_eval.sidecar.sidecar import Sidecar
from tests.sidecar.identities import check_identities
from tests.sidecar.loops import LoopThread, loop_thread
from tests.sidecar.servers import ANY_PORT, Receiving

FAST = {"settle": "100ms", "local_settle": "100ms", "idle": "1h"}


class Running:
    def __init__(self, loop: LoopThread, sidecar: Sidecar) -> None:
        self.loop = loop
        self.sidecar = sidecar
        self.drained: bool | None = None

    @property
    def ports(self) -> Ports:
        return self.sidecar.ports

    def get(self, path: str, accept: str = "") -> tuple[int, str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.admin, timeout=10)
        connection.request("GET", path, headers={"Accept": accept} if accept else {})
        response = connection.getresponse()
        found = response.status, response.read().decode(), response.headers["content-type"]
        connection.close()
        return found

    def page(self) -> str:
        """What a scrape would say, also when nobody listens any more."""
        return self.loop.call(lambda: self.sidecar._scrape.page()[0].decode())

    def value(self, name: str, **labels: str) -> float:
        """The sum over all series of that name that have these labels."""
        families = text_string_to_metric_families(self.page())
        samples = [each for family in families for each in family.samples if each.name == name]
        return sum(each.value for each in samples if labels.items() <= each.labels.items())

    def wait(self, name: str, value: float, **labels: str) -> None:
        self.loop.until(lambda: self._now(name, labels) >= value)

    def _now(self, name: str, labels: dict[str, str]) -> float:
        page = self.sidecar._scrape.page()[0].decode()
        families = text_string_to_metric_families(page)
        samples = [each for family in families for each in family.samples if each.name == name]
        return sum(each.value for each in samples if labels.items() <= each.labels.items())

    def drain(self, seconds: float = 15) -> bool:
        if self.drained is None:
            self.drained = self.loop.run(self.sidecar.drain(seconds))
        return self.drained

    def check_identities(self) -> None:
        check_identities(self.page())


@contextmanager
def running(**sections: Json) -> Iterator[Running]:
    """Both identities are asserted while it runs and after it has drained."""
    config = Config.parse(config_of(**sections))
    with loop_thread() as loop:
        sidecar = loop.call(lambda: Sidecar(config))
        loop.run(sidecar.start())
        run = Running(loop, sidecar)
        try:
            yield run
            run.check_identities()
        finally:
            run.drain(5)
        run.check_identities()


def config_of(**sections: Json) -> dict[str, Any]:
    receivers = sections.pop("receivers", {})
    auth = receivers.get("auth", {})
    otlp = {key: {**ANY_PORT, **receivers.get(key, {})} for key in ("grpc", "http")}
    return {
        "receivers": {"otlp": {**otlp, **({"auth": auth} if auth else {})}},
        "admin": ANY_PORT,
        "grouping": FAST,
        **sections,
    }


def forward_to(server: Receiving, protocol: str = "grpc", **options: Json) -> dict[str, Json]:
    port = server.ports.grpc if protocol == "grpc" else server.ports.http
    return {"endpoint": f"http://127.0.0.1:{port}", "protocol": protocol, **options}
