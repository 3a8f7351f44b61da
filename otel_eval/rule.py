"""One rule of a rule file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from otel_eval import evaluators
from otel_eval.errors import ConfigError
from otel_eval.evaluators.base import Evaluator
from otel_eval.frozen import Frozen
from otel_eval.match import Match
from otel_eval.model import Json, Per

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")


def seconds(value: object) -> object:
    """`90s`, `1m30s`; a number is seconds already."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{value!r} is no duration; write it like 500ms, 15m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


Seconds: TypeAlias = Annotated[
    float, BeforeValidator(seconds), Field(ge=0, strict=True, allow_inf_nan=False)
]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Alert(BaseModel):
    """When a rule's scores are bad enough to wake someone."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    pass_rate: Share | None = None
    drop: Share | None = None
    min_evaluations: int = Field(default=20, ge=1)
    for_: Seconds = Field(default=900.0, alias="for")
    severity: str = "warning"


class Rule(Frozen):
    """Evaluators, and whose trajectories they score."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    match: Match = Match()
    per: Per = "trace"
    nested: bool = True
    incomplete: Literal["skip", "score"] = "skip"
    pass_at: Share = 1.0
    sample: Share = 1.0
    alert: Alert | None = None
    evaluators: Annotated[tuple[SerializeAsAny[Evaluator], ...], Field(min_length=1)]

    @classmethod
    def parse(cls, mapping: Mapping[str, Json], place: str = "rule") -> Self:
        """From a rule file; raises ConfigError with every problem, each with its place."""
        try:
            return cls.model_validate(mapping, context={"place": place})
        except ValidationError as error:
            raise ConfigError(list(_problems(error, place))) from error

    @field_validator("evaluators", mode="before")
    @classmethod
    def _parse_evaluators(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, Sequence) or isinstance(value, str):
            return value
        place = (info.context or {}).get("place", "rule")
        return _parse_all(value, f"{place}.evaluators")

    @field_validator("evaluators")
    @classmethod
    def _names_are_unique(cls, value: tuple[Evaluator, ...]) -> tuple[Evaluator, ...]:
        names = [evaluator.name for evaluator in value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two evaluators are called {twice!r}; give one another name")
        return value

    @cached_property
    def deterministic(self) -> Sequence[Evaluator]:
        """The evaluators that ask no model."""
        return [each for each in self.evaluators if not each.needs_model]

    @cached_property
    def judges(self) -> Sequence[Evaluator]:
        """The evaluators that ask a model."""
        return [each for each in self.evaluators if each.needs_model]

    def samples(self, identity: str) -> bool:
        """Whether this trace or session is among the sampled: the same answer everywhere."""
        if self.sample >= 1:
            return True
        digest = blake2b(identity.encode(errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest) < self.sample * 2**64


def _parse_all(items: Sequence[object], place: str) -> list[object]:
    parsed: list[object] = []
    problems: list[str] = []
    for position, item in enumerate(items):
        try:
            parsed.append(_parse_one(item, f"{place}[{position}]"))
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ValueError("\n".join(problems))
    return parsed


def _parse_one(item: object, place: str) -> object:
    return evaluators.parse(item, place) if isinstance(item, Mapping) else item


def _problems(error: ValidationError, place: str) -> Iterator[str]:
    for each in error.errors():
        cause = each.get("ctx", {}).get("error")
        where = place + "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"]
        )
        for line in str(cause or each["msg"]).splitlines():
            yield line if line.startswith(where) else f"{where}: {line}"
