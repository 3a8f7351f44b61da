"""Evaluations as a JUnit report, which every CI system can show."""

import re
from collections.abc import Iterable
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import IO, Final
from xml.sax.saxutils import escape, quoteattr

from otel_eval.model import Evaluation, Failure, Score, Skip

IN_MEMORY_BYTES: Final = 8 * 1024 * 1024
_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, escaped or not."""


class JUnit:
    """Gathers test cases outside of memory, because their count comes before them in the file."""

    def __init__(self) -> None:
        self._cases = SpooledTemporaryFile(  # noqa: SIM115  # closed in `write`
            IN_MEMORY_BYTES, mode="w+", encoding="utf-8"
        )
        self._tests = self._failures = self._errors = self._skipped = 0

    def add(self, evaluations: Iterable[Evaluation]) -> None:
        for evaluation in evaluations:
            self._tests += 1
            self._cases.write(self._case(evaluation))

    def write(self, out: IO[str]) -> None:
        counts = f'tests="{self._tests}" failures="{self._failures}" errors="{self._errors}"'
        out.write('<?xml version="1.0" encoding="utf-8"?>\n')
        # Jenkins' schema knows `skipped` of a suite, and not of all suites together.
        out.write(f"<testsuites {counts}>\n")
        out.write(f'<testsuite name="otel-eval" {counts} skipped="{self._skipped}">\n')
        with self._cases:
            self._cases.seek(0)
            copyfileobj(self._cases, out)
        out.write("</testsuite>\n</testsuites>\n")

    def _case(self, evaluation: Evaluation) -> str:
        trajectory = evaluation.trajectory
        group = f"{trajectory.agent or '-'}.{evaluation.rule}.{evaluation.evaluator}"
        head = f"<testcase classname={_quoted(group)} name={_quoted(_name(evaluation))}"
        body = self._body(evaluation)
        return f"{head}>{body}</testcase>\n" if body else f"{head}/>\n"

    def _body(self, evaluation: Evaluation) -> str:
        match evaluation.outcome:
            case Score(value=value, reason=reason) if evaluation.verdict == "fail":
                self._failures += 1
                message = f"{value:.4g}, passes at {evaluation.pass_at:.4g}"
                head = f"failure type={_quoted(evaluation.type)} message={_quoted(message)}"
                return f"<{head}>{_text(reason)}</failure>"
            case Score():
                return ""
            case Skip(code=code, reason=reason):
                self._skipped += 1
                return f"<skipped message={_quoted(f'{code}: {reason}')}/>"
            case Failure(type=type_, message=message):
                self._errors += 1
                return f"<error type={_quoted(type_)} message={_quoted(message)}/>"


def _name(evaluation: Evaluation) -> str:
    """Unique within its class name, so that CI systems can follow a case over time."""
    trajectory, call = evaluation.trajectory, evaluation.call
    if trajectory.per == "session":
        name = f"session {trajectory.session}"
    else:
        name = f"trace {trajectory.trace_id}"
    if call is not None:
        return f"{name} call {call.name} {call.span_id}"
    return f"{name} run {evaluation.anchor.span_id}" if trajectory.per == "run" else name


def _quoted(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("�", text))


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("�", text))
