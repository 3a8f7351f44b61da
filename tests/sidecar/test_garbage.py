import gc
from collections.abc import Iterator

import pytest

from otel_eval.decode.otlp import decode_protobuf
from otel_eval.sidecar import garbage
from tests.sidecar.otlp import traces


@pytest.fixture
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_as_before")
def test_spans_that_stay_alive_are_seldom_gone_through() -> None:
    garbage.tune()
    frozen = gc.get_freeze_count()
    before = [each["collections"] for each in gc.get_stats()]

    spans = [decode_protobuf(traces(500)) for _ in range(20)]

    after = [each["collections"] for each in gc.get_stats()]
    assert len(spans) == 20
    assert frozen > 0
    assert sum(after) - sum(before) <= 2
