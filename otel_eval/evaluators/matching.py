"""The formulas behind the evaluators: pure functions over plain data.

A relation between expected and actual calls is a list of masks: bit j of `masks[i]` says that
expected call i accepts actual call j. Python's integers make sets of a thousand calls cheap.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from rapidfuzz.distance import LCSseq

from otel_eval.model import Json

Masks: TypeAlias = Sequence[int]
Pairs: TypeAlias = list[tuple[int, int]]


class _True:
    """Stands for true in keys; a class, because copies and pickles of it are itself."""


class _False:
    """Stands for false in keys."""


class _NaN:
    """Stands for NaN in keys: unlike NaN, it equals itself."""


# What stands for itself. Asking here saves a call per value, which counts at a thousand calls.
_OWN_KEY: Final = frozenset((str, int, type(None)))


def key(value: Json) -> Hashable:
    """A hashable stand-in: two JSON values are equal exactly when their keys are.

    Numbers stand for themselves, so 1 = 1.0; booleans do not, because Python says True == 1.
    """
    kind = type(value)
    if kind is dict:
        return frozenset(
            [(name, each if type(each) in _OWN_KEY else key(each)) for name, each in value.items()]
        )
    if kind in _OWN_KEY:
        return value  # type: ignore[no-any-return]  # Json is Any; these are hashable
    if kind is list or kind is tuple:
        return tuple([each if type(each) in _OWN_KEY else key(each) for each in value])
    if kind is bool:
        return _True if value else _False
    if kind is float:
        return value if value == value else _NaN
    if isinstance(value, Mapping):
        return key(dict(value))
    return (kind, repr(value))


class EqualTo:
    """JSON equality with one value, for many others.

    Python compares whole values at once, and takes true for 1: where the value has one of them,
    the other is looked at again.
    """

    def __init__(self, value: Json) -> None:
        self._value = value
        self._key = key(value)
        self._doubtful = tuple(_doubtful(value))

    def __call__(self, other: Json) -> bool:
        if self._value != other:
            return key(other) == self._key  # a tuple may stand for a list
        for path, is_boolean in self._doubtful:
            if isinstance(_at(other, path), bool) is not is_boolean:
                return False
        return True


def _doubtful(value: Json, *path: str | int) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Where 0, 1, true and false are, and which of them are booleans."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _doubtful(each, *path, name)
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            yield from _doubtful(each, *path, i)
    elif isinstance(value, int | float) and value in (0, 1):
        yield path, isinstance(value, bool)


def _at(value: Json, path: Sequence[str | int]) -> Json:
    for step in path:
        value = value[step]
    return value


def equal(left: Json, right: Json) -> bool:
    """JSON equality: 1 = 1.0, true ≠ 1, a list is not an object, key order is free."""
    return key(left) == key(right)


def f1(found: float, expected: int, actual: int) -> float:
    """Harmonic mean of precision and recall; nothing expected and nothing done is perfect."""
    total = expected + actual
    return 2 * found / total if total else 1.0


def bits(mask: int) -> Iterator[int]:
    """The positions of the set bits, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Letters(dict[str, str]):
    """A character for each name, since rapidfuzz compares text exactly but objects by hash."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__((name, chr(i)) for i, name in enumerate(dict.fromkeys(names), start=2))

    def __missing__(self, name: str) -> str:
        return "\1"

    def spell(self, names: Sequence[str]) -> str:
        return "".join(map(self.__getitem__, names))


LOST: Final = "\0"


def kept(expected: str, actual: str) -> str:
    """`expected`, blanked with LOST outside a longest common subsequence.

    The edits that turn `actual` into `expected` leave the subsequence and insert the rest; here
    they insert blanks.
    """
    return LCSseq.editops(actual, expected).apply(actual, LOST * len(expected))


def lcs(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """A longest common subsequence, as its elements."""
    letters = Letters(expected)
    found = kept(letters.spell(expected), letters.spell(actual))
    return [name for name, letter in zip(expected, found, strict=True) if letter != LOST]


def align(masks: Masks, actual: int) -> Pairs:
    """A longest order-preserving pairing under any relation: the bit-vector form of the LCS.

    A zero at bit j of a row says: one more expected call is matched from actual call j on.
    """
    full = (1 << actual) - 1
    rows = [full]
    for mask in masks:
        row = rows[-1]
        hit = row & mask
        rows.append(((row + hit) | (row - hit)) & full)
    return _trace_back(rows, actual)


def _trace_back(rows: Sequence[int], actual: int) -> Pairs:
    pairs: Pairs = []
    i, j = len(rows) - 1, actual
    while i and j:
        if rows[i] >> (j - 1) & 1:
            j -= 1
        elif not rows[i - 1] >> (j - 1) & 1:
            i -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    pairs.reverse()
    return pairs


def lcs_of_groups(groups: Sequence[Sequence[str]], actual: Sequence[str]) -> list[str]:
    """A longest common subsequence where the names inside one group come in any order."""
    return [name for names in found_in_groups(groups, actual) for name in names]


def found_in_groups(groups: Sequence[Sequence[str]], actual: Sequence[str]) -> list[list[str]]:
    """For each group its names in a longest common subsequence, in the order they came.

    `ends[v]` is the shortest prefix of `actual` in which v names were found. A group moves each of
    those ends to where its next one, two, … names have come; nothing else can be a shorter prefix.
    """
    after = _after(actual, {name for group in groups for name in group})
    stops = _stops_if_all(groups, after) or _stops_if_some(groups, after)
    return [[actual[stop - 1] for stop in found] for found in stops]


def _stops_if_all(
    groups: Sequence[Sequence[str]], after: Mapping[str, list[int]]
) -> list[Sequence[int]]:
    """Where each group's names are found, each as early as can be; empty if one is missing."""
    end, chosen = 0, []
    for group in groups:
        stops = [stop for (stop,) in _next_stops([end], group, after)]
        end = stops[-1]
        if end == after[group[0]][-1]:
            return []
        chosen.append(stops)
    return list(chosen)


def _stops_if_some(
    groups: Sequence[Sequence[str]], after: Mapping[str, list[int]]
) -> list[Sequence[int]]:
    history = [[0]]
    for group in groups:
        history.append(_with_group(history[-1], group, after))
    return _stops_of_groups(history, groups, after)


def _after(actual: Sequence[str], names: Iterable[str]) -> dict[str, list[int]]:
    """For each name and each prefix of `actual` the shortest longer prefix that ends with it.

    Where there is none, one more than the whole stands for infinity.
    """
    never = len(actual) + 1
    table = {name: [never] * (never + 1) for name in names}
    places: dict[str, int] = dict.fromkeys(table, 0)
    for end, name in enumerate(actual, start=1):
        if name in table:
            start = places[name]
            table[name][start:end] = [end] * (end - start)
            places[name] = end
    return table


def _with_group(ends: list[int], group: Sequence[str], after: Mapping[str, list[int]]) -> list[int]:
    never = after[group[0]][-1]
    best = ends + [never] * len(group)
    for extra, stops in enumerate(_next_stops(ends, group, after), start=1):
        best[extra : extra + len(ends)] = map(min, best[extra:], stops)
    return best[: bisect_left(best, never)]


def _next_stops(
    ends: list[int], group: Sequence[str], after: Mapping[str, list[int]]
) -> list[Sequence[int]]:
    """From each end on, where one name of the group has come, where two have, and so on."""
    columns: list[Sequence[int]] = []
    for name, count in Counter(group).items():
        column = ends
        for _ in range(count):
            column = list(map(after[name].__getitem__, column))
            columns.append(column)
    if len(columns) == 1:
        return columns
    if len(columns) == 2:
        return [list(map(min, *columns)), list(map(max, *columns))]
    return list(zip(*map(sorted, zip(*columns, strict=True)), strict=True))


def _stops_of_groups(
    history: Sequence[list[int]], groups: Sequence[Sequence[str]], after: Mapping[str, list[int]]
) -> list[Sequence[int]]:
    """Back from the last end: which of each group's names led there."""
    found = len(history[-1]) - 1
    chosen: list[Sequence[int]] = []
    for before, now, group in zip(
        reversed(history[:-1]), reversed(history[1:]), reversed(groups), strict=True
    ):
        stops = _stops(before, now[found], found, group, after)
        chosen.append(stops)
        found -= len(stops)
    chosen.reverse()
    return chosen


def _stops(
    before: list[int], end: int, found: int, group: Sequence[str], after: Mapping[str, list[int]]
) -> Sequence[int]:
    if found < len(before) and before[found] == end:
        return ()
    for extra in range(max(1, found - len(before) + 1), found + 1):
        stops = [stop for (stop,) in _next_stops([before[found - extra]], group, after)]
        if len(stops) >= extra and stops[extra - 1] == end:
            return stops[:extra]
    raise AssertionError("every end was reached from one of the group before")


def pair(masks: Masks) -> dict[int, int]:
    """A maximum one-to-one pairing, expected → actual.

    Choosy expectations take the first free call; what is left is settled as Hopcroft and Karp do
    it: all shortest ways to a free call at once, until there is none.
    """
    pairs: dict[int, int] = {}
    taken: dict[int, int] = {}
    free = -1
    left: list[int] = []
    for i in sorted(range(len(masks)), key=lambda each: masks[each].bit_count()):
        candidates = masks[i] & free
        if not candidates:
            left.append(i)
            continue
        low = candidates & -candidates
        j = low.bit_length() - 1
        pairs[i], taken[j] = j, i
        free ^= low
    while left and (layers := _layers(masks, left, taken, free)):
        for i in left:
            if way := _way(masks, i, taken, layers):
                free ^= 1 << way[-1][1]
                pairs.update(way)
                taken.update((j, each) for each, j in way)
        left = [i for i in left if i not in pairs]
    return pairs


def _layers(masks: Masks, left: Sequence[int], taken: dict[int, int], free: int) -> list[int]:
    """The calls at each distance from the expectations left, up to the nearest free ones."""
    layers: list[int] = []
    seen = 0
    rows = left
    while True:
        reached = 0
        for i in rows:
            reached |= masks[i]
        reached &= ~seen
        if not reached:
            return []
        if reached & free:
            return [*layers, reached & free]
        layers.append(reached)
        seen |= reached
        rows = [taken[j] for j in bits(reached)]


def _way(masks: Masks, start: int, taken: dict[int, int], layers: list[int]) -> Pairs:
    """The pairs along a way through the layers to a free call; what it visits is used up."""
    way: Pairs = []
    i = start
    while len(way) < len(layers):
        options = masks[i] & layers[len(way)]
        if options:
            low = options & -options
            layers[len(way)] ^= low
            j = low.bit_length() - 1
            way.append((i, j))
            i = taken.get(j, -1)
        elif way:
            i, _ = way.pop()
        else:
            return []
    return way


def assign(weights: Sequence[Sequence[float]]) -> Pairs:
    """The one-to-one pairing of the greatest total weight; pairs of weight 0 are left out.

    The Hungarian method by shortest augmenting paths, cubic in the shorter side.
    """
    if not weights or not weights[0]:
        return []
    if len(weights) > len(weights[0]):
        flipped = list(zip(*weights, strict=True))
        return sorted((i, j) for j, i in assign(flipped))
    owner = _hungarian(weights)
    pairs = [(i, j) for j, i in enumerate(owner) if i >= 0 and weights[i][j] > 0]
    return sorted(pairs)


def _hungarian(weights: Sequence[Sequence[float]]) -> list[int]:
    """For each column the row it goes to, or -1. There are at least as many columns as rows."""
    columns = len(weights[0])
    row_price = [0.0] * len(weights)
    column_price = [0.0] * (columns + 1)
    owner = [-1] * (columns + 1)  # the last column is where each new row starts
    for row in range(len(weights)):
        owner[columns] = row
        way = _cheapest_way(weights, row_price, column_price, owner)
        column = way.pop()
        for previous in reversed(way):
            owner[column] = owner[previous]
            column = previous
    return owner[:columns]


def _cheapest_way(
    weights: Sequence[Sequence[float]],
    row_price: list[float],
    column_price: list[float],
    owner: list[int],
) -> list[int]:
    """The columns on the cheapest way from the new row to a free column; moves the prices."""
    columns = len(column_price) - 1
    distance = [float("inf")] * columns
    previous = [columns] * columns
    used: list[int] = []
    open_columns = set(range(columns))
    column = columns
    while True:
        used.append(column)
        row = owner[column]
        if row < 0:
            break
        step, nearest = float("inf"), -1
        line, price = weights[row], row_price[row]
        for each in open_columns:
            reduced = -line[each] - price - column_price[each]
            if reduced < distance[each]:
                distance[each], previous[each] = reduced, column
            if distance[each] < step:
                step, nearest = distance[each], each
        for each in used:
            row_price[owner[each]] += step
            column_price[each] -= step
        for each in open_columns:
            distance[each] -= step
        open_columns.discard(nearest)
        column = nearest
    way = [column]
    while way[-1] != columns:
        way.append(previous[way[-1]])
    way.reverse()
    return way


def align_weighted(rows: int, columns: int, weight: Callable[[int, int], float]) -> Pairs:
    """The order-preserving pairing of the greatest total weight, by dynamic programming."""
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        below, line = best[i + 1], best[i]
        for j in range(columns - 1, -1, -1):
            line[j] = max(below[j], line[j + 1], below[j + 1] + weight(i, j))
    return _heaviest(best)


def _heaviest(best: Sequence[Sequence[float]]) -> Pairs:
    pairs: Pairs = []
    i = j = 0
    while i < len(best) - 1 and j < len(best[0]) - 1:
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs
