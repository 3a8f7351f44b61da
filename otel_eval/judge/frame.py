"""What a judge is shown, in which order: tools, the conversation so far, what is to be judged."""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TypeAlias

from otel_eval.judge.question import Section
from otel_eval.judge.redaction import Redactor
from otel_eval.model import UNRECORDED, Message, Recorded, Tool, ToolCall, Trajectory

Timed: TypeAlias = tuple[int, str]

TOOLS = "Tools that were available to the agent:"
SO_FAR = "The conversation up to the moment of the call:"
CALL = "The tool call to be judged:"
ALL = "The conversation, with all tool calls:"
OUTPUT = "What the agent answered in the end:"
NOTHING = "nothing was recorded"


def call_sections(trajectory: Trajectory, call: ToolCall, redactor: Redactor) -> list[Section]:
    """For the judgement of one call: what was known when it was made, and never its result."""
    frame = _Frame(redactor)
    tools = [tool for tool in trajectory.available_tools if _offered(tool, call)]
    return [
        Section(title=TOOLS, entries=frame.tools(tools), share=0.25),
        Section(title=SO_FAR, entries=frame.before(trajectory, call), share=0.5),
        Section(title=CALL, entries=(frame.target(trajectory, call),), share=0.25),
    ]


def trajectory_sections(trajectory: Trajectory, redactor: Redactor) -> list[Section]:
    """For the judgement of everything that was done."""
    frame = _Frame(redactor)
    return [
        Section(title=TOOLS, entries=frame.tools(trajectory.available_tools), share=0.2),
        Section(title=ALL, entries=frame.everything(trajectory), share=0.6),
        Section(title=OUTPUT, entries=(frame.recorded(trajectory.output),), share=0.2),
    ]


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


class _Frame:
    """Recorded things in words, all of them redacted."""

    def __init__(self, redactor: Redactor) -> None:
        self._text = redactor.text
        self._value = redactor.value

    def tools(self, tools: Sequence[Tool]) -> tuple[str, ...]:
        """The same tool may have been offered to several agents."""
        told = dict.fromkeys(map(self._tool, tools))
        return tuple(told) or ("none were recorded",)

    def before(self, trajectory: Trajectory, call: ToolCall) -> tuple[str, ...]:
        messages = visible_messages(trajectory, call)
        return self._conversation(trajectory, messages, earlier_calls(trajectory, call))

    def everything(self, trajectory: Trajectory) -> tuple[str, ...]:
        return self._conversation(trajectory, trajectory.messages, trajectory.tool_calls)

    def target(self, trajectory: Trajectory, call: ToolCall) -> str:
        number = 1 + sum(each.start_ns < call.start_ns for each in trajectory.tool_calls)
        lines = [self._called(call)]
        if call.start_ns and trajectory.start_ns:
            after = (call.start_ns - trajectory.start_ns) / 1e9
            lines.append(f"made {after:.3f} s after the start, as tool call number {number}")
        if not trajectory.whole:
            lines.append("spans of this trace are missing, so there may have been more before it")
        return "\n".join(lines)

    def recorded(self, value: Recorded) -> str:
        return "not recorded" if value is UNRECORDED else self._value(value)

    def _conversation(
        self, trajectory: Trajectory, messages: Iterable[Message], calls: Iterable[ToolCall]
    ) -> tuple[str, ...]:
        said = [(each.time_ns, self._message(each, trajectory.agent)) for each in messages]
        done = [(each.start_ns, self._done(each)) for each in calls]
        spoken = any(each.role == "user" for each in messages)
        asked = [] if spoken else self._input(trajectory)
        ordered = sorted([*asked, *said, *done], key=itemgetter(0))
        return tuple(text for _, text in ordered) or (NOTHING,)

    def _input(self, trajectory: Trajectory) -> list[Timed]:
        if trajectory.input is UNRECORDED:
            return []
        return [(0, f"user: {self._value(trajectory.input)}")]

    def _message(self, message: Message, main_agent: str | None) -> str:
        """Which agent it is of or for, unless that is the one that the trace is about."""
        other = message.agent if message.agent != main_agent else None
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
            f"tool call{by}: {self._text(call.name)}\n  arguments: {self.recorded(call.arguments)}"
        )

    def _done(self, call: ToolCall) -> str:
        if call.error is not None:
            return f"{self._called(call)}\n  error: {self._text(call.error)}"
        return f"{self._called(call)}\n  result: {self.recorded(call.output)}"
