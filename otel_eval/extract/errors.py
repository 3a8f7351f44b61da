"""Whether a tool span failed, and with which words."""

from otel_eval.model import Attributes, Json, Span


def error_of(span: Span) -> str | None:
    """The error of a failed span: the exception's message, the status' or the error type."""
    attributes = span.attributes
    failed = span.status.code == "error" or "error.type" in attributes
    if not failed and not (span.events and _raised(span)) and not _is_flagged(attributes):
        return None
    words = attributes.get("langfuse.observation.status_message") or attributes.get("error.type")
    return exception_of(span) or span.status.message or str(words or "error")


def _is_flagged(attributes: Attributes) -> bool:
    return (
        attributes.get("gen_ai.tool.status") in ("error", "failed", "failure")
        or attributes.get("gen_ai.task.status") in ("failure", "error")
        or attributes.get("langfuse.observation.level") == "ERROR"
    )


def _raised(span: Span) -> bool:
    """A recorded exception counts unless the span says that it went well all the same."""
    return span.status.code != "ok" and any(event.name == "exception" for event in span.events)


def exception_of(span: Span) -> str | None:
    """The last recorded exception's message."""
    for event in reversed(span.events):
        if event.name == "exception":
            message = event.attributes.get("exception.message")
            return str(message or event.attributes.get("exception.type") or "error")
    return None


def says_error(output: Json) -> bool:
    """Whether a result calls itself an error, as MCP's do."""
    return isinstance(output, dict) and (
        output.get("isError") is True or output.get("is_error") is True
    )
