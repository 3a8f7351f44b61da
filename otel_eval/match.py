"""Whose trajectories a rule scores."""

from functools import cached_property, lru_cache
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field

from otel_eval.evaluators.patterns import compile_name
from otel_eval.frozen import Frozen
from otel_eval.model import Anchor, Json, Trajectory

pattern = lru_cache(maxsize=4096)(compile_name)
"""A glob over the whole text, or `/…/`: RE2, found anywhere. Both by case."""


def fits_text(wanted: str, text: str) -> bool:
    test = pattern(wanted)
    try:
        return test(text)
    except UnicodeEncodeError:  # RE2 reads no text that is not Unicode
        return test(text.encode(errors="replace").decode())


def is_literal(text: str) -> bool:
    """Whether the pattern fits nothing but itself."""
    return not text.startswith("/") and not any(sign in text for sign in "*?[")


def _checked(text: str) -> str:
    pattern(text)
    return text


Pattern: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_checked)]
Wanted: TypeAlias = Pattern | bool | int | float


class Match(Frozen):
    """All that is given must fit. `*` for a session or a service also fits where there is none."""

    model_config = ConfigDict(extra="forbid")

    agent: Pattern | None = None
    session: Pattern | None = None
    service: Pattern | None = None
    attributes: dict[str, Wanted] = Field(default_factory=dict)

    @cached_property
    def names_origin(self) -> bool:
        """Only such a match reaches traces in which no agent is at work."""
        return self.service not in (None, "*") or bool(self.attributes)

    @cached_property
    def literal_agent(self) -> str | None:
        """The one agent that fits, where it is named in full."""
        return self.agent if self.agent is not None and is_literal(self.agent) else None

    @cached_property
    def _fits_all(self) -> bool:
        """Whether nothing but the agent is given."""
        return self.session in (None, "*") and not self.names_origin

    @property
    def fits_anyone(self) -> bool:
        """Whether it asks for nothing that a trace must say of itself."""
        return self.agent in (None, "*") and self._fits_all

    def fits_agent(self, agent: str) -> bool:
        return self.agent is None or fits_text(self.agent, agent)

    def fits(self, trajectory: Trajectory) -> bool:
        """Everything but the agent, which decides what the trajectory is to begin with."""
        return self._fits_all or (
            _fits(self.session, trajectory.session)
            and _fits(self.service, trajectory.service)
            and all(
                _fits_value(wanted, _attribute(trajectory.anchor, name))
                for name, wanted in self.attributes.items()
            )
        )


def _fits(wanted: str | None, actual: str | None) -> bool:
    if wanted is None or wanted == "*":
        return True
    return actual is not None and fits_text(wanted, actual)


def _attribute(anchor: Anchor | None, name: str) -> Json:
    if anchor is None:
        return None
    return anchor.attributes.get(name, anchor.resource.get(name))


def _fits_value(wanted: str | bool | int | float, actual: Json) -> bool:
    """Text is a pattern over the attribute's text; true is not 1."""
    if actual is None:
        return False
    if isinstance(wanted, str):
        text = str(actual).lower() if isinstance(actual, bool) else str(actual)
        return fits_text(wanted, text)
    return isinstance(wanted, bool) == isinstance(actual, bool) and bool(wanted == actual)
