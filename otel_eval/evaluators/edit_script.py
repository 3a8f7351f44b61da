"""What an agent would have to do differently: the way from the calls made to those expected."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final, Literal, NotRequired, TypeAlias, TypedDict

from otel_eval.evaluators.matching import Pairs, align, align_weighted, assign

Op: TypeAlias = Literal["keep", "add", "drop", "change"]
Likeness: TypeAlias = Callable[[int, int], float]
"""How near expected call i and actual call j are, from 0 to 1."""

_MOST_WEIGHED: Final = 100  # pairs to compare; beyond, the first call left over will do


class Edit(TypedDict):
    """One step, as it goes into a score's details. Positions count from 1."""

    op: Op
    tool: str
    expected: int | None
    actual: int | None
    keys: NotRequired[Sequence[str]]
    """The arguments to change."""


def told(edit: Edit) -> str:
    """The step for a sentence."""
    if edit["op"] == "add":
        return f"add {edit['tool']} (expected call {edit['expected']})"
    keys = f": {', '.join(edit['keys'])}" if edit.get("keys") else ""
    return f"{edit['op']} {edit['tool']} (call {edit['actual']}{keys})"


def changes_in_order(
    kept: Pairs, expected: Sequence[str], actual: Sequence[str], likeness: Likeness
) -> Pairs:
    """Calls of the right tool with other arguments, between the pairs that fit."""
    if len(kept) in (len(expected), len(actual)):
        return []
    changes: Pairs = []
    start = (0, 0)
    for i, j in [*kept, (len(expected), len(actual))]:
        rows, columns = range(start[0], i), range(start[1], j)
        if rows and columns:
            changes.extend(_in_gap(rows, columns, expected, actual, likeness))
        start = (i + 1, j + 1)
    return changes


def _in_gap(
    rows: range,
    columns: range,
    expected: Sequence[str],
    actual: Sequence[str],
    likeness: Likeness,
) -> Pairs:
    """As many changes as there can be; among as many, those that change least."""

    def weight(i: int, j: int) -> float:
        same = expected[rows[i]] == actual[columns[j]]
        return len(rows) + likeness(rows[i], columns[j]) if same else 0.0

    if _is_worth_weighing(rows, columns):
        found = align_weighted(len(rows), len(columns), weight)
    else:
        found = _same_names([expected[i] for i in rows], [actual[j] for j in columns])
    return [(rows[i], columns[j]) for i, j in found]


def _same_names(expected: Sequence[str], actual: Sequence[str]) -> Pairs:
    masks: dict[str, int] = {}
    for j, name in enumerate(actual):
        masks[name] = masks.get(name, 0) | 1 << j
    return align([masks.get(name, 0) for name in expected], len(actual))


def _is_worth_weighing(rows: Sequence[int], columns: Sequence[int]) -> bool:
    return 1 < len(rows) * len(columns) <= _MOST_WEIGHED


def changes_in_any_order(
    kept: Pairs, expected: Sequence[str], actual: Sequence[str], likeness: Likeness
) -> Pairs:
    """Calls of the right tool with other arguments, wherever they are."""
    if len(kept) in (len(expected), len(actual)):
        return []
    lost = _by_name(expected, {i for i, _ in kept})
    free = _by_name(actual, {j for _, j in kept})
    return [
        found
        for name in lost
        if name in free
        for found in _of_one_tool(lost[name], free[name], likeness)
    ]


def _by_name(names: Sequence[str], without: Set[int]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        if position not in without:
            positions.setdefault(name, []).append(position)
    return positions


def _of_one_tool(rows: Sequence[int], columns: Sequence[int], likeness: Likeness) -> Pairs:
    if not _is_worth_weighing(rows, columns):
        return list(zip(rows, columns, strict=False))
    weights = [[1 + likeness(i, j) for j in columns] for i in rows]
    return [(rows[i], columns[j]) for i, j in assign(weights)]


def edit_script(
    expected: Sequence[str],
    actual: Sequence[str],
    *,
    kept: Pairs,
    changed: Mapping[tuple[int, int], Sequence[str]],
) -> list[Edit]:
    """In the order of the calls made; what is to be added follows the expected call before it.

    `changed` gives the argument keys per pair.
    """
    made: list[Edit | None] = [None] * len(actual)
    for i, j in kept:
        made[j] = {"op": "keep", "tool": actual[j], "expected": i + 1, "actual": j + 1}
    for (i, j), keys in changed.items():
        made[j] = {
            "op": "change",
            "tool": actual[j],
            "expected": i + 1,
            "actual": j + 1,
            "keys": keys,
        }
    added = _added(expected, dict([*kept, *changed]))
    script = added.get(-1, [])
    for j, edit in enumerate(made):
        script.append(edit or {"op": "drop", "tool": actual[j], "expected": None, "actual": j + 1})
        script.extend(added.get(j, ()))
    return script


def _added(expected: Sequence[str], partners: Mapping[int, int]) -> dict[int, list[Edit]]:
    """What is missing, by the call made that it follows; -1 stands for the start."""
    added: dict[int, list[Edit]] = {}
    if len(partners) == len(expected):
        return added
    last = -1
    for i, tool in enumerate(expected):
        if i in partners:
            last = partners[i]
        else:
            added.setdefault(last, []).append(
                {"op": "add", "tool": tool, "expected": i + 1, "actual": None}
            )
    return added
