import pytest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from otel_eval.decode import decode_protobuf
from otel_eval.model import Json
from otel_eval.sidecar.pairs import LONGEST_KEPT, pairs


def read(written: list[bytes]) -> Json:
    """As the resource of a span that comes in."""
    data = TracesData()
    group = data.resource_spans.add()
    group.resource.attributes.extend(map(KeyValue.FromString, written))
    group.scope_spans.add().spans.add()
    (span,) = decode_protobuf(data.SerializeToString())
    return span.resource


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("text", id="text"),
        pytest.param("", id="no text"),
        pytest.param("ä" * 2 * LONGEST_KEPT, id="long text"),
        pytest.param(-(2**63), id="an integer"),
        pytest.param(0.25, id="a float"),
        pytest.param(False, id="a boolean"),
        pytest.param(None, id="nothing"),
        pytest.param(["a", 1, None, [True]], id="a list"),
        pytest.param({"a": {"b": [1.5]}, "c": "d"}, id="a mapping"),
    ],
)
def test_what_is_written_is_read_as_it_was(value: Json) -> None:
    assert read(pairs({"key": value})) == {"key": value}
    assert read(pairs({"key": value})) == {"key": value}


def test_values_that_are_equal_and_of_several_types_are_not_mixed_up() -> None:
    found = read(pairs({"key": 1})), read(pairs({"key": 1.0})), read(pairs({"key": True}))

    assert [type(each["key"]) for each in found] == [int, float, bool]


def test_half_a_surrogate_pair_is_one_odd_character() -> None:
    assert read(pairs({"k\udc00": ["v\ud800"]})) == {"k?": ["v?"]}
