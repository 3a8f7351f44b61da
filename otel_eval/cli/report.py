"""The tally of `otel-eval score` in words, for a terminal."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

import click

from otel_eval.cli import table
from otel_eval.cli.steps import one_line, plural
from otel_eval.cli.tally import Failed, Row, Tally, number

HEADINGS: Final = ("agent", "rule", "evaluator", "scored", "mean", "passed", "skipped")
NUMBERS: Final = frozenset({3, 4, 5})


def text_lines(tally: Tally) -> Iterator[str]:
    if tally.rows:
        yield from _table(tally)
        yield ""
    if tally.failed:
        yield from _failures(tally)
        yield ""
    if tally.is_judged:
        yield click.style(closing_line(tally), bold=True)


def _table(tally: Tally) -> Iterator[str]:
    """One block per agent and rule; what repeats is written once."""
    keys = sorted(tally.rows)
    rows: list[list[str]] = []
    for (agent, rule), group in groupby(keys, key=lambda key: key[:2]):
        for at, key in enumerate(group):
            names = ["", ""] if at else [agent, rule]
            rows.append([*map(one_line, names), one_line(key.evaluator), *figures(tally.rows[key])])
    heading, *rest = table.lines([HEADINGS, *rows], right=NUMBERS)
    yield click.style(heading, dim=True)
    for line, key in zip(rest, keys, strict=True):
        yield _coloured(line, tally.rows[key])


def _coloured(line: str, row: Row) -> str:
    if row.passed < row.scores or row.errors:
        return click.style(line, fg="red")
    return line if row.scores else click.style(line, dim=True)


def figures(row: Row) -> list[str]:
    why = list_counts(row.skipped)
    if row.errors:
        why = ", ".join(filter(None, [plural(row.errors, "error"), why]))
    if not row.scores:
        return ["0", "-", "-", why]
    return [str(row.scores), number(row.mean), percent(row.passed, row.scores), why]


def percent(part: int, whole: int) -> str:
    """Whole percents; 100 % only where it is all of them."""
    share = 100 * part / whole
    return "99 %" if 99 <= share < 100 else f"{share:.0f} %"


def list_counts(counts: Mapping[str, int]) -> str:
    most_first = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{count} {what}" for what, count in most_first)


def _failures(tally: Tally) -> Iterator[str]:
    for failed in tally.failed:
        yield from map(one_line, failed.titles)
        if more := more_alike(failed):
            yield more
        for line in failed.lines:
            yield "  " + click.style("✗", fg="red") + f" {one_line(line)}"
    if more := more_failed(tally):
        yield f"{more}; --json tells them all"


def more_alike(failed: Failed) -> str:
    return f"and {failed.untitled} more like these" if failed.untitled else ""


def more_failed(tally: Tally) -> str:
    return f"and {tally.failed_unshown} more that failed" if tally.failed_unshown else ""


def closing_line(tally: Tally) -> str:
    """`scored 41 of 42 traces, 1 without tool calls · 0.91 · 2 rules failed in 3 traces`."""
    scored = f"scored {tally.scored_traces} of {plural(tally.traces, 'trace')}"
    counted = ", ".join(filter(None, [scored, list_counts(tally.unscored)]))
    mean = [number(tally.mean)] if tally.scores else []
    return " · ".join([counted, *mean, _verdict(tally)])


def _verdict(tally: Tally) -> str:
    if not tally.failed_rules:
        rules = len({key.rule for key, row in tally.rows.items() if row.scores})
        return f"{plural(rules, 'rule')} passed"
    places = [
        plural(count, noun)
        for count, noun in ((tally.failed_traces, "trace"), (tally.failed_sessions, "session"))
        if count
    ]
    return f"{plural(len(tally.failed_rules), 'rule')} failed in {' and '.join(places)}"


def nothing_scored(tally: Tally) -> str:
    """Why there is no score at all."""
    if not tally.traces:
        return "nothing was scored: the input holds no spans"
    traces = plural(tally.traces, "trace")
    return f"nothing was scored: {traces}, {list_counts(tally.unscored)}"
