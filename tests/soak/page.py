"""What the scrape page says: totals, the identities and quantiles."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

EVALUATED: Final = ("scored", "late", "duplicate", "own", "unevaluated", "open")
FORWARDED: Final = ("forwarded", "dropped", "queued")


class Page:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self._totals: dict[str, float] = defaultdict(float)
        self._lag: dict[float, float] = defaultdict(float)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._totals[sample.name] += sample.value
                if sample.name == "otel_eval_lag_seconds_bucket":
                    self._lag[float(sample.labels["le"])] += sample.value

    def spans(self) -> Mapping[str, int]:
        names = ("received", *EVALUATED, *FORWARDED)
        return {name: int(self._total(name)) for name in names}

    def _total(self, name: str) -> float:
        suffix = "" if name in ("open", "queued") else "_total"
        return self._totals[f"otel_eval_spans_{name}{suffix}"]

    def broken(self) -> list[str]:
        """The identities that do not hold."""
        spans = self.spans()
        return [
            f"received {spans['received']} is not the sum of {', '.join(parts)}: {dict(spans)}"
            for parts in (EVALUATED, FORWARDED)
            if spans["received"] != sum(spans[part] for part in parts)
        ]

    def lag(self, quantile: float) -> float:
        """The bound of the bucket that it is in."""
        wanted = quantile * self._lag[float("inf")]
        return next((bound for bound in sorted(self._lag) if self._lag[bound] >= wanted), 0.0)
