"""Tool names as a user lists them: one pattern, or several."""

from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from otel_eval.evaluators.patterns import compile_name


def _read(given: object) -> object:
    return (given,) if isinstance(given, str) else given


def _checked(given: object) -> object:
    if not isinstance(given, str) or not given:
        raise ValueError("takes a tool name, a glob such as get_*, or /a regular expression/")
    compile_name(given)
    return given


_SCHEMA: Final = {"type": "string", "minLength": 1}

Glob: TypeAlias = Annotated[str, BeforeValidator(_checked)]
Globs: TypeAlias = Annotated[
    tuple[Glob, ...],
    Field(min_length=1),
    BeforeValidator(_read),
    WithJsonSchema({"anyOf": [_SCHEMA, {"type": "array", "items": _SCHEMA, "minItems": 1}]}),
]
"""At least one pattern: an empty list would be an expectation that expects nothing."""
