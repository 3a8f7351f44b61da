"""A bar for files that take a while, on a terminal only."""

import sys
from collections.abc import Iterator

import click
from click._termui_impl import ProgressBar

from otel_eval.cli.inputs import Recording
from otel_eval.model import Span


def progress(recording: Recording) -> Iterator[list[Span]]:
    """The traces of the recording, with a bar on stderr while they are read."""
    if not recording.is_large or not sys.stderr.isatty():
        yield from recording.traces()
        return
    click.echo("counting spans …", err=True)
    traces = recording.traces()
    first = next(traces, None)
    length = recording.expected_spans or 0
    bar: ProgressBar[int]
    with click.progressbar(length=length, label="scoring", file=sys.stderr) as bar:
        if first is not None:
            bar.update(recording.spans)
            yield first
        for spans in traces:
            bar.update(recording.spans - bar.pos)
            yield spans
