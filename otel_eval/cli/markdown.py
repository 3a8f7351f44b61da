"""The tally of `otel-eval score` as Markdown, for the summary of a pull request."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from otel_eval.cli.report import (
    HEADINGS,
    closing_line,
    figures,
    more_alike,
    more_failed,
    nothing_scored,
)
from otel_eval.cli.steps import one_line
from otel_eval.cli.tally import Tally

_SIGNS: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown(tally: Tally) -> str:
    title = closing_line(tally) if tally.is_judged else nothing_scored(tally)
    return "\n".join([f"### {_plain(title)}", "", *_table(tally), *_failures(tally)]) + "\n"


def _table(tally: Tally) -> Iterator[str]:
    if not tally.rows:
        return
    yield _row(HEADINGS)
    yield "|---|---|---|--:|--:|--:|---|"
    for key, row in sorted(tally.rows.items()):
        yield _row([*key, *figures(row)])


def _failures(tally: Tally) -> Iterator[str]:
    if not tally.failed:
        return
    yield from ("", "<details><summary>What failed</summary>", "")
    for failed in tally.failed:
        titles = [*map(_plain, failed.titles), more_alike(failed)]
        yield f"- {'<br>'.join(filter(None, titles))}"
        yield from (f"  - {_plain(line)}" for line in failed.lines)
    if more := more_failed(tally):
        yield f"- {more}"
    yield from ("", "</details>")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Names and reasons come from traces; none of their signs may mean anything here."""
    return _SIGNS.sub(r"\\\1", one_line(text))
