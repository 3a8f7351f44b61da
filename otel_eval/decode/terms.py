"""OTLP's ids and numbers in the model's terms."""

import re
from itertools import count
from typing import Final

from otel_eval.model import Kind, StatusCode

KINDS: Final[dict[int, Kind]] = {
    0: "unspecified",
    1: "internal",
    2: "server",
    3: "client",
    4: "producer",
    5: "consumer",
}
STATUS_CODES: Final[dict[int, StatusCode]] = {0: "unset", 1: "ok", 2: "error"}

# Bit 8 of a span's flags says that bit 9 is meant; bit 9 says that the parent is remote.
REMOTE_MASK: Final = 0x300
REMOTE: Final[dict[int, bool | None]] = {0x000: None, 0x100: False, 0x200: None, 0x300: True}

_lists = count(1)
_trace_id = re.compile(r"(?!0+\Z)[0-9a-fA-F]{32}\Z").match
_span_id = re.compile(r"(?!0+\Z)[0-9a-fA-F]{16}\Z").match


def trace_id_of_text(text: str) -> str | None:
    return text.lower() if _trace_id(text) else None


def span_id_of_text(text: str) -> str | None:
    return text.lower() if _span_id(text) else None


class MadeUp:
    """Stand-ins for the missing and invalid ids of one decoded list.

    Spans without a valid trace id are one trace per list, and no two lists share it. Spans without
    a valid span id are numbered, so none of them is taken for a duplicate of another.
    """

    __slots__ = ("_list", "_spans", "_taken")

    def __init__(self) -> None:
        self._list = 0
        self._spans = 0
        self._taken: set[str] = set()

    def ids(self, trace_id: str | None, span_id: str | None) -> tuple[str, str]:
        """The pair with its invalid halves (None) replaced."""
        self._list = self._list or next(_lists)
        if trace_id is None:
            return f"#{self._list}", self._untaken(span_id)
        # Other lists may hold spans of this trace, so the number of the span alone could recur.
        return trace_id, span_id or f"#{self._list}.{self._number()}"

    def _untaken(self, span_id: str | None) -> str:
        """A valid span id is kept, for the sake of its children, unless it comes a second time."""
        if span_id is None or span_id in self._taken:
            return f"#{self._number()}"
        self._taken.add(span_id)
        return span_id

    def _number(self) -> str:
        """Of one width, because calls that start together are ordered by their span's id."""
        self._spans += 1
        return f"{self._spans:06}"
