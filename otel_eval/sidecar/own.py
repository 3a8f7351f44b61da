"""Our own telemetry, on the same way out as everything else."""

from collections.abc import Sequence

from otel_eval.model import Evaluation
from otel_eval.sidecar.own_requests import OwnRequests
from otel_eval.sidecar.parcels import Put
from otel_eval.sinks.event import ResultEvent


class ForwardedEvents:
    """Evaluations as log events, as spans or as both: one request of each for all that come at a
    time."""

    def __init__(
        self, form: ResultEvent, *, logs: Put | None = None, spans: Put | None = None
    ) -> None:
        """`logs` and `spans` take the requests; without one, that kind is not made."""
        self._form = form
        self._logs = logs
        self._spans = spans

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        requests = OwnRequests(self._form)
        if self._logs is not None and (parcel := requests.logs(evaluations)):
            self._logs(parcel)
        if self._spans is not None and (parcel := requests.spans(evaluations)):
            self._spans(parcel)

    def close(self) -> None:
        """Nothing to do: what was put is on its way."""
