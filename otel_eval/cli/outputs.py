"""The files that `otel-eval score` writes beside what it prints."""

from collections.abc import Iterable
from pathlib import Path

from otel_eval.cli.inputs import NO_NAME, Unusable
from otel_eval.cli.junit import JUnit
from otel_eval.cli.markdown import markdown
from otel_eval.cli.tally import Tally
from otel_eval.model import Evaluation


class Reports:
    """What was asked for of a JUnit report and a summary in Markdown."""

    def __init__(self, *, junit: str | None, markdown: str | None) -> None:
        self._junit_path = _checked(junit, "--junit")
        self._markdown_path = _checked(markdown, "--markdown")
        self._junit = JUnit() if junit else None

    def add(self, evaluations: Iterable[Evaluation]) -> None:
        if self._junit is not None:
            self._junit.add(evaluations)

    def write(self, tally: Tally) -> None:
        try:
            if self._junit is not None and self._junit_path is not None:
                with self._junit_path.open("w", encoding="utf-8") as out:
                    self._junit.write(out)
            if self._markdown_path is not None:
                self._markdown_path.write_text(markdown(tally), encoding="utf-8")
        except OSError as error:
            raise Unusable(f"{error.filename}: cannot be written: {error.strerror}") from error


def _checked(given: str | None, flag: str) -> Path | None:
    """What can be said before hours of scoring."""
    if given is None:
        return None
    if not given:
        raise Unusable(f"{flag}: {NO_NAME}")
    path = Path(given)
    if path.is_dir():
        raise Unusable(f"{given}: is a directory; expected a file to write")
    if not path.parent.is_dir():
        raise Unusable(f"{given}: cannot be written: there is no directory {path.parent}")
    return path
