"""Takes out what must not leave the process, before anything is cut or sent."""

import json
from collections.abc import Iterable
from typing import Final

import re2

from otel_eval.model import Json

REDACTED: Final = "[redacted]"


class Redactor:
    """Replaces what any of the RE2 expressions matches."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = [re2.compile(pattern) for pattern in patterns]

    def text(self, words: str) -> str:
        """Lone surrogates, which no request could carry, become question marks."""
        words = words.encode(errors="replace").decode()
        for pattern in self._patterns:
            words = pattern.sub(REDACTED, words)
        return words

    def value(self, value: Json) -> str:
        """As JSON. Texts inside are searched before JSON escapes them, and the whole once more."""
        if isinstance(value, str):
            return self.text(value)
        return self.text(json.dumps(self._inside(value), ensure_ascii=False, default=str))

    def _inside(self, value: Json) -> Json:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(key)): self._inside(each) for key, each in value.items()}
            case list() | tuple():
                return [self._inside(each) for each in value]
        return value
