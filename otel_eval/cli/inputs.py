"""Recorded traces for the commands that read files, whatever is wrong with the files."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import BinaryIO

import click

from otel_eval.cli.pipes import Pipes, is_pipe
from otel_eval.decode import files
from otel_eval.decode.streams import GZIP_MAGIC, ZSTD_MAGIC, opened
from otel_eval.errors import DecodeError
from otel_eval.model import Span

IN_MEMORY_BYTES = 64 * 1024 * 1024
"""Files up to this size are read once and held; larger ones are read twice and never held whole."""

COMPRESSION = 20
"""How many times larger traces may be than what they are compressed to."""

NO_NAME = "the name of the file is empty; is it a variable that is not set?"
UNUSABLE = 2
"""Exit code for input or configuration that cannot be used."""


class Unusable(click.ClickException):
    """What the user gave cannot be used: one clear line, exit 2, no traceback."""

    exit_code = UNUSABLE

    def show(self, file: object = None) -> None:  # noqa: ARG002  # always stderr
        click.echo(click.style("error: ", fg="red") + self.message, err=True)


class Recording:
    """The traces of some files. A trace's spans may be anywhere in them."""

    def __init__(self, paths: Sequence[str]) -> None:
        if not all(paths):
            raise Unusable(NO_NAME)
        self._paths = paths
        self._pipes = Pipes(IN_MEMORY_BYTES)
        self.spans = 0
        self.expected_spans: int | None = None
        """How many there will be, where that was counted before."""
        self.bad = 0
        """How many lines or records could not be read."""

    def traces(self) -> Iterator[list[Span]]:
        """Each trace once, when its last span has been read."""
        left = self._count() if self.is_large else None
        open_traces: dict[str, list[Span]] = {}
        for span in self._read(report=left is None):
            self.spans += 1
            spans = open_traces.setdefault(span.trace_id, [])
            spans.append(span)
            if left is not None and len(spans) == left[span.trace_id]:
                yield open_traces.pop(span.trace_id)
        yield from open_traces.values()

    @cached_property
    def is_large(self) -> bool:
        return sum(map(self._plain_bytes, self._paths)) > IN_MEMORY_BYTES

    def _plain_bytes(self, path: str) -> int:
        """About how much there is to read; of what is compressed, a guess."""
        try:
            with self._opened(path) as file:
                head = file.read(len(ZSTD_MAGIC))
                size = file.seek(0, os.SEEK_END)
        except (OSError, DecodeError):
            return 0  # told when the file is read
        return size * COMPRESSION if head.startswith((GZIP_MAGIC, ZSTD_MAGIC)) else size

    def _opened(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._pipes.opened(path) if is_pipe(path) else opened(path)

    def _count(self) -> Counter[str]:
        counts = Counter(span.trace_id for span in self._read(report=True))
        self.expected_spans = counts.total()
        return counts

    def _read(self, *, report: bool) -> Iterator[Span]:
        for path in self._paths:
            try:
                with self._opened(path) as raw:
                    on_error = self._report if report else _ignore
                    for spans in files.read_stream(raw, path, on_error):
                        yield from spans
            except DecodeError as error:
                raise Unusable(str(error)) from error

    def _report(self, error: DecodeError) -> None:
        self.bad += 1
        click.echo(click.style("warning: ", fg="yellow") + str(error), err=True)


def _ignore(_error: DecodeError) -> None:
    """Reported when the file was read the first time."""


def write_lines(lines: Iterable[str]) -> None:
    """Print lines as they come; a reader that has seen enough (`| head`) is no error."""
    try:
        for line in lines:
            click.echo(line.encode(errors="replace").decode())
    except BrokenPipeError:
        # What Python still flushes at exit goes nowhere, and says nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
