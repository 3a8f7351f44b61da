"""What a scrape page says about spans adds up, at every moment."""

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

NAME = "otel_eval_spans_"
EVALUATED = ("scored", "late", "duplicate", "own", "unevaluated", "open")
FORWARDED = ("forwarded", "dropped", "queued")


def check_identities(page: str) -> None:
    """Both, or without a forward target the first alone: then nothing is said about drops."""
    spans = _spans(page)
    assert spans["received"] == sum(spans[part] for part in EVALUATED), spans
    if "dropped" in spans:
        assert spans["received"] == sum(spans[part] for part in FORWARDED), spans


def _spans(page: str) -> Counter[str]:
    spans: Counter[str] = Counter()
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name.startswith(NAME):
                spans[sample.name.removeprefix(NAME).removesuffix("_total")] += sample.value
    assert "received" in spans
    return spans
