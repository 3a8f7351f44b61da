"""What a dialect reads from one span, and the protocol it does so by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from otel_eval.model import UNRECORDED, ModelCall, Recorded, Span, Tool


class ToolReading:
    """One span's word about a tool call."""

    # What few spans say stands in the class: to set it on each would take as long as all the rest.
    arguments_sure: bool = True
    """False where the encoding is ambiguous, so that a message with the same call id decides."""
    arguments_bare: bool = False
    """The span has a value that cannot be read, nameless or cut off: so there are arguments."""
    output_sure: bool = True
    """False where the text may be a text or a value, so that a typed message decides."""
    output_fillable: bool = True
    """False where a missing output must not be taken from a message."""
    output_text: str | None = None
    """What the output was if a message says the same: the span alone cannot tell it from JSON."""

    def __init__(
        self,
        *,
        name: str,
        arguments: Recorded = UNRECORDED,
        output: Recorded = UNRECORDED,
        error: str | None = None,
        call_id: str | None = None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.output = output
        self.error = error
        self.call_id = call_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A tool call as a model asked for it."""

    name: str
    call_id: str | None = None
    arguments: Recorded = UNRECORDED
    bare: bool = False
    """The request says nothing of arguments, as some libraries do where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A tool's answer as a model was shown it."""

    call_id: str | None = None
    output: Recorded = UNRECORDED
    typed: bool = False
    """Whether the message keeps the value's JSON type (then it settles an ambiguous span)."""
    text: str | None = None
    """The answer as it stands in the message, where it is a text."""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    role: str
    text: str = ""
    requests: Sequence[Request] = ()
    results: Sequence[Result] = ()


class Reading:
    """What a span is: a tool call, a model call, an agent, or none of them; and whose.

    A dialect sets what it finds; the rest stands in the class, for there is one for every span.
    """

    agent: str | None = None
    session: str | None = None
    tool: ToolReading | None = None
    model: ModelCall | None = None
    agent_span: bool = False
    no_call: bool = False
    """A tool span that is no call, such as a handoff: its agent has tool spans all the same."""
    runs_tools: bool = False
    """On a model span: the library runs the tools itself, and writes a span for each call."""

    @property
    def is_something(self) -> bool:
        return self.agent_span or self.model is not None or self.tool is not None


@dataclass(slots=True, kw_only=True)
class Content:
    """What was said around the tool calls: long to parse, and not always needed."""

    inputs: Sequence[Turn] = ()
    outputs: Sequence[Turn] = ()
    tools: Sequence[Tool] = ()
    requests: Sequence[Request] = ()
    """Calls that this span dispatched to tool spans below it; they are no model output."""
    input: Recorded = UNRECORDED
    output: Recorded = UNRECORDED


class Dialect(Protocol):
    """How one instrumentation family writes spans."""

    id: str

    def reads(self, span: Span) -> bool:
        """Whether this dialect wrote the span: a look at the scope's name or a key or two, no more.

        Spans without events that have the same scope and keys get the same answer.
        """
        ...

    def read(self, span: Span) -> Reading:
        """What the span is. Values that it does not hold stay UNRECORDED."""
        ...

    def content(self, span: Span) -> Content:
        """The conversation that the span holds, and the tools that were offered in it."""
        ...
