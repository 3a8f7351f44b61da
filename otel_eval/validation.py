"""From what a configuration file says to models, with every problem told at its place."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from otel_eval.document import Problem
from otel_eval.errors import ConfigError
from otel_eval.model import Json
from otel_eval.rules import Rule

M = TypeVar("M", bound=BaseModel)

SECRET: Final = frozenset({"bearer_tokens", "headers"})
"""Keys whose values are never repeated in a message."""
UNSAID: Final = object()
CONTAINERS: Final = frozenset({"a mapping", "a list"})
PLAIN: Final = {
    "Input should be a valid dictionary": "should be a mapping",
    "Input should be a valid list": "should be a list",
    "Input should be a valid tuple": "should be a list",
    "Input should be a valid string": "should be text; put it in quotes",
    "Input should be a valid boolean": "should be true or false",
    "Input should be a valid number": "should be a number",
    "Input should be a valid integer": "should be a whole number",
    "Input is not a valid path": "should be a path",
    "Tuple should have at least 1 item": "is empty; give at least one",
}
"""What pydantic says at the start of a message, in the words of YAML."""


def join(place: str, *steps: str | int) -> str:
    """`rules`, 2, `match` → `rules[2].match`."""
    for step in steps:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
    return place


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A remark that names the nearest of the known words, or else all of them."""
    words = sorted(known)
    near = get_close_matches(word.lower().replace("-", "_"), words, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(words)}"


def known_part(
    model: type[BaseModel], given: Mapping[str, Json], place: str, problems: list[Problem]
) -> dict[str, Json]:
    """What the model has fields for; other keys become problems. An empty section is not given."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    kept: dict[str, Json] = {}
    for key, value in given.items():
        where = join(place, key)
        if key not in fields:
            problems.append(Problem(where, f"unknown key ({did_you_mean(str(key), fields)})"))
        elif value is not None:
            inner = _section(fields[key].annotation)
            deeper = inner is not None and isinstance(value, Mapping)
            kept[key] = known_part(inner, value, where, problems) if inner and deeper else value
    return kept


def _section(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, also where it is optional, but no list of models."""
    if get_origin(annotation) is tuple:
        return None
    return next(filter(_is_model, (annotation, *get_args(annotation))), None)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def validate(model: type[M], given: Mapping[str, Json], problems: list[Problem]) -> M | None:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        problems.extend(_problems(error))
        return None


def _problems(error: ValidationError) -> Iterator[Problem]:
    for each in error.errors():
        place = join("", *each["loc"])
        if each["type"] == "value_error" and isinstance(each["input"], BaseModel | Mapping):
            yield from (_inside(place, line) for line in str(each["ctx"]["error"]).splitlines())
        else:
            yield Problem(place, _text(each))


def _inside(place: str, line: str) -> Problem:
    """A model that checks its fields together may name the place in it."""
    head, colon, rest = line.partition(": ")
    return Problem(join(place, head), rest) if colon and " " not in head else Problem(place, line)


def _text(error: Any) -> str:
    said = error["ctx"]["error"] if error["type"] == "value_error" else error["msg"]
    secret = bool(SECRET & set(error["loc"]))
    return _complete(str(said), UNSAID if secret else error["input"])


def _complete(said: str, found: Json) -> str:
    """In words that a writer of YAML knows, with what was found unless it is said already."""
    if said == "Field required":
        return "missing; it is required here"
    text = next((plain for start, plain in PLAIN.items() if said.startswith(start)), said)
    text = text.replace("Input should", "should").replace("Tuple should", "should")
    if found is UNSAID:
        return text
    shown = describe(found)
    said_already = isinstance(found, str | bool) and shown in text
    needless = said_already or (shown in CONTAINERS and not text.startswith("should be"))
    return text if needless else f"{text}, found {shown}"


def parse_rules(given: Json, problems: list[Problem]) -> list[Rule | None]:
    """Every rule at its place; None where it could not be read."""
    if not isinstance(given, list | tuple):
        problems.append(Problem("rules", f"should be a list of rules, found {describe(given)}"))
        return []
    _check_names(given, problems)
    return [_rule(each, join("rules", at), problems) for at, each in enumerate(given)]


def _rule(given: Json, place: str, problems: list[Problem]) -> Rule | None:
    if isinstance(given, Rule):
        return given
    if not isinstance(given, Mapping):
        text = f"should be a mapping with name and evaluators, found {describe(given)}"
        problems.append(Problem(place, text))
        return None
    kept = known_part(Rule, given, place, problems)
    try:
        return Rule.parse(kept, place)
    except ConfigError as error:
        problems.extend(_placed(error.problems, dict(_values(given, place))))
        return None


def _placed(texts: Iterable[str], values: Mapping[str, Json]) -> Iterator[Problem]:
    """Each at a place in the file: of a union, pydantic tells what every member would want."""
    told: set[str] = set()
    for text in texts:
        place, _, said = text.partition(": ")
        if said.startswith("unknown field"):
            yield Problem(place, said)
            continue
        if place in values or said == "Field required":
            yield Problem(place, _complete(said, values.get(place, UNSAID)))
            continue
        around = _nearest(place, values)
        if around not in told:
            yield Problem(around, _complete(said, values.get(around, UNSAID)))
        told.add(around)


def _nearest(place: str, values: Mapping[str, Json]) -> str:
    while place and place not in values:
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    return place


def _values(given: Json, place: str) -> Iterator[tuple[str, Json]]:
    """Everything in it, by place."""
    yield place, given
    steps: Iterable[tuple[Any, Json]] = ()
    if isinstance(given, Mapping):
        steps = given.items()
    elif isinstance(given, list | tuple):
        steps = enumerate(given)
    for step, value in steps:
        yield from _values(value, join(place, step))


def _check_names(given: Sequence[Json], problems: list[Problem]) -> None:
    """Before the rules are parsed, so that a broken rule does not hide a name given twice."""
    first: dict[str, int] = {}
    for at, each in enumerate(given):
        name = each.get("name") if isinstance(each, Mapping) else getattr(each, "name", None)
        if isinstance(name, str) and first.setdefault(name, at) != at:
            text = f"rules[{first[name]}] is called {name!r} too; names must differ"
            problems.append(Problem(f"rules[{at}].name", text))


def describe(value: Json) -> str:
    match value:
        case Mapping():
            return "a mapping"
        case str():
            return repr(value if len(value) <= 60 else f"{value[:60]}…")
        case Sequence():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
    return str(value)
