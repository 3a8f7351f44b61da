"""A bar for files that take a while, on a terminal only."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from otel_eval.cli.inputs import Recording
from otel_eval.model import Span

if TYPE_CHECKING:
    from rich.progress import Progress


def progress(recording: Recording) -> Iterator[list[Span]]:
    """The traces of the recording, with a bar on stderr while they are read."""
    if not recording.is_large or not sys.stderr.isatty():
        yield from recording.traces()
        return
    with _bar() as bar:
        # Large files are read twice: the first trace comes when all spans are counted.
        task = bar.add_task("counting spans", total=None)
        for spans in recording.traces():
            bar.update(
                task,
                description="scoring",
                total=recording.expected_spans,
                completed=recording.spans,
            )
            yield spans


def _bar() -> "Progress":
    """Imported here: who sees no bar does not wait for it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
