"""What all evaluators have in common that ask a judge."""

from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, Field, PrivateAttr, WithJsonSchema

from otel_eval.evaluators.base import Evaluator
from otel_eval.evaluators.capture import no_tool_calls
from otel_eval.judge.answers import Answer, YesOrNo
from otel_eval.judge.client import Asked, JudgeClient
from otel_eval.judge.question import JudgeError, Section
from otel_eval.model import Failure, Outcome, Score, Skip, ToolCall, Trajectory, Verdict

A = TypeVar("A", bound=Answer)

Schema: TypeAlias = type[A]
"""By another name, because evaluators have a field `type`."""


def _names_a_provider(model: Any) -> Any:
    if not callable(model) and (not isinstance(model, str) or not all(model.partition(":"))):
        raise ValueError("write provider:model, such as openai:gpt-5-mini")
    return model


Model = Annotated[Any, AfterValidator(_names_a_provider), WithJsonSchema({"type": "string"})]

UNSETTLED: Final[dict[str, frozenset[Verdict]]] = {
    "fail": frozenset({"fail"}),
    "skip": frozenset({"skip", "error"}),
}
"""The verdicts that make a judge worth its price."""


class JudgeEvaluator(Evaluator):
    """Asks a model, or a callable of the user's, what rules cannot settle.

    It asks through a client that the configuration binds; with a callable as `model` it works
    without one too.
    """

    needs_model: ClassVar[bool] = True

    model: Model = None
    """`provider:model`, or in Python any Judge; that of the section `judge` unless given."""
    system_prompt: str | None = Field(default=None, min_length=1)
    """Replaces the built-in instructions."""
    rubric: str | None = Field(default=None, min_length=1)
    """Added to the instructions."""
    sample: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    """The share of the rule's traces or sessions that is judged."""
    only_if: Literal["fail", "skip", "always"] = "always"
    """Judge only where one of the rule's evaluators that ask no model failed, or skipped."""

    _client: JudgeClient | None = PrivateAttr(default=None)

    def bound(self, client: JudgeClient, model: Asked | None) -> "JudgeEvaluator":
        """The same, asking this model through this client."""
        copy = self.model_copy(update={"model": model})
        copy._client = client
        return copy

    def withheld(
        self, trajectory: Trajectory, verdicts: Callable[[], Collection[Verdict]]
    ) -> Skip | None:
        if not self._samples(trajectory):
            return Skip("sampled_out", f"outside the judge's sample of {self.sample}")
        if self.only_if == "always" or UNSETTLED[self.only_if] & set(verdicts()):
            return None
        return Skip("sampled_out", f"no other evaluator of the rule gave a {self.only_if}")

    def outcomes(self, trajectory: Trajectory) -> Iterator[tuple[ToolCall | None, Outcome]]:
        """Each as soon as it is known, and one that fails costs only itself: they are paid for."""
        considered = self.considered(trajectory)
        if not self.per_call():
            yield None, self.judge_all(considered)
            return
        if not considered.tool_calls:
            yield None, no_tool_calls()
        for call in considered.tool_calls:
            yield call, self.judge_call(considered, call)
        self.client.frames.forget()

    def ask(self, system: str, sections: Iterable[Section], answer: Schema[A]) -> A | Skip:
        if self.model is None:
            raise JudgeError("no model was given; set model here or in the section judge")
        return self.client.ask(self.model, system, sections, answer)

    def ask_yes_or_no(self, system: str, trajectory: Trajectory, call: ToolCall) -> Score | Skip:
        """About one call, shown with nothing that was not known when it was made."""
        sections = self.client.frames.of(trajectory).of_call(call)
        found = self.ask(system, sections, YesOrNo)
        if isinstance(found, Skip):
            return found
        return Score(float(found.answer == "Yes"), found.reasoning, label=found.answer)

    @property
    def client(self) -> JudgeClient:
        if self._client is None:
            self._client = JudgeClient()
        return self._client

    def judge_all(self, trajectory: Trajectory) -> Outcome:
        return self._attempt(lambda: self.evaluate(trajectory))

    def judge_call(self, trajectory: Trajectory, call: ToolCall) -> Outcome:
        return self._attempt(lambda: self.evaluate_call(trajectory, call))

    def _attempt(self, judge: Callable[[], Outcome]) -> Outcome:
        try:
            return judge()
        # A judge may be anyone's callable, and one answer that fails must not cost the others.
        except Exception as error:
            return Failure(type(error).__name__, str(error))

    def _samples(self, trajectory: Trajectory) -> bool:
        """Salted, so that it samples among those that the rule's own sample leaves."""
        session = trajectory.session if trajectory.per == "session" else None
        identity = f"judge/{session or trajectory.trace_id}"
        digest = blake2b(identity.encode(errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest) < self.sample * 2**64
