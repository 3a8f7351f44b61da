"""Series that are there before anything has happened.

Prometheus' `increase` does not see how a series that begins with 1 came to be: the first loss.
"""

from typing import Final, get_args

from otel_eval.counters import Reason
from otel_eval.model import ClosedBy
from otel_eval.sidecar.parcels import Loss
from otel_eval.sinks.instruments import Snapshot

LABELS: Final[dict[str, tuple[str, ...]]] = {
    "otel_eval.traces": get_args(ClosedBy),
    "otel_eval.sessions": ("idle", "age", "capacity", "shutdown"),
    "otel_eval.spans.unevaluated": get_args(Reason),
    "otel_eval.spans.dropped": get_args(Loss),
}


def counted_from_zero(snapshot: Snapshot) -> Snapshot:
    """Only of what is counted at all: without a target, no spans are dropped on the way to it."""
    return {
        name: {**{(label,): 0 for label in LABELS.get(name, ())}, **values}
        for name, values in snapshot.items()
    }
