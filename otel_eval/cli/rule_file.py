"""Rules as the text of a rule file that is read back as it was meant."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from otel_eval.model import Json

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class _Dumper(yaml.SafeDumper):
    """Quotes all text that some reader of YAML could take for something else."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # the base's signature
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def write_rules(rules: Sequence[Mapping[str, Json]], comment: str) -> str:
    body = yaml.dump(
        {"rules": [_escaped(dict(rule)) for rule in rules]},
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        allow_unicode=True,
        width=100,
    )
    return f"# {comment}\n{body}"


def _escaped(value: Json) -> Json:
    """In a rule file `$` may begin a variable."""
    match value:
        case str():
            return value.replace("$", "$$")
        case list() | tuple():
            return [_escaped(each) for each in value]
        case dict():
            return {name: _escaped(each) for name, each in value.items()}
    return value
