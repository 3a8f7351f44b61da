"""Checks against JSON Schema. Its own module, because jsonschema is slow to import."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import SchemaResource, specification_with

from otel_eval.evaluators.matchers import compile_regex
from otel_eval.model import Json

_MOST_PROBLEMS: Final = 20
_NOTHING_FETCHED: Final[Registry[Any]] = Registry()
_REFERENCES: Final = ("$ref", "$dynamicRef")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the arguments. `message` may quote values; as text it does not."""

    path: str
    keyword: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.keyword}" if self.path else self.keyword


class SchemaCheck:
    """A schema ready for use; a ValueError says why it is not. References are never fetched."""

    def __init__(self, schema: Json) -> None:
        if type(schema) not in (dict, bool):
            raise ValueError("takes a JSON Schema: an object, true or false")
        draft = validator_for(schema, default=Draft202012Validator)
        try:
            draft.check_schema(schema)
        except SchemaError as error:
            place = ".".join(map(str, error.path)) or "the schema"
            raise ValueError(f"{place} is not JSON Schema: {error.message}") from None
        _check_references(schema, draft)
        self._validator = _with_re2(draft)(schema, registry=_NOTHING_FETCHED)
        try:
            self.problems({})
        except RecursionError:
            raise ValueError("a $ref leads back to itself, so validation never ends") from None

    def problems(self, arguments: Json) -> list[Problem]:
        """What is wrong; nothing if the arguments are valid. Very long lists are cut."""
        found = (each for error in self._validator.iter_errors(arguments) for each in _read(error))
        return list(islice(found, _MOST_PROBLEMS))


def _check_references(schema: Json, draft: type[Validator]) -> None:
    """Each must lead to a place inside the schema, or validation would raise much later."""
    dialect = specification_with(str(draft.META_SCHEMA["$schema"]))
    root = dialect.create_resource(schema)
    uri = root.id() or ""
    pending = [(root, _NOTHING_FETCHED.with_resource(uri, root).resolver(base_uri=uri))]
    while pending:
        resource, resolver = pending.pop()
        for reference in _references(resource):
            try:
                resolver.lookup(reference)
            except Unresolvable:
                raise ValueError(
                    f"{reference} leads out of the schema, and nothing is fetched: "
                    "put the definition under $defs"
                ) from None
        pending += [(each, resolver.in_subresource(each)) for each in resource.subresources()]


def _references(resource: SchemaResource) -> list[str]:
    if not isinstance(resource.contents, Mapping):
        return []
    found = [resource.contents.get(name) for name in _REFERENCES]
    return [each for each in found if isinstance(each, str)]


@cache
def _with_re2(draft: type[Validator]) -> type[Validator]:
    extended: type[Validator] = extend(draft, {"pattern": _pattern})  # type: ignore[no-untyped-call]  # the stubs leave it untyped
    return extended


def _pattern(
    validator: Validator, expression: str, value: Json, _schema: Any
) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not _searches(expression, value):
        yield ValidationError(f"{value!r} does not match {expression!r}")


def _searches(expression: str, text: str) -> bool:
    """By RE2, which cannot hang; what only backtracking can match is left to Python."""
    try:
        return compile_regex(expression).search(text) is not None
    except ValueError:
        return re.search(expression, text) is not None


def _read(error: ValidationError) -> Iterator[Problem]:
    place = [str(part) for part in error.absolute_path]
    keyword = str(error.validator)
    paths = [[*place, name] for name in _keys(error, keyword)] or [place]
    return (Problem(".".join(path), keyword, error.message) for path in paths)


def _keys(error: ValidationError, keyword: str) -> list[str]:
    """The arguments that are missing or too many: jsonschema gives the place of their object."""
    given, schema = error.instance, error.schema
    if not isinstance(given, dict) or not isinstance(schema, Mapping):
        return []
    if keyword == "required":
        # One error comes per missing name, and only its message says which.
        return [name for name in schema["required"] if error.message.startswith(repr(name))]
    if keyword == "additionalProperties":
        patterns = schema.get("patternProperties", ())
        unknown = (name for name in given if name not in schema.get("properties", ()))
        return [name for name in unknown if not any(_searches(each, name) for each in patterns)]
    return []
