"""Random spans for hypothesis."""

from dataclasses import replace

from hypothesis import strategies as st

from otel_eval.model import Event, Link, Scope, Span, Status
from tests.decode.encoders import CODES, KINDS

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
times = st.integers(0, 2**64 - 1)
trace_ids = st.integers(1, 2**128 - 1).map(lambda number: f"{number:032x}")
span_ids = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
attributes = st.dictionaries(texts, values, max_size=4)
events = st.builds(Event, name=texts, time_ns=times, attributes=attributes)
links = st.builds(Link, trace_id=trace_ids, span_id=span_ids, attributes=attributes)
parents = st.one_of(
    st.just((None, None)), st.tuples(span_ids, st.sampled_from([None, False, True]))
)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    parent_id, parent_remote = draw(parents)
    return Span(
        trace_id=draw(trace_ids),
        span_id=draw(span_ids),
        parent_id=parent_id,
        parent_remote=parent_remote,
        name=draw(texts),
        kind=draw(st.sampled_from(KINDS)),
        start_ns=draw(times),
        end_ns=draw(times),
        status=draw(st.builds(Status, code=st.sampled_from(CODES), message=texts)),
        attributes=draw(attributes),
        events=draw(st.lists(events, max_size=2)) or (),
        links=draw(st.lists(links, max_size=2)) or (),
        resource=draw(attributes),
        scope=draw(st.builds(Scope, name=texts, version=texts)),
    )


@st.composite
def sdk_spans(draw: st.DrawFn) -> list[Span]:
    """Spans as one SDK can have them: of one resource, and each field as the SDK restricts it."""
    resource = draw(st.dictionaries(texts.filter(bool), texts, max_size=3))
    return [
        replace(
            each,
            resource=resource,
            kind="internal" if each.kind == "unspecified" else each.kind,
            parent_remote=bool(each.parent_remote) if each.parent_id else None,
            status=each.status if each.status.code == "error" else Status(code=each.status.code),
        )
        for each in draw(st.lists(spans(), max_size=3))
    ]
