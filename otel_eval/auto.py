"""Scores without a line of code: as an exporter that `opentelemetry-instrument` knows by name."""

import logging
import os
from typing import Final

from otel_eval.errors import ConfigError
from otel_eval.exporter import EvalSpanExporter

log = logging.getLogger("otel_eval")

CONFIG: Final = "OTEL_EVAL_CONFIG"


class AutoSpanExporter(EvalSpanExporter):
    """Only evaluates, by the file that OTEL_EVAL_CONFIG names; by the default rules without it."""

    def __init__(self) -> None:
        """A file that cannot be used is told, and costs the agent no other telemetry."""
        try:
            super().__init__(config=os.environ.get(CONFIG) or None)
        except ConfigError as error:
            log.error("nothing is scored:\n%s", error)
            super().__init__(rules=[])
