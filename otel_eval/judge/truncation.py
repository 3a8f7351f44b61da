"""Fits long histories into what a request may hold, and says what was left out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from otel_eval.judge.question import Section

SMALLEST: Final = 160
"""An entry is never cut below this: what is left would mean nothing."""


def fitted(sections: Sequence[Section], max_chars: int) -> list[Section]:
    """Each within its share; what short sections leave over goes to those that need more."""
    rooms = [int(each.share * max_chars) for each in sections]
    lacking = [_size(each.entries) - room for each, room in zip(sections, rooms, strict=True)]
    spare = -sum(each for each in lacking if each < 0)
    wanted = sum(each for each in lacking if each > 0)
    return [
        replace(each, entries=tuple(_fit(each.entries, room + _part(spare, lack, wanted))))
        for each, room, lack in zip(sections, rooms, lacking, strict=True)
    ]


def _part(spare: int, lack: int, wanted: int) -> int:
    return min(lack, spare * lack // wanted) if lack > 0 else 0


def clip(text: str, room: int) -> str:
    """Beginning and end of the text, with how much is missing between them."""
    if len(text) <= room:
        return text
    kept = max(0, room - 40)
    head, tail = text[: kept - kept // 3], text[len(text) - kept // 3 :]
    return f"{head}[… {len(text) - kept} characters left out …]{tail}"


def _fit(entries: Sequence[str], room: int) -> list[str]:
    """The first entry and the latest ones: the task, and what led to the moment that is judged."""
    if _size(entries) <= room:
        return list(entries)
    largest = max(SMALLEST, room // 4, room // len(entries) - 1)
    clipped = [clip(each, min(largest, room)) for each in entries]
    if _size(clipped) <= room:
        return clipped
    latest = _latest(clipped[1:], room - len(clipped[0]) - 60)
    missing = len(clipped) - 1 - len(latest)
    return [clipped[0], f"[… {missing} of {len(entries)} entries left out …]", *latest]


def _latest(entries: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for each in reversed(entries):
        room -= len(each) + 1
        if room < 0:
            break
        kept.append(each)
    return kept[::-1]


def _size(entries: Sequence[str]) -> int:
    return sum(len(each) + 1 for each in entries)
