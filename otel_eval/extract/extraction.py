"""One trace, read once; trajectories of the whole, of an agent or of a run on demand."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from otel_eval.drafts import quick
from otel_eval.extract.calls import (
    Call,
    Conversation,
    all_told,
    completed,
    conversation,
    mark_error,
    merge,
    ordered,
    recovered,
    spoken,
    stand_alone,
)
from otel_eval.extract.common import text
from otel_eval.extract.dialect import Content, Dialect, Reading, ToolReading
from otel_eval.extract.dialects import Contents, read
from otel_eval.extract.tree import Tree
from otel_eval.model import (
    UNRECORDED,
    Anchor,
    Attributes,
    ClosedBy,
    Message,
    ModelCall,
    Recorded,
    Span,
    Tool,
    ToolCall,
    Trajectory,
)

_AGENT_KEYS = ("gen_ai.agent.name", "agent.name")
_SESSION_KEYS = ("session.id", "gen_ai.conversation.id")
_make_anchor = quick(Anchor)
_make_tool_call = quick(ToolCall)
_make_trajectory = quick(Trajectory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Extra attribute names for the agent and the session, tried before every dialect's own."""

    agent: Sequence[str] = ()
    session: Sequence[str] = ()


_NO_KEYS = Keys()


class Extraction:
    """The spans of one trace and what they say.

    Without `conversation`, trajectories have no input, output, messages and available tools: to
    parse them costs more than all the rest, and few evaluators look at them.
    """

    def __init__(
        self,
        spans: Iterable[Span],
        keys: Keys,
        *,
        part: int,
        closed_by: ClosedBy,
        whole: bool,
        conversation: bool,
    ) -> None:
        self._tree = Tree(spans)
        self._keys = keys
        self._part = part
        self._closed_by: ClosedBy = closed_by
        self._whole = whole
        self._conversation = conversation
        self._session_keys = (*keys.session, *_SESSION_KEYS)
        self._readings: dict[str, Reading] = {}
        self._tools: list[tuple[Span, ToolReading]] = []
        self._no_calls: list[Span] = []
        self._speakers: list[Span] = []
        """All model spans; the content may be on a span around the one that counts."""
        self._agent_spans: list[Span] = []
        """The outermost first."""
        self._dialects: dict[str, Dialect] = {}
        self._agents: dict[str, str] = {}
        """What spans say themselves."""
        self._tasks: list[Span] = []
        self._read_all()
        self._contents = Contents(self._dialects)
        if self._tasks:
            self._mark_tasks()
        if len(self._agent_spans) > 1:
            depth = self._tree.depth
            self._agent_spans.sort(key=lambda s: (depth(s), s.start_ns, s.span_id))
        self._agents_of = Inherited(self._tree, self._agents, (*keys.agent, *_AGENT_KEYS))
        # What is worked out when it is first asked for:
        self._agent_names: Sequence[str] | None = None
        self._trace: Trajectory | None = None
        self._calls: Sequence[ToolCall] | None = None
        self._models: Sequence[Span] | None = None
        self._sessions_of: Inherited | None = None

    def _read_all(self) -> None:
        """One pass, and in one piece, because it runs for every span."""
        named_otherwise = bool(self._keys.agent)
        readings, dialects, agents = self._readings, self._dialects, self._agents
        for span in self._tree.spans:
            dialect, reading = read(span)
            span_id, attributes = span.span_id, span.attributes
            readings[span_id] = reading
            if dialect is not None:
                dialects[span_id] = dialect
            tool, agent = reading.tool, reading.agent
            if tool is not None:
                if attributes.get("tool.synthesized") is not True:
                    self._tools.append((span, tool))
            elif reading.no_call:
                self._no_calls.append(span)
            if reading.model is not None:
                self._speakers.append(span)
            if reading.agent_span:
                self._agent_spans.append(span)
            if "gen_ai.task.name" in attributes:
                self._tasks.append(span)
            if named_otherwise or (
                not agent and ("agent.name" in attributes or "gen_ai.agent.name" in attributes)
            ):
                agent = self._own_agent(attributes, reading)
            if agent:
                agents[span_id] = agent

    def _session(self, span: Span) -> str | None:
        """What the span says itself, or inherits."""
        if self._sessions_of is None:
            own = ((each.span_id, self._own_session(each)) for each in self._tree.spans)
            said = {span_id: session for span_id, session in own if session}
            self._sessions_of = Inherited(self._tree, said, self._session_keys)
        return self._sessions_of.of(span)

    @property
    def is_agent_trace(self) -> bool:
        """Whether the trace holds a tool call, a model call or an agent span."""
        if self._tools or self._speakers or self._agent_spans:
            return True
        return any(reading.tool is not None for reading in self._readings.values())

    def _dialect(self) -> str | None:
        """The one that most of the trace is written in; a tool call says twice as much about that
        as other spans do."""
        written_in = set(self._dialects.values())
        if len(written_in) == 1:
            return written_in.pop().id if self.is_agent_trace else None
        votes: dict[str, int] = {}
        for span_id, dialect in self._dialects.items():
            reading = self._readings[span_id]
            if reading.is_something:
                votes[dialect.id] = votes.get(dialect.id, 0) + (1 if reading.tool is None else 2)
        return max(votes, key=votes.__getitem__, default=None)

    @property
    def agents(self) -> Sequence[str]:
        """The agents with spans of their own, outermost first, then those that spans only name."""
        if self._agent_names is None:
            self._agent_names = self._find_agents()
        return self._agent_names

    def _find_agents(self) -> Sequence[str]:
        named = [name for span in self._agent_spans if (name := self._agent(span))]
        found = list(dict.fromkeys((*named, *self._agents_of.said.values())))
        return found or ([self.trace.agent] if self.trace.agent else [])

    @property
    def trace(self) -> Trajectory:
        """The whole trace; its agent is the outermost agent span's."""
        if self._trace is None:
            self._trace = self._read_trace()
        return self._trace

    def _read_trace(self) -> Trajectory:
        root = self._tree.root
        head = self._agent_spans[0] if self._agent_spans else root
        agent = self._agent(head) if head is not None else None
        return self._build(self._tree.spans, anchor=root, head=head, agent=agent)

    def by_agent(self, agent: str, *, nested: bool = True) -> Trajectory:
        """What is under all agent spans of that name, and what says or inherits the name.

        The anchor is the first outermost agent span; without any, the first span with the name.
        """
        heads = self._tree.outermost(self._spans_of(agent))
        spans = self._tree.spans
        if self._agents_of.only != agent:  # else all spans are of that agent
            ids = {span.span_id for span in self._tree.below(heads)} if nested and heads else ()
            spans = [s for s in spans if s.span_id in ids or self._agent(s) == agent]
        if not spans:  # nobody is named, and the service stands for the agent
            return self.trace
        anchor = (heads or spans)[0]
        return self._build(spans, anchor=anchor, head=None, agent=agent, around=heads)

    def runs(self, agent: str | None = None, *, nested: bool = True) -> Sequence[Trajectory]:
        """One trajectory per outermost agent span (of that name)."""
        chosen = self._agent_spans if agent is None else self._spans_of(agent)
        heads = self._tree.outermost(chosen)
        if len(heads) > 1:
            return [self._run(head, self._agent(head) or agent, nested) for head in heads]
        only = agent or (self._agent(heads[0]) if heads else None)
        found = self.trace if only is None else self.by_agent(only, nested=nested)
        return [replace(found, per="run")]

    def _run(self, head: Span, agent: str | None, nested: bool) -> Trajectory:
        spans = self._tree.below([head])
        if not nested:
            spans = [span for span in spans if self._agent(span) == agent]
        return replace(self._build(spans, anchor=head, head=None, agent=agent), per="run")

    def _spans_of(self, agent: str) -> Sequence[Span]:
        return [span for span in self._agent_spans if self._agent(span) == agent]

    def _mark_tasks(self) -> None:
        """Traceloop writes a nested agent twice: an empty span, and a task of the same name."""
        names = {self._readings[span.span_id].agent for span in self._agent_spans} - {None}
        for span in self._tasks:
            reading = self._readings[span.span_id]
            task = text(span.attributes.get("gen_ai.task.name"))
            if (
                task
                and task in names
                and not reading.agent_span
                and span.name.startswith("execute_task")
            ):
                marked = self._readings[span.span_id] = copy(reading)
                marked.agent_span, marked.agent = True, task
                self._agents[span.span_id] = self._own_agent(span.attributes, marked) or task
                self._agent_spans.append(span)

    def _find_calls(self) -> Sequence[ToolCall]:
        agent = self._agents_of.only
        if agent is not None and not self._conversation and stand_alone(self._tools):
            return [_own_call(span, reading, agent) for span, reading in self._tools]
        calls = merge(self._tree, spoken(self._tools))
        models = self._without_tool_spans(calls)
        talk = Conversation()
        if models or self._conversation or not all_told(calls):
            talk = conversation(self._tree, self._readings, self._contents)
        calls = completed(self._tree, calls, talk)
        if models:
            known = {call.reading.call_id for call in calls}
            found = recovered(self._tree, talk, models, self._readings, self._contents)
            calls = ordered((*calls, *(c for c in found if c.reading.call_id not in known)))
        return [_tool_call(c, self._agent(c.span)) for c in calls]

    def _without_tool_spans(self, calls: Sequence[Call]) -> Sequence[Span]:
        """The model spans of agents without tool spans; none where a call's agent is unknown."""
        if calls and self._agents_of.only is not None:
            return ()
        served = {self._agent(span) for call in calls for span in call.spans}
        served |= {self._agent(span) for span in self._no_calls}
        if None in served:
            return ()
        known = served | {None} if calls else served
        writers = {span.scope.name for call in calls for span in call.spans}
        models = [span for span in self._speakers if self._agent(span) not in known]
        return [span for span in models if not self._writes_tools(span, writers)]

    def _writes_tools(self, model: Span, writers: set[str]) -> bool:
        """Whether the library of a model span has written the tool calls of this trace itself."""
        return self._readings[model.span_id].runs_tools and model.scope.name in writers

    def _find_models(self) -> Sequence[Span]:
        """The model calls: of spans that wrap or repeat each other, the innermost and first."""
        spans = self._speakers
        outer = self._tree.above(spans)
        inner = [span for span in spans if span.span_id not in outer]
        if len({span.scope.name for span in inner}) < 2:
            return inner
        kept: list[Span] = []
        going_on: dict[int | None, list[Span]] = {}
        for span in inner:  # by their start: what has ended by now overlaps none of the rest
            model = self._model(span)
            tokens = model.input_tokens if model else None
            beside = [each for each in going_on.get(tokens, ()) if each.end_ns >= span.start_ns]
            if not any(self._same_call(span, each) for each in beside):
                kept.append(span)
                beside.append(span)
            going_on[tokens] = beside
        return kept

    @staticmethod
    def _same_call(one: Span, two: Span) -> bool:
        """Of two model calls with as many tokens."""
        if one.scope.name == two.scope.name:
            return False
        return one.start_ns <= two.end_ns and two.start_ns <= one.end_ns

    def _build(
        self,
        spans: Sequence[Span],
        *,
        anchor: Span | None,
        head: Span | None,
        agent: str | None,
        around: Sequence[Span] = (),
    ) -> Trajectory:
        """The trajectory of these spans; `head` speaks for the agent where the anchor does not.

        It lasts as long as `around`, so that an agent is not charged with its caller's time.
        """
        if self._calls is None or self._models is None:
            self._calls, self._models = self._find_calls(), self._find_models()
        calls, models = self._calls, self._models
        if len(spans) < len(self._tree.spans):
            inside = {span.span_id for span in spans}
            calls = [call for call in calls if call.span_id in inside]
            models = [span for span in models if span.span_id in inside]
        timed = around or spans
        head = head or anchor
        service = _service(anchor)
        trajectory = _make_trajectory(
            trace_id=anchor.trace_id if anchor is not None else "",
            agent=agent or service,
            session=self._session_of(anchor, head),
            service=service,
            dialect=self._dialect(),
            anchor=_anchor(anchor),
            tool_calls=tuple(calls),
            model_calls=tuple([call for span in models if (call := self._model(span))]),
            start_ns=min([span.start_ns for span in timed], default=0),
            end_ns=max([span.end_ns for span in timed], default=0),
            part=self._part,
            closed_by=self._closed_by,
            whole=self._whole,
        )
        return self._told(trajectory, spans, head) if self._conversation else trajectory

    def _told(self, trajectory: Trajectory, spans: Sequence[Span], head: Span | None) -> Trajectory:
        inside = {span.span_id for span in spans}
        speakers = [span for span in self._speakers if span.span_id in inside]
        return replace(
            trajectory,
            input=self._said(head, speakers, lambda content: content.input),
            output=self._said(head, speakers[::-1], lambda content: content.output),
            messages=tuple(self._messages(speakers)),
            available_tools=tuple(self._available(spans)),
        )

    def _model(self, span: Span) -> ModelCall | None:
        return self._readings[span.span_id].model

    def _said(
        self, head: Span | None, speakers: Sequence[Span], side: Callable[[Content], Recorded]
    ) -> Recorded:
        """What the agent's span says, else what its first (or last) model call says."""
        for span in ([] if head is None else [head]) + list(speakers):
            found = side(self._contents.of(span))
            if found is not UNRECORDED:
                return found
        return UNRECORDED

    def _messages(self, speakers: Iterable[Span]) -> Iterable[Message]:
        """Each message once: inputs exist when the model call starts, outputs when it ends."""
        seen: set[tuple[str, str]] = set()
        for span in speakers:
            content, agent = self._contents.of(span), self._agent(span)
            timed = [(turn, span.start_ns) for turn in content.inputs]
            timed += [(turn, span.end_ns) for turn in content.outputs]
            for turn, time_ns in timed:
                if turn.text and turn.role != "tool" and (turn.role, turn.text) not in seen:
                    seen.add((turn.role, turn.text))
                    yield Message(role=turn.role, content=turn.text, time_ns=time_ns, agent=agent)

    def _available(self, spans: Iterable[Span]) -> Iterable[Tool]:
        best: dict[tuple[str | None, str], Tool] = {}
        for span in spans:
            for tool in self._contents.of(span).tools:
                agent = self._agent(span)
                known = best.get((agent, tool.name))
                if known is None or known.parameters is None:
                    best[agent, tool.name] = replace(tool, agent=agent)
        return best.values()

    def _agent(self, span: Span) -> str | None:
        return self._agents_of.of(span)

    def _session_of(self, anchor: Span | None, head: Span | None) -> str | None:
        for span in (anchor, head):
            # Most say it themselves, and then nobody has to look at the others.
            found = span and (self._own_session(span) or self._session(span))
            if found:
                return found
        return None

    def _own_agent(self, attributes: Attributes, reading: Reading) -> str | None:
        keys = self._keys.agent
        if keys and (found := _looked_up(attributes, keys)):
            return found
        if reading.agent:
            return reading.agent
        if "gen_ai.agent.name" in attributes or "agent.name" in attributes:
            return _looked_up(attributes, _AGENT_KEYS)
        return None

    def _own_session(self, span: Span) -> str | None:
        named = _looked_up(span.attributes, self._session_keys)
        return named or self._readings[span.span_id].session


class Inherited:
    """What a span says, else its nearest ancestor, the trace if it names only one, the resource."""

    def __init__(self, tree: Tree, said: Mapping[str, str], resource_keys: Sequence[str]) -> None:
        """`said`: by the spans that say it themselves."""
        self._tree = tree
        self._resource_keys = resource_keys
        self.said = said
        everywhere = set(said.values())
        self.only = next(iter(everywhere)) if len(everywhere) == 1 else None

    def of(self, span: Span) -> str | None:
        if self.only is not None:
            return self.only
        if span.span_id in self.said:
            return self.said[span.span_id]
        for above in self._tree.ancestors(span) if self.said else ():
            if above.span_id in self.said:
                return self.said[above.span_id]
        return _looked_up(span.resource, self._resource_keys)


def extract(
    spans: Iterable[Span],
    *,
    keys: Keys | None = None,
    part: int = 1,
    closed_by: ClosedBy = "root",
    whole: bool = True,
    conversation: bool = True,
) -> Extraction:
    """Read the spans of one trace."""
    return Extraction(
        spans,
        keys or _NO_KEYS,
        part=part,
        closed_by=closed_by,
        whole=whole,
        conversation=conversation,
    )


def join(trajectories: Iterable[Trajectory], *, part: int = 1, closed_by: ClosedBy) -> Trajectory:
    """The traces of a session as one trajectory, ordered by start."""
    parts = sorted(trajectories, key=lambda t: (t.start_ns, t.trace_id))
    first, last = parts[0], parts[-1]
    return replace(
        first,
        part=part,
        per="session",
        output=last.output,
        tool_calls=tuple(call for each in parts for call in each.tool_calls),
        model_calls=tuple(call for each in parts for call in each.model_calls),
        messages=tuple(message for each in parts for message in each.messages),
        available_tools=_tools_of(parts),
        end_ns=max(each.end_ns for each in parts),
        closed_by=closed_by,
        whole=all(each.whole for each in parts),
    )


def trajectories(spans: Iterable[Span], *, keys: Keys | None = None) -> Sequence[Trajectory]:
    """The whole-trace trajectory of each trace that holds a tool call, a model call or an agent."""
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    extractions = [extract(group, keys=keys) for group in traces.values()]
    return [each.trace for each in extractions if each.is_agent_trace]


def _tools_of(parts: Iterable[Trajectory]) -> Sequence[Tool]:
    found: dict[tuple[str | None, str], Tool] = {}
    for each in parts:
        for tool in each.available_tools:
            found.setdefault((tool.agent, tool.name), tool)
    return tuple(found.values())


def _looked_up(attributes: Mapping[str, object], keys: Iterable[str]) -> str | None:
    for key in keys:
        if key in attributes:
            raw = attributes[key]
            if raw is not None and raw != "":
                return str(raw)
    return None


def _own_call(span: Span, reading: ToolReading, agent: str) -> ToolCall:
    """A tool span that is a call by itself."""
    mark_error(reading)
    return _make_tool_call(
        name=reading.name,
        arguments=reading.arguments,
        output=reading.output,
        error=reading.error,
        call_id=reading.call_id,
        agent=agent,
        span_id=span.span_id,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
    )


def _tool_call(call: Call, agent: str | None) -> ToolCall:
    reading = call.reading
    return _make_tool_call(
        name=reading.name,
        arguments=reading.arguments,
        output=reading.output,
        error=reading.error,
        call_id=reading.call_id,
        agent=agent,
        span_id=call.span.span_id,
        start_ns=call.start_ns,
        end_ns=call.end_ns,
    )


def _service(span: Span | None) -> str | None:
    return text(span.resource.get("service.name")) if span is not None else None


def _anchor(span: Span | None) -> Anchor | None:
    if span is None:
        return None
    return _make_anchor(
        trace_id=span.trace_id,
        span_id=span.span_id,
        end_ns=span.end_ns,
        attributes=span.attributes,
        resource=span.resource,
    )
