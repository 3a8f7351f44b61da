"""Evaluators of the shapes that `attach` tells apart."""

import threading
from typing import ClassVar

from otel_eval.evaluators.base import Evaluator
from otel_eval.model import Score, ToolCall, Trajectory


class EachCall(Evaluator):
    """One answer per tool call, at once."""

    def evaluate_call(self, trajectory: Trajectory, call: ToolCall) -> Score:
        return Score(1.0, f"{call.name} of {len(trajectory.tool_calls)}")


class Slow(Evaluator):
    """An answer that the trace does not wait for."""

    needs_model: ClassVar[bool] = True

    def evaluate(self, trajectory: Trajectory) -> Score:
        return Score(0.5, f"{len(trajectory.tool_calls)} calls")


class Raises(Evaluator):
    """Foreign code with a bug."""

    def evaluate(self, trajectory: Trajectory) -> Score:
        raise ZeroDivisionError(trajectory.trace_id)


class Unwritable(Evaluator):
    """Has a label that is no text."""

    def evaluate(self, _trajectory: Trajectory) -> Score:
        return Score(1.0, label=b"yes")  # type: ignore[arg-type]  # as plug-ins without types may


class Allocates(Evaluator):
    """Asks for more memory than there is."""

    def evaluate(self, trajectory: Trajectory) -> Score:
        return Score(len(bytearray(1 << 60)) / len(trajectory.tool_calls))


class Gated(Slow):
    """A model that answers when it is let."""

    gate: ClassVar[threading.Event] = threading.Event()
    asked: ClassVar[threading.Event] = threading.Event()

    def evaluate(self, trajectory: Trajectory) -> Score:
        self.asked.set()
        self.gate.wait(10)
        return super().evaluate(trajectory)


class Hangs(Evaluator):
    """Foreign code that does not come back before it is let."""

    gate: ClassVar[threading.Event] = threading.Event()

    def evaluate(self, trajectory: Trajectory) -> Score:
        self.gate.wait(60)
        return Score(1.0, f"{len(trajectory.tool_calls)} calls")
