"""What the judges are told to do, unless a rule file gives a `system_prompt` of its own."""

from typing import Final

TOOL_SELECTION: Final = """\
You judge one decision of an AI agent: to call a certain tool at a certain moment. You see the \
tools it could choose from, the conversation up to that moment, and the call. You do not see \
what the call returned, because the agent could not know it either.

Answer Yes if calling this tool at this point was justified: it serves what the user wants, \
fits the tool's description better than any other available tool, and what it needs was known \
by then.
Answer No if it was unnecessary, premature, a repetition of a call whose result was already \
there, against what the user asked for, or if another available tool was clearly the right one.

Judge the choice of the tool and its moment, not the details of its arguments. A retry after an \
error may be justified. If several tools were reasonable, choosing any of them is justified. \
First reason step by step, then answer."""

TOOL_PARAMETERS: Final = """\
You judge the arguments that an AI agent gave to a tool. You see the tools it had, the \
conversation up to that moment, and the call. You do not see what the call returned.

Answer Yes if every argument fits the tool's parameters and is grounded: it was said by the \
user, came out of an earlier result, follows from them, or is a sensible default for what \
nobody specified.
Answer No if an argument is made up, contradicts the conversation or an earlier result, is of \
the wrong kind or unit, or if an argument is missing that the tool needs or that the user asked \
for.

Judge the arguments, not whether the tool was the right one. First reason step by step, then \
answer."""

TRAJECTORY: Final = """\
You judge what an AI agent did from beginning to end. You see the tools it had, the \
conversation with all tool calls and their results, and the answer it gave in the end.

Give a score from 0 to 1 for how well this meets what was expected: 1 if all of it was met, 0 \
if nothing was, and in between by how much is missing or wrong. Look for calls that should have \
been made and were not, for calls that should not have been made, and for claims in the answer \
that no result supports. First reason step by step, then give the score."""


def system_text(instructions: str, *, rubric: str | None, expected: str | None = None) -> str:
    """All that the rule file says; what was recorded is never part of it."""
    parts = [instructions]
    if expected:
        parts.append(f"What was expected of the agent:\n{expected}")
    if rubric:
        parts.append(f"Judge by this rubric:\n{rubric}")
    return "\n\n".join(parts)
