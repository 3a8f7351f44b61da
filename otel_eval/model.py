"""The data that flows through otel_eval. No behaviour beyond what the data itself says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

Json: TypeAlias = Any  # None | bool | int | float | str | list[Json] | dict[str, Json]
Attributes: TypeAlias = Mapping[str, Json]


class Unrecorded(Enum):
    """The type of `UNRECORDED`: a value that the instrumentation did not capture.

    Neither None (a real value) nor `{}` (a call without arguments).
    """

    UNRECORDED = "unrecorded"

    def __repr__(self) -> str:
        return "UNRECORDED"


UNRECORDED: Final = Unrecorded.UNRECORDED
Recorded: TypeAlias = Json | Unrecorded

Kind: TypeAlias = Literal["unspecified", "internal", "server", "client", "producer", "consumer"]
StatusCode: TypeAlias = Literal["unset", "ok", "error"]
ClosedBy: TypeAlias = Literal["root", "idle", "age", "size", "capacity", "shutdown"]
Per: TypeAlias = Literal["trace", "run", "session"]
Verdict: TypeAlias = Literal["pass", "fail", "skip", "error"]
SkipCode: TypeAlias = Literal[
    "arguments_unrecorded",
    "output_unrecorded",
    "incomplete",
    "no_tool_calls",
    "sampled_out",
    "budget",
    "timeout",
    "tools_unknown",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    code: StatusCode = "unset"
    message: str = ""


UNSET: Final = Status()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The instrumentation scope: which library made a span."""

    name: str = ""
    version: str = ""


NO_SCOPE: Final = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    name: str
    time_ns: int = 0
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    trace_id: str
    span_id: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A finished span. Ids are lower-case hex; ids that decode had to make up start with `#`."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    parent_remote: bool | None = None
    """Whether the parent lives in another process; None where the sender did not say."""
    name: str = ""
    kind: Kind = "internal"
    start_ns: int = 0
    end_ns: int = 0
    status: Status = UNSET
    attributes: Attributes = field(default_factory=dict)
    events: Sequence[Event] = ()
    links: Sequence[Link] = ()
    resource: Attributes = field(default_factory=dict)
    scope: Scope = NO_SCOPE


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    name: str
    arguments: Recorded = UNRECORDED
    output: Recorded = UNRECORDED
    error: str | None = None
    call_id: str | None = None
    agent: str | None = None
    span_id: str | None = None
    start_ns: int = 0
    end_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    span_id: str | None = None
    start_ns: int = 0
    end_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the conversation; `time_ns` is when it was first known to exist."""

    role: str
    content: Json
    time_ns: int = 0
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that was offered to a model. `agent` is None where every agent of the trace had it."""

    name: str
    description: str | None = None
    parameters: Json | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The span an evaluation attaches to, as far as sinks and rules need it."""

    trace_id: str
    span_id: str
    end_ns: int = 0
    attributes: Attributes = field(default_factory=dict)
    resource: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """What an agent did: in one trace, in one run of it, or over a session."""

    trace_id: str
    part: int = 1
    per: Per = "trace"
    agent: str | None = None
    session: str | None = None
    service: str | None = None
    dialect: str | None = None
    anchor: Anchor | None = None
    input: Recorded = UNRECORDED
    output: Recorded = UNRECORDED
    tool_calls: Sequence[ToolCall] = ()
    model_calls: Sequence[ModelCall] = ()
    messages: Sequence[Message] = ()
    available_tools: Sequence[Tool] = ()
    start_ns: int = 0
    end_ns: int = 0
    closed_by: ClosedBy = "root"
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Score:
    """How good, from 0 to 1. `reason` names tools, counts and keys; values live in `details`."""

    value: float
    reason: str = ""
    details: Mapping[str, Json] = field(default_factory=dict)
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """What cannot be judged, and why."""

    code: SkipCode
    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """An evaluator that raised."""

    type: str
    message: str


Outcome: TypeAlias = Score | Skip | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One evaluator's answer about one trajectory, or about one tool call of it."""

    rule: str
    evaluator: str
    type: str
    outcome: Outcome
    pass_at: float
    anchor: Anchor
    trajectory: Trajectory
    call: ToolCall | None = None
    sample: float = 1.0

    @property
    def verdict(self) -> Verdict:
        match self.outcome:
            case Score() as score:
                return "pass" if score.value >= self.pass_at else "fail"
            case Skip():
                return "skip"
            case Failure():
                return "error"
