"""Scores without a line of code: a processor that `opentelemetry-instrument` registers.

Runs in every process that is started by it, so without a configuration it imports nothing.
"""

import logging
import os


def register() -> None:
    """Add a processor to the global provider, by the file that OTEL_EVAL_CONFIG names.

    Not if the exporter already does the scoring: everything would be scored twice.
    """
    path = os.environ.get("OTEL_EVAL_CONFIG")
    exporters = os.environ.get("OTEL_TRACES_EXPORTER", "").split(",")
    if path and "otel_eval" not in map(str.strip, exporters):
        _add_processor(path)


def _add_processor(path: str) -> None:
    from opentelemetry.trace import get_tracer_provider

    from otel_eval.errors import ConfigError
    from otel_eval.processor import EvalSpanProcessor

    add = getattr(get_tracer_provider(), "add_span_processor", None)
    try:
        if add is not None:
            add(EvalSpanProcessor(path))
    except ConfigError as error:
        logging.getLogger("otel_eval").error("nothing is scored:\n%s", error)
