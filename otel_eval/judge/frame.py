"""What a judge is shown, in which order: tools, the conversation so far, what is to be judged."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from threading import local
from typing import TypeAlias, TypeVar

from otel_eval.judge.question import Section
from otel_eval.judge.redaction import Redactor
from otel_eval.model import UNRECORDED, Message, Recorded, Tool, ToolCall, Trajectory

Timed: TypeAlias = tuple[int, str]
P = TypeVar("P")

TOOLS = "Tools that were available to the agent:"
SO_FAR = "The conversation up to the moment of the call:"
CALL = "The tool call to be judged:"
ALL = "The conversation, with all tool calls:"
OUTPUT = "What the agent answered in the end:"
NOTHING = "nothing was recorded"


def visible_messages(trajectory: Trajectory, call: ToolCall) -> list[Message]:
    """Those that existed when the call was made; without times, only what nobody but the user
    and the system can have said."""
    if not call.start_ns:
        return [each for each in trajectory.messages if each.role in ("system", "user")]
    return [each for each in trajectory.messages if each.time_ns <= call.start_ns]


def earlier_calls(trajectory: Trajectory, call: ToolCall) -> list[ToolCall]:
    """Those that ended before the call was made. Calls side by side know nothing of each other."""
    calls = trajectory.tool_calls
    if not call.start_ns:
        at = next((at for at, each in enumerate(calls) if each is call), 0)
        return [each for each in calls[:at] if not each.start_ns]
    return [
        each for each in calls if each.end_ns <= call.start_ns and each.start_ns < call.start_ns
    ]


def _offered(tool: Tool, call: ToolCall) -> bool:
    return tool.agent is None or call.agent is None or tool.agent == call.agent


class Frame:
    """One trajectory in words, all of them redacted. Each part of it is put into words once,
    however many calls are judged by it."""

    def __init__(self, trajectory: Trajectory, redactor: Redactor) -> None:
        self.trajectory = trajectory
        self._text = redactor.text
        self._value = redactor.value
        self._told: dict[int, str] = {}

    def of_call(self, call: ToolCall) -> list[Section]:
        """For the judgement of one call: what was known when it was made, and never its result."""
        tools = [tool for tool in self.trajectory.available_tools if _offered(tool, call)]
        return [
            Section(title=TOOLS, entries=self._tools(tools), share=0.25),
            Section(title=SO_FAR, entries=self._before(call), share=0.5),
            Section(title=CALL, entries=(self._target(call),), share=0.25),
        ]

    def of_all(self) -> list[Section]:
        """For the judgement of everything that was done."""
        of = self.trajectory
        everything = self._conversation(of.messages, of.tool_calls)
        return [
            Section(title=TOOLS, entries=self._tools(of.available_tools), share=0.2),
            Section(title=ALL, entries=everything, share=0.6),
            Section(title=OUTPUT, entries=(self._recorded(of.output),), share=0.2),
        ]

    def _tools(self, tools: Sequence[Tool]) -> tuple[str, ...]:
        """The same tool may have been offered to several agents."""
        told = dict.fromkeys(self._once(each, self._tool) for each in tools)
        return tuple(told) or ("none were recorded",)

    def _before(self, call: ToolCall) -> tuple[str, ...]:
        messages = visible_messages(self.trajectory, call)
        return self._conversation(messages, earlier_calls(self.trajectory, call))

    def _target(self, call: ToolCall) -> str:
        trajectory = self.trajectory
        number = 1 + sum(each.start_ns < call.start_ns for each in trajectory.tool_calls)
        lines = [self._called(call)]
        if call.start_ns and trajectory.start_ns:
            after = (call.start_ns - trajectory.start_ns) / 1e9
            lines.append(f"made {after:.3f} s after the start, as tool call number {number}")
        if not trajectory.whole:
            lines.append("spans of this trace are missing, so there may have been more before it")
        return "\n".join(lines)

    def _conversation(
        self, messages: Sequence[Message], calls: Iterable[ToolCall]
    ) -> tuple[str, ...]:
        said = [(each.time_ns, self._once(each, self._message)) for each in messages]
        done = [(each.start_ns, self._once(each, self._done)) for each in calls]
        spoken = any(each.role == "user" for each in messages)
        asked = [] if spoken else self._input()
        ordered = sorted([*asked, *said, *done], key=itemgetter(0))
        return tuple(text for _, text in ordered) or (NOTHING,)

    def _once(self, part: P, tell: Callable[[P], str]) -> str:
        """By identity, which holds as long as the trajectory is held."""
        if id(part) not in self._told:
            self._told[id(part)] = tell(part)
        return self._told[id(part)]

    def _recorded(self, value: Recorded) -> str:
        return "not recorded" if value is UNRECORDED else self._value(value)

    def _input(self) -> list[Timed]:
        if self.trajectory.input is UNRECORDED:
            return []
        return [(0, f"user: {self._value(self.trajectory.input)}")]

    def _message(self, message: Message) -> str:
        """Which agent it is of or for, unless that is the one that the trace is about."""
        other = message.agent if message.agent != self.trajectory.agent else None
        word = "to" if message.role in ("user", "system") else "by"
        who = f" {word} {self._text(other)}" if other else ""
        return f"{self._text(message.role)}{who}: {self._value(message.content)}"

    def _tool(self, tool: Tool) -> str:
        return "\n".join(self._tool_lines(tool))

    def _tool_lines(self, tool: Tool) -> Iterator[str]:
        yield self._text(f"{tool.name}: {tool.description or 'no description was recorded'}")
        if tool.parameters is None:
            yield "  parameters: not recorded"
        else:
            yield f"  parameters: {self._value(tool.parameters)}"

    def _called(self, call: ToolCall) -> str:
        by = f" by {self._text(call.agent)}" if call.agent else ""
        return (
            f"tool call{by}: {self._text(call.name)}\n  arguments: {self._recorded(call.arguments)}"
        )

    def _done(self, call: ToolCall) -> str:
        if call.error is not None:
            return f"{self._called(call)}\n  error: {self._text(call.error)}"
        return f"{self._called(call)}\n  result: {self._recorded(call.output)}"


class Frames:
    """The frame of what each thread is judging, until it has done so."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._current = local()

    def of(self, trajectory: Trajectory) -> Frame:
        frame: Frame | None = getattr(self._current, "frame", None)
        if frame is None or frame.trajectory is not trajectory:
            frame = self._current.frame = Frame(trajectory, self._redactor)
        return frame

    def forget(self) -> None:
        self._current.frame = None
