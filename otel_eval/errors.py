"""Everything otel_eval raises on purpose.

OtelEvalError
├── DecodeError     bytes or text that are not OTLP: says where, what was found, what was expected
└── ConfigError     a rule file or argument that cannot be used: every problem, with its place
"""

from collections.abc import Sequence


class OtelEvalError(Exception):
    """Base of all errors of this package."""


class DecodeError(OtelEvalError):
    """Input that is not OTLP."""

    def __init__(self, message: str, *, source: str | None = None, line: int | None = None) -> None:
        place = ":".join(str(part) for part in (source, line) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.source = source
        self.line = line


class ConfigError(OtelEvalError):
    """A configuration with one or more problems, each a line that starts with its place."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))
