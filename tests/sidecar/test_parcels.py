from otel_eval.sidecar import parcels
from otel_eval.sidecar.parcels import Parcel, joined, together
from otel_eval.sidecar.signals import TRACES
from tests.sidecar.otlp import traces


def test_requests_that_are_joined_are_one_with_all_that_is_in_them() -> None:
    first = Parcel(signal=TRACES, body=traces(2), spans=2, origins=((1, 1), (2, 1)))
    second = Parcel(signal=TRACES, body=traces(3, first=9), spans=3, origins=((2, 3),))

    found = joined([first, second])

    groups = TRACES.request.FromString(found.body).resource_spans
    assert [len(group.scope_spans[0].spans) for group in groups] == [2, 3]
    assert (found.signal, found.spans, found.origins) == (TRACES, 5, ((1, 1), (2, 4)))
    assert not found.stored


def test_what_is_put_together_is_small_enough_and_a_large_one_is_alone() -> None:
    most = parcels.MOST_TOGETHER
    sizes = [most // 2, most // 2, 1, 2 * most, 1, 2]

    found = together(Parcel(signal=TRACES, body=bytes(size)) for size in sizes)

    assert [[parcel.size for parcel in batch] for batch in found] == [
        [most // 2, most // 2],
        [1],
        [2 * most],
        [1, 2],
    ]


def test_nothing_put_together_is_nothing() -> None:
    assert list(together([])) == []
