"""From tool spans and messages to tool calls: one call once, its missing fields filled in."""

import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise, takewhile
from typing import TypeAlias, TypeVar

from otel_eval.extract.dialect import Reading, Request, Result, ToolReading
from otel_eval.extract.dialects import Contents
from otel_eval.extract.errors import says_error
from otel_eval.extract.tree import Tree
from otel_eval.extract.values import frozen
from otel_eval.model import UNRECORDED, Recorded, Span

Readings: TypeAlias = Mapping[str, Reading]
Source: TypeAlias = tuple[str, str]
"""The library that wrote a span, and which end of a request it saw."""
Spoken = tuple[Span, ToolReading]
"""A tool span and what it says of its call."""
_NEAREST = 100
"""How many calls of one tool, going on at the same time, are looked at on either side."""


@dataclass(slots=True, kw_only=True)
class Call:
    """A tool call in the making: the spans that speak of it, the outermost first."""

    spans: list[Span]
    reading: ToolReading
    rank: int = 0
    start_ns: int = 0
    end_ns: int = 0

    @property
    def span(self) -> Span:
        return self.spans[0]


Entry: TypeAlias = tuple[int, int, Call]
"""A call by its start, and a number that no other has."""


@dataclass(slots=True)
class Conversation:
    """What the models of a trace asked for and were answered."""

    requests: list[tuple[Span, Request]] = field(default_factory=list)
    """What models put out, in their order, each call id once."""
    ranks: dict[str, int] = field(default_factory=dict)
    """The place among the requests, by call id."""
    dispatched: dict[str, Sequence[Request]] = field(default_factory=dict)
    """What a span handed to the tool spans below it, by span id."""
    results: dict[str, Result] = field(default_factory=dict)

    def ask(self, span: Span, request: Request) -> None:
        if request.call_id is None:
            self.requests.append((span, request))
        elif request.call_id not in self.ranks:
            self.ranks[request.call_id] = len(self.requests)
            self.requests.append((span, request))

    def answer(self, result: Result) -> None:
        """The last word counts: a session's history may hold an older answer under the same id."""
        known = self.results.get(result.call_id or "")
        if result.call_id and (known is None or result.typed or not known.typed):
            self.results[result.call_id] = result

    def requested(self, call_id: str) -> Request | None:
        rank = self.ranks.get(call_id)
        return None if rank is None else self.requests[rank][1]


def conversation(tree: Tree, readings: Readings, contents: Contents) -> Conversation:
    """Collect requests and results from the spans that are no tool calls, in their order."""
    talk = Conversation()
    others = [span for span in tree.spans if readings[span.span_id].tool is None]
    for span in sorted(others, key=lambda s: _turn_order(s, contents)):
        content = contents.of(span)
        if content.requests:
            talk.dispatched[span.span_id] = content.requests
        for turn in content.inputs:
            for result in turn.results:
                talk.answer(result)
        for turn in content.outputs:
            for request in turn.requests if readings[span.span_id].model is not None else ():
                talk.ask(span, request)
            for result in turn.results:
                talk.answer(result)
    return talk


def _turn_order(span: Span, contents: Contents) -> tuple[int, int, int, str]:
    """Of model calls in one tick of a coarse clock, the one with the longer history is later."""
    return span.start_ns, len(contents.of(span).inputs), span.end_ns, span.span_id


def stand_alone(tools: Sequence[Spoken]) -> bool:
    """Whether each tool span is a call by itself and says everything: so it is nearly always."""
    starts = set()
    for span, reading in tools:
        if not _is_told(reading):
            return False
        starts.add(span.start_ns)
    return 0 < len(tools) == len(starts) and _are_distinct(tools)


def all_told(calls: Sequence[Call]) -> bool:
    """Whether the tool spans say everything themselves: values, and the order of the calls."""
    if len({call.start_ns for call in calls}) < len(calls):
        return False
    return all(_is_told(call.reading) for call in calls)


def _is_told(reading: ToolReading) -> bool:
    if reading.arguments is UNRECORDED or not reading.arguments_sure:
        return False
    return reading.error is not None or (reading.output is not UNRECORDED and reading.output_sure)


def _are_distinct(tools: Sequence[Spoken]) -> bool:
    """Whether no two can be one call: one library wrote them, and no call id is there twice."""
    libraries, kinds, ids = set(), set(), []
    for span, reading in tools:
        libraries.add(span.scope.name)
        kinds.add(span.kind)
        if reading.call_id is not None:
            ids.append(reading.call_id)
    if len(libraries) > 1 or kinds.issuperset(("client", "server")):
        return False
    return len(set(ids)) == len(ids)


def completed(tree: Tree, calls: list[Call], talk: Conversation) -> list[Call]:
    """The calls with what the conversation tells of them, in order."""
    if talk.requests or talk.dispatched:
        for call in calls:
            _adopt_parent(tree, call, talk)
        _adopt_by_order(calls, talk)
    for call in calls:
        _fill(call, talk)
    return ordered(calls)


def ordered(calls: Iterable[Call]) -> list[Call]:
    return sorted(calls, key=lambda c: (c.start_ns, c.rank, c.span.span_id))


def recovered(
    tree: Tree,
    talk: Conversation,
    models: Iterable[Span],
    readings: Readings,
    contents: Contents,
) -> Iterator[Call]:
    """Calls of an agent without tool spans, from what its models put out.

    A tool that was not offered was made up. A library that runs the tools itself ran one only if it
    was offered and a model was shown the answer: a structured output is often asked for as a tool.
    """
    ids = {span.span_id for span in models}
    offers = _Offers(tree, contents)
    for rank, (span, request) in enumerate(talk.requests):
        if span.span_id not in ids or not request.name or not request.call_id:
            continue
        result = talk.results.get(request.call_id)
        offered = offers.to(span)
        if readings[span.span_id].runs_tools:
            was_run = result is not None and request.name in offered
        else:
            was_run = not offered or request.name in offered
        if was_run:
            yield _recover(span, request, result, rank)


class _Offers:
    """The names of the tools that a model had, or the agent around it; every span is read once."""

    def __init__(self, tree: Tree, contents: Contents) -> None:
        self._tree = tree
        self._contents = contents
        self._known: dict[str, set[str]] = {}

    def to(self, span: Span) -> set[str]:
        """Empty where nobody says."""
        path: list[Span] = []
        found: set[str] = set()
        for each in chain([span], self._tree.ancestors(span)):
            if each.span_id in self._known:
                found = self._known[each.span_id]
                break
            path.append(each)
            found = {tool.name for tool in self._contents.of(each).tools}
            if found:
                break
        self._known.update({each.span_id: found for each in path})
        return found


def _recover(span: Span, request: Request, result: Result | None, rank: int) -> Call:
    reading = ToolReading(name=request.name, call_id=request.call_id, arguments=request.arguments)
    if result is not None and result.failed:
        reading.error = _error_text(result)
    elif result is not None:
        reading.output = result.output
    return Call(spans=[span], reading=reading, rank=rank, start_ns=span.end_ns, end_ns=span.end_ns)


def spoken(tools: Iterable[Spoken]) -> list[Call]:
    """A call for each tool span."""
    return [
        Call(spans=[span], reading=tool, start_ns=span.start_ns, end_ns=span.end_ns)
        for span, tool in tools
    ]


class _Kept:
    """The calls kept so far, found by call id, by span, or by name and time.

    Only spans of another library, or the other end of a request, can be the same call: so calls
    are kept apart by their source, and those of the own source are never looked at.
    """

    def __init__(self, tree: Tree, calls: Iterable[Call]) -> None:
        self.calls: list[Call] = []
        self._tree = tree
        self._by_id: dict[tuple[str, str], Call] = {}
        self._by_span: dict[str, Call] = {}
        self._places: dict[str, tuple[_Timeline, Entry]] = {}
        self._sources: dict[str, dict[Source, _Lane]] = defaultdict(dict)
        for call in calls:
            self._sources[call.reading.name].setdefault(_source(call.span), _Lane())

    def twin(self, call: Call) -> Call | None:
        """The call that this one is another span of."""
        name, call_id = call.reading.name, call.reading.call_id
        if call_id is not None and (name, call_id) in self._by_id:
            return self._by_id[name, call_id]
        others = [
            lane for source, lane in self._sources[name].items() if source != _source(call.span)
        ]
        if not others:
            return None
        for above in self._tree.ancestors(call.span):
            other = self._by_span.get(above.span_id)
            if other is not None and other.reading.name == name and _may_be_one(other, call):
                return other
        beside = (other for lane in others for other in lane.beside(call))
        possible = (other for other in beside if _may_be_one(other, call) and _agree(other, call))
        return min(possible, key=lambda other: _distance(other, call), default=None)

    def add(self, call: Call) -> None:
        self.calls.append(call)
        entry = (call.start_ns, len(self.calls), call)
        timeline = self._sources[call.reading.name][_source(call.span)].add(entry)
        self._places[call.span.span_id] = timeline, entry
        self._note(call, call.span)

    def absorb(self, kept: Call, other: Call) -> None:
        _absorb(kept, other)
        self._note(kept, other.span)
        if {_source(span) for span in kept.spans} >= self._sources[kept.reading.name].keys():
            # Every source has told of this call: no other span can be one of it.
            timeline, entry = self._places.pop(kept.span.span_id, (None, None))
            if timeline is not None and entry is not None:
                timeline.remove(entry)

    def _note(self, call: Call, span: Span) -> None:
        self._by_span[span.span_id] = call
        if call.reading.call_id is not None:
            self._by_id.setdefault((call.reading.name, call.reading.call_id), call)


class _Lane:
    """The calls of one tool in one source, those with the same arguments together."""

    def __init__(self) -> None:
        self._timelines: dict[Hashable, _Timeline] = defaultdict(_Timeline)

    def add(self, entry: Entry) -> "_Timeline":
        timeline = self._timelines[_written(entry[2])]
        timeline.add(entry)
        return timeline

    def beside(self, call: Call) -> Iterator[Call]:
        """Those that overlap the call and may have its arguments."""
        written = _written(call)
        for each in (written, None) if written is not None else list(self._timelines):
            if each in self._timelines:
                yield from self._timelines[each].around(call)


def _written(call: Call) -> Hashable:
    """The arguments as a key, equal where they are; None where they are not known for sure."""
    reading = call.reading
    if reading.arguments is UNRECORDED or not reading.arguments_sure:
        return None
    return ("", frozen(reading.arguments))


class _Timeline:
    """Calls by their start, to find those that overlap another."""

    def __init__(self) -> None:
        self._calls: list[Entry] = []
        self._longest = 0

    def add(self, entry: Entry) -> None:
        insort(self._calls, entry)
        self._longest = max(self._longest, entry[2].end_ns - entry[0])

    def remove(self, entry: Entry) -> None:
        del self._calls[bisect_left(self._calls, entry[:2])]

    def around(self, call: Call) -> Iterator[Call]:
        """The nearest that overlap. A coarse clock may give the same start and no length."""
        place = bisect_left(self._calls, (call.start_ns,))
        earliest = call.start_ns - self._longest
        before = takewhile(lambda each: each[0] >= earliest, self._backwards(place))
        after = takewhile(lambda each: each[0] <= call.end_ns, self._forwards(place))
        for _, _, other in chain(islice(before, _NEAREST), islice(after, _NEAREST)):
            if _overlap(other, call):
                yield other

    def _forwards(self, place: int) -> Iterator[Entry]:
        return (self._calls[at] for at in range(place, len(self._calls)))

    def _backwards(self, place: int) -> Iterator[Entry]:
        return (self._calls[at] for at in range(place - 1, -1, -1))


def _overlap(one: Call, two: Call) -> bool:
    last_start = max(one.start_ns, two.start_ns)
    return one.start_ns == two.start_ns or min(one.end_ns, two.end_ns) > last_start


def _source(span: Span) -> Source:
    return span.scope.name, span.kind


def _agree(one: Call, two: Call) -> bool:
    """Calls side by side with other arguments are other calls."""
    mine, theirs = one.reading, two.reading
    known = mine.arguments is not UNRECORDED and theirs.arguments is not UNRECORDED
    sure = mine.arguments_sure and theirs.arguments_sure
    return not (known and sure) or mine.arguments == theirs.arguments


def merge(tree: Tree, calls: list[Call]) -> list[Call]:
    """Make one call of the spans that speak of the same call; the outermost wins."""
    if _are_distinct([(call.spans[0], call.reading) for call in calls]):
        return calls
    kept = _Kept(tree, calls)
    for call in sorted(calls, key=lambda c: (tree.depth(c.span), c.start_ns, c.span.span_id)):
        twin = kept.twin(call)
        if twin is None:
            kept.add(call)
        else:
            kept.absorb(twin, call)
    return kept.calls


def _may_be_one(other: Call, call: Call) -> bool:
    if other.reading.call_id and call.reading.call_id:
        return False
    return all(_differ(each, call.span) for each in other.spans)


def _differ(one: Span, two: Span) -> bool:
    """Different libraries, or the two ends of one request."""
    return one.scope.name != two.scope.name or {one.kind, two.kind} == {"client", "server"}


def _distance(one: Call, two: Call) -> tuple[bool, int]:
    unequal = one.reading.arguments != two.reading.arguments
    return unequal, abs(one.start_ns - two.start_ns) + abs(one.end_ns - two.end_ns)


def _absorb(kept: Call, other: Call) -> None:
    mine, theirs = kept.reading, other.reading
    mine.call_id = mine.call_id or theirs.call_id
    mine.error = mine.error if mine.error is not None else theirs.error
    if _better(theirs.arguments, theirs.arguments_sure, mine.arguments, mine.arguments_sure):
        mine.arguments, mine.arguments_sure = theirs.arguments, theirs.arguments_sure
    if _better(theirs.output, theirs.output_sure, mine.output, mine.output_sure):
        mine.output, mine.output_sure = theirs.output, theirs.output_sure
    if mine.error is not None:
        mine.output = UNRECORDED
    kept.spans.append(other.span)


def _better(theirs: Recorded, sure: bool, mine: Recorded, mine_sure: bool) -> bool:
    return theirs is not UNRECORDED and (mine is UNRECORDED or (sure and not mine_sure))


def _adopt_parent(tree: Tree, call: Call, talk: Conversation) -> None:
    """A node that was handed exactly one call of this name dispatched this one."""
    if call.reading.call_id is not None or not talk.dispatched:
        return
    for above in tree.ancestors(call.span):
        named = [r for r in talk.dispatched.get(above.span_id, ()) if r.name == call.reading.name]
        if len(named) == 1:
            _adopt(call.reading, named[0])
            return


def _adopt_by_order(calls: Sequence[Call], talk: Conversation) -> None:
    """Without ids, the n-th call of a name is the n-th request of it, if there are as many."""
    taken = {call.reading.call_id for call in calls}
    requests: dict[str, list[Request]] = defaultdict(list)
    for _, request in talk.requests:
        if request.call_id is None or request.call_id not in taken:
            requests[request.name].append(request)
    waiting: dict[str, list[Call]] = defaultdict(list)
    for call in sorted(calls, key=lambda c: (c.start_ns, c.span.span_id)):
        if call.reading.call_id is None:
            waiting[call.reading.name].append(call)
    for name, named in waiting.items():
        if _in_sequence(named) and len(named) == len(requests[name]):
            for call, request in zip(named, requests[name], strict=True):
                _adopt(call.reading, request)
        else:
            _adopt_by_arguments(named, requests[name])


def _in_sequence(calls: Sequence[Call]) -> bool:
    """Calls that run side by side may start in another order than they were asked for."""
    return all(one.end_ns <= two.start_ns for one, two in pairwise(calls))


def _adopt_by_arguments(calls: Sequence[Call], requests: Sequence[Request]) -> None:
    """Equal arguments join a call and its request, unless there are several of either."""
    if not requests:
        return
    asked, made = _by_arguments(requests), _by_arguments([call.reading for call in calls])
    for written, readings in made.items():
        if len(readings) == 1 and len(asked.get(written, ())) == 1:
            _adopt(readings[0], asked[written][0])


T = TypeVar("T", ToolReading, Request)


def _by_arguments(items: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for item in items:
        if item.arguments is not UNRECORDED:
            found[json.dumps(item.arguments, sort_keys=True, default=repr)].append(item)
    return found


def _adopt(reading: ToolReading, request: Request) -> None:
    if _contradicts(reading, request):
        return
    reading.call_id = request.call_id
    if request.bare and reading.arguments is UNRECORDED and not reading.arguments_bare:
        reading.arguments = {}  # neither side has any, though both were recorded
    if request.arguments is UNRECORDED:
        return
    if reading.arguments is UNRECORDED or not reading.arguments_sure:
        reading.arguments = request.arguments


def _contradicts(reading: ToolReading, request: Request) -> bool:
    known = reading.arguments_sure and reading.arguments is not UNRECORDED
    return known and request.arguments is not UNRECORDED and reading.arguments != request.arguments


def _fill(call: Call, talk: Conversation) -> None:
    reading = call.reading
    call_id = reading.call_id
    if call_id is not None:
        call.rank = talk.ranks.get(call_id, len(talk.requests))
        request = talk.requested(call_id)
        if request is not None and request.name == reading.name:
            _adopt(reading, request)
        result = talk.results.get(call_id)
        if result is not None and reading.error is None:
            _fill_output(reading, result)
            if result.failed and reading.output is UNRECORDED:
                reading.error = _error_text(result)
    mark_error(reading)


def mark_error(reading: ToolReading) -> None:
    """A call whose result says so went wrong, whatever its span says."""
    if reading.error is None and says_error(reading.output):
        reading.error = "the result says isError"


def _error_text(result: Result) -> str:
    return "error" if result.output is UNRECORDED else str(result.output)


def _fill_output(reading: ToolReading, result: Result) -> None:
    if result.output is UNRECORDED or result.failed:
        return
    if reading.output_text is not None and reading.output_text == result.text:
        reading.output = reading.output_text
        return
    missing = reading.output is UNRECORDED and reading.output_fillable
    if missing or (not reading.output_sure and result.typed):
        reading.output = result.output
