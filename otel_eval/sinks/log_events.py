"""Evaluations as log events, in the trace of the span they are about."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from opentelemetry._logs import Logger, LoggerProvider, SeverityNumber, get_logger_provider
from opentelemetry.context import Context

from otel_eval.model import Evaluation
from otel_eval.sinks import event, instruments
from otel_eval.sinks.anchors import context
from otel_eval.sinks.event import ResultEvent


class LogEventSink:
    """One log record per evaluation. Its time is the anchor's end: a second delivery is equal."""

    def __init__(
        self, *, logger_provider: LoggerProvider | None = None, form: ResultEvent | None = None
    ) -> None:
        provider = logger_provider or get_logger_provider()
        self._logger = provider.get_logger(instruments.SCOPE)
        self._form = form or ResultEvent()

    def emit(self, evaluations: Sequence[Evaluation]) -> None:
        if not _is_heard(self._logger):
            return
        for anchor, group in groupby(evaluations, key=attrgetter("anchor")):
            here = context(anchor)
            for evaluation in filter(event.is_told, group):
                self._emit(evaluation, here)

    def _emit(self, evaluation: Evaluation, here: Context) -> None:
        severity = severity_of(evaluation)
        self._logger.emit(
            timestamp=evaluation.anchor.end_ns or None,
            context=here,
            severity_number=severity,
            severity_text=severity.name,
            attributes=self._form.attributes(evaluation),
            event_name=event.NAME,
        )

    def close(self) -> None:
        """Nothing to do: the provider is the application's."""


def _is_heard(logger: Logger) -> bool:
    """Whether anyone takes the records; an older API cannot tell."""
    enabled = getattr(logger, "enabled", None)
    return enabled is None or bool(enabled(event_name=event.NAME))


def severity_of(evaluation: Evaluation) -> SeverityNumber:
    if evaluation.verdict in {"fail", "error"}:
        return SeverityNumber.WARN
    return SeverityNumber.INFO
