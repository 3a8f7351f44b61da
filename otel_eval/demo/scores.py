"""Scores by agent, read from a scrape page as any Prometheus would."""

import http.client
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, Self, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

RECENT_SECONDS: Final = 6.0
SCRAPE_TIMEOUT: Final = 5.0


class Series(NamedTuple):
    agent: str
    rule: str
    evaluator: str


@dataclass(frozen=True, slots=True)
class Sum:
    """Scores added up, and how many they were."""

    total: float = 0.0
    count: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def __sub__(self, other: Self) -> "Sum":
        return Sum(self.total - other.total, self.count - other.count)

    @classmethod
    def of(cls, sums: Iterable[Self]) -> Self:
        listed = list(sums)
        return cls(sum(each.total for each in listed), sum(each.count for each in listed))


Page: TypeAlias = Mapping[Series, Sum]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an agent does; means are None while there is nothing to take them of."""

    agent: str
    recent: float | None
    since_start: float | None
    runs: int
    lowest: tuple[str, float] | None
    """The evaluator that was given the lowest scores of late, and their mean."""


def scrape(port: int) -> Page:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SCRAPE_TIMEOUT)
    try:
        connection.request("GET", "/metrics")
        return parse(connection.getresponse().read().decode())
    finally:
        connection.close()


def parse(text: str) -> Page:
    found = {"_sum": dict[Series, float](), "_count": dict[Series, float]()}
    for family in text_string_to_metric_families(text):
        for sample in family.samples if family.name == "otel_eval_score" else ():
            values = found.get(sample.name.removeprefix(family.name))
            if values is not None:
                values[_series(sample.labels)] = sample.value
    return {each: Sum(found["_sum"][each], count) for each, count in found["_count"].items()}


def _series(labels: Mapping[str, str]) -> Series:
    return Series(labels["agent"], labels["rule"], labels["evaluator"])


class History:
    """The pages of the last seconds: what is recent is the difference of two of them."""

    def __init__(self, recent_seconds: float = RECENT_SECONDS) -> None:
        self._recent_seconds = recent_seconds
        self._pages: deque[tuple[float, Page]] = deque([(float("-inf"), {})])

    def add(self, page: Page, now: float) -> None:
        self._pages.append((now, page))
        while len(self._pages) > 2 and self._pages[1][0] <= now - self._recent_seconds:
            self._pages.popleft()

    def standing(self, agent: str) -> Standing:
        page = self._pages[-1][1]
        mine = {each: sums for each, sums in page.items() if each.agent == agent}
        recent = dict(self._recent(mine))
        return Standing(
            agent=agent,
            recent=Sum.of(recent.values()).mean,
            since_start=Sum.of(mine.values()).mean,
            runs=int(max((sums.count for sums in mine.values()), default=0)),
            lowest=_lowest(recent),
        )

    def _recent(self, page: Page) -> Iterator[tuple[Series, Sum]]:
        before = self._pages[0][1]
        for series, sums in page.items():
            yield series, sums - before.get(series, Sum())


def _lowest(page: Page) -> tuple[str, float] | None:
    """The first of several that are equally low: the rules have an order."""
    means = ((series.evaluator, sums.mean) for series, sums in page.items())
    known = [(name, mean) for name, mean in means if mean is not None]
    return min(known, key=itemgetter(1), default=None)
