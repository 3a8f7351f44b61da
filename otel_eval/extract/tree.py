"""The parent-child tree of a trace's spans; missing parents and cycles do no harm."""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from otel_eval.model import Span

_BY_START = attrgetter("start_ns", "span_id")


class Tree:
    """Spans of one trace, each id once, ordered by (start, id)."""

    def __init__(self, spans: Iterable[Span]) -> None:
        given = list(spans)
        unique = {span.span_id: span for span in given}
        if len(unique) < len(given):
            # The first of those with the same id counts.
            unique = {span.span_id: span for span in reversed(given)}
        self.spans: Sequence[Span] = sorted(unique.values(), key=_BY_START)
        self._by_id = unique
        self._depths: dict[str, int] = {}
        self._root: Span | None = None

    def parent(self, span: Span) -> Span | None:
        """The parent, if it is here."""
        return self._by_id.get(span.parent_id) if span.parent_id else None

    def ancestors(self, span: Span) -> Iterator[Span]:
        """From the parent upwards, each once."""
        seen = {span.span_id}
        above = self.parent(span)
        while above is not None and above.span_id not in seen:
            yield above
            seen.add(above.span_id)
            above = self.parent(above)

    def depth(self, span: Span) -> int:
        """How many ancestors a span has here."""
        depths = self._depths
        if span.span_id not in depths:
            path, depth = [span], -1
            for above in self.ancestors(span):
                if above.span_id in depths:
                    depth = depths[above.span_id]
                    break
                path.append(above)
            for each in reversed(path):
                depth += 1
                depths[each.span_id] = depth
        return depths[span.span_id]

    def outermost(self, spans: Iterable[Span]) -> Sequence[Span]:
        """Those that have none of the others above them."""
        chosen = list(spans)
        if len(chosen) < 2:
            return chosen
        ids = {span.span_id for span in chosen}
        return [
            span
            for span in chosen
            if not any(above.span_id in ids for above in self.ancestors(span))
        ]

    def below(self, heads: Iterable[Span]) -> Sequence[Span]:
        """The heads and all that is under them, in order. Every way up is gone once."""
        inside: dict[str | None, bool] = {head.span_id: True for head in heads}
        for span in self.spans:
            if span.span_id not in inside:
                known = inside.get(span.parent_id)
                if known is None:
                    self._go_up(span, inside)
                else:
                    inside[span.span_id] = known
        return [span for span in self.spans if inside[span.span_id]]

    def _go_up(self, span: Span, inside: dict[str | None, bool]) -> None:
        path: list[str | None] = []
        above: Span | None = span
        while above is not None and above.span_id not in inside:
            path.append(above.span_id)
            # Known as outside until it is not: that also ends a cycle.
            inside[above.span_id] = False
            above = self.parent(above)
        if above is not None and inside[above.span_id]:
            inside.update(dict.fromkeys(path, True))

    def above(self, spans: Iterable[Span]) -> set[str]:
        """The ids of all that these spans are under."""
        found: set[str] = set()
        for span in spans:
            above = self.parent(span)
            while above is not None and above is not span and above.span_id not in found:
                found.add(above.span_id)
                above = self.parent(above)
        return found

    @property
    def root(self) -> Span | None:
        """The first span without a parent here, one without any parent before the others.

        Where all are each other's parents, simply the first.
        """
        if self._root is None:
            self._root = self._find_root()
        return self._root

    def _find_root(self) -> Span | None:
        tops = [span for span in self.spans if span.parent_id not in self._by_id]
        first = next(iter(tops or self.spans), None)
        return next((span for span in tops if span.parent_id is None), first)
