"""What the sidecar counts beside the engine, on the same scrape page."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from otel_eval.sidecar.answers import PROTOCOLS, REASONS, Refused
from otel_eval.sidecar.contents import Contents
from otel_eval.sidecar.custody import Custody
from otel_eval.sidecar.forward import Forwarder
from otel_eval.sidecar.journal import Journal
from otel_eval.sidecar.recovery import Recovered, Recovery

Result = Literal["success", "failure"]


class Meters:
    def __init__(
        self,
        contents: Contents,
        forwarders: Iterable[Forwarder],
        custody: Custody | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        self.reloads: Counter[Result] = Counter({"success": 0, "failure": 0})
        self.refused = Refused({(by, why): 0 for by in PROTOCOLS for why in REASONS})
        self._contents = contents
        self._forwarders = tuple(forwarders)
        self._custody = custody
        self._recovery = recovery

    def collect(self) -> Iterable[Metric]:
        yield _family(
            "otel_eval_config_reloads",
            "Reloads of the configuration.",
            ("result",),
            {(result,): count for result, count in self.reloads.items()},
        )
        yield _family(
            "otel_eval_requests_refused",
            "Requests that their senders were asked to send again later.",
            ("protocol", "reason"),
            self.refused,
        )
        yield _family(
            "otel_eval_forward_requests",
            "Requests on their way out, by what became of them.",
            ("signal", "result"),
            self._requests(),
        )
        yield _family(
            "otel_eval_log_contents_unmatched",
            "Log records with messages of a model call whose span did not come, or had gone.",
            (),
            {(): self._contents.unmatched},
        )

        if self._custody is not None:
            yield from _journal(self._custody.journal)
        if self._recovery is not None:
            yield from _recovered(self._recovery.recovered)

    def _requests(self) -> dict[tuple[str, ...], int]:
        found: Counter[tuple[str, ...]] = Counter()
        for forwarder in self._forwarders:
            for key, count in forwarder.requests.items():
                found[key] += count
        return dict(found)


def _journal(journal: Journal) -> Iterable[Metric]:
    yield GaugeMetricFamily(
        "otel_eval_journal_bytes", "What the journal keeps, in bytes.", value=journal.bytes
    )
    yield GaugeMetricFamily(
        "otel_eval_journal_requests",
        "Requests in the journal that are to be forwarded or scored.",
        value=journal.requests,
    )
    yield _family(
        "otel_eval_journal_damaged",
        "Journals that could not be read and were set aside.",
        (),
        {(): journal.damaged},
    )
    yield _family(
        "otel_eval_journal_failures",
        "Times that the journal could not be written, as when the disk is full.",
        (),
        {(): journal.failures},
    )


def _recovered(recovered: Recovered) -> Iterable[Metric]:
    yield _family(
        "otel_eval_journal_recovered_requests",
        "Requests that an earlier process left in the journal, taken up again.",
        (),
        {(): recovered.requests},
    )
    yield _family(
        "otel_eval_journal_recovered_spans",
        "Spans in requests that an earlier process left in the journal.",
        (),
        {(): recovered.spans},
    )
    yield _family(
        "otel_eval_journal_unreadable_requests",
        "Requests in the journal whose bytes were not those that were written.",
        (),
        {(): recovered.unreadable},
    )


def _family(
    name: str, help: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], int]
) -> Metric:
    family = CounterMetricFamily(name, help, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family
