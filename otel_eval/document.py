"""A YAML document with the line of everything in it, and with `${env:X}` filled in.

Values are read as JSON has them (YAML's core schema): `no`, `12:30` and `2024-05-01` are text,
because they stand for tool arguments more often than for a truth value, seconds or a date.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import yaml

from otel_eval.errors import ConfigError
from otel_eval.model import Json

Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG: Final = "tag:yaml.org,2002:"
_MISSING: Final = object()
MAX_VALUES: Final = 200_000
MAX_DEPTH: Final = 100
_REFERENCE: Final = re.compile(r"\$\$|\$\{((?:[^{}]|\{[^{}]*\})*)\}")
_VARIABLE: Final = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-.*)?", re.DOTALL)


class _Loader(Base):  # type: ignore[misc]  # the base is libyaml's loader where there is one
    """Resolves plain scalars by the core schema."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


_NUMBER_STARTS: Final = list("-+.0123456789")
for tag, pattern, starts in (
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"(?:[-+]?\d+|0o[0-7]+|0x[\da-fA-F]+)$", _NUMBER_STARTS),
    ("float", r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$", _NUMBER_STARTS),
    ("float", r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", _NUMBER_STARTS),
    ("merge", r"<<$", ["<"]),
):
    _Loader.add_implicit_resolver(f"{_TAG}{tag}", re.compile(pattern), starts)

_READ: Final[Mapping[str, Callable[[str], Json]]] = {
    f"{_TAG}null": lambda _: None,
    f"{_TAG}bool": lambda text: text.lower() == "true",
    f"{_TAG}int": lambda text: int(text, 0 if text[:2] in ("0o", "0x") else 10),
    f"{_TAG}float": lambda text: float(re.sub(r"\.(inf|nan)", r"\1", text.lower())),
    f"{_TAG}str": str,
    f"{_TAG}merge": str,
}


@dataclass(slots=True)
class Problem:
    """Something wrong with the document, at a place such as `rules[2].match.agent`."""

    place: str
    text: str


@dataclass(slots=True)
class Document:
    """What a YAML text says. `problems` are those of the text: keys given twice, variables."""

    source: str
    data: Json = None
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, place: str) -> int | None:
        """Where the place is, or else the nearest thing around it that is in the text."""
        while place and place not in self.lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        return self.lines.get(place)

    def told(self, problems: Iterable[Problem]) -> list[str]:
        """In the order of the text, each with its line where there is a text."""
        return [
            self._tell(each) for each in sorted(problems, key=lambda it: self.line(it.place) or 0)
        ]

    def _tell(self, problem: Problem) -> str:
        line = self.line(problem.place)
        where = f"{self.source or 'line'}:{line}" if line else self.source
        return ": ".join(part for part in (where, problem.place, problem.text) if part)


def read(text: str, source: str = "", environment: Mapping[str, str] | None = None) -> Document:
    """Raises ConfigError where the text is no YAML at all."""
    document = Document(source)
    variables = os.environ if environment is None else environment
    try:
        node = _parsed(text)
        if node is not None:
            document.data = _Reader(document, variables).read(node)
    except yaml.YAMLError as error:
        raise ConfigError(_syntax(error, text, source)) from error
    return document


def _parsed(text: str) -> yaml.Node | None:
    """Raises YAMLError."""
    _check_depth(text)
    loader = _Loader(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    """Before there are nodes: libyaml's loader makes them by recursion, and may end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _too_deep(event.start_mark)


def _too_deep(mark: Any) -> yaml.YAMLError:
    problem = f"nested more than {MAX_DEPTH} levels deep"
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _syntax(error: yaml.YAMLError, text: str, source: str) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or str(error).splitlines()[0]
    place = f"{source}:{mark.line + 1}" if mark else source
    hint = _hint(text.splitlines()[mark.line : mark.line + 1]) if mark else ""
    return f"{place}: not YAML: {said}{hint}" if place else f"not YAML: {said}{hint}"


def _hint(lines: Sequence[str]) -> str:
    """For the two mistakes that are made most; `lines` is the one that could not be read."""
    for line in lines:
        if "${" in line:  # its braces mean something else in a flow mapping
            return "; put the text with the variable in quotes"
        if re.match(" *\t", line):
            return "; indent with spaces, not with tabs"
    return ""


class _Reader:
    """Turns nodes into values, and notes their lines and what is wrong with them.

    Without an environment a `$` is a `$`.
    """

    def __init__(self, document: Document, environment: Mapping[str, str] | None) -> None:
        self._document = document
        self._environment = environment
        self._open: set[int] = set()
        self._values = 0

    def read(self, node: yaml.Node) -> Json:
        value = self._value(node, "")
        return None if value is _MISSING else value

    def _value(self, node: yaml.Node, place: str) -> Json:
        self._document.lines.setdefault(place, node.start_mark.line + 1)
        self._check_size(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if id(node) in self._open:
            self._tell(place, "an alias of something that it is part of")
            return _MISSING
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return self._list(node, place)
            return self._mapping(node, place)
        finally:
            self._open.discard(id(node))

    def _check_size(self, node: yaml.Node) -> None:
        """A few lines of aliases of aliases can stand for more than there is memory."""
        self._values += 1
        if len(self._open) > MAX_DEPTH:
            raise _too_deep(node.start_mark)
        if self._values > MAX_VALUES:
            problem = f"more than {MAX_VALUES} values, counting what aliases repeat"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)

    def _list(self, node: yaml.SequenceNode, place: str) -> list[Json]:
        items = [self._value(each, f"{place}[{at}]") for at, each in enumerate(node.value)]
        return [item for item in items if item is not _MISSING]

    def _mapping(self, node: yaml.Node, place: str) -> dict[str, Json]:
        own: dict[str, Json] = {}
        merged: dict[str, Json] = {}
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                merged = {**self._merged(value_node, place), **merged}
                continue
            key, line = self._key(key_node, place), key_node.start_mark.line + 1
            where = f"{place}.{key}" if place else key
            if key in seen:
                self._document.lines[where] = line
                self._tell(where, f"given twice, first in line {seen[key]}; keep one")
                continue
            seen[key] = self._document.lines[where] = line
            value = self._value(value_node, where)
            if value is not _MISSING:
                own[key] = value
        return {**merged, **own}

    def _key(self, node: yaml.Node, place: str) -> str:
        """Always text, as in JSON: a tool may be called `1` or `true`."""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        self._tell(place, "a key must be text, not a list or a mapping")
        return f"line {node.start_mark.line + 1}"

    def _merged(self, node: yaml.Node, place: str) -> dict[str, Json]:
        """What `<<` brings in: one mapping, or several of which the first wins."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[str, Json] = {}
        for each in nodes:
            value = self._value(each, place)
            if not isinstance(value, dict):
                self._tell(place, "<< takes a mapping or a list of mappings")
                continue
            found = {**value, **found}
        return found

    def _scalar(self, node: yaml.ScalarNode, place: str) -> Json:
        if "$" in node.value and self._environment is not None:
            return self._expand(node, self._environment, place)
        try:
            return _READ[node.tag](node.value)
        except (KeyError, ValueError):
            tag = node.tag.replace(_TAG, "!!")
            self._tell(place, f"the tag {tag} cannot be read here; leave it out")
            return _MISSING

    def _expand(self, node: yaml.ScalarNode, environment: Mapping[str, str], place: str) -> Json:
        """A plain scalar that is one variable and nothing else is read as YAML; quoted, as text."""
        known = len(self._document.problems)
        text = self._fill(node.value, environment, place)
        if len(self._document.problems) > known:
            return _MISSING
        alone = _REFERENCE.fullmatch(node.value)
        if alone and alone[1] is not None and not node.style:
            return _plain(text)
        return text

    def _fill(self, text: str, environment: Mapping[str, str], place: str) -> str:
        return _REFERENCE.sub(lambda found: self._variable(found, environment, place), text)

    def _variable(self, found: re.Match[str], environment: Mapping[str, str], place: str) -> str:
        if found[1] is None:
            return "$"
        named = _VARIABLE.fullmatch(found[1])
        if named is None:
            self._tell(
                place, f"{found[0]} is no variable; write ${{env:NAME}}, or $$ for a plain $"
            )
            return ""
        name, default = named[1], named[2]
        if name in environment:
            return environment[name]
        if default is not None:
            return self._fill(default[2:], environment, place)
        self._tell(
            place,
            f"the environment variable {name} is not set; set it or write ${{env:{name}:-default}}",
        )
        return ""

    def _tell(self, place: str, text: str) -> None:
        self._document.problems.append(Problem(place, text))


def _plain(text: str) -> Json:
    """A variable's value as if it had been written in the file; text where that is no YAML."""
    inner = Document("")
    try:
        node = _parsed(text)
        value = None if node is None else _Reader(inner, None).read(node)
    except yaml.YAMLError:
        return text
    return text if inner.problems else value
