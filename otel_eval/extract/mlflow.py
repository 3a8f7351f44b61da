"""MLflow's tracing: `mlflow.spanType`, `mlflow.spanInputs`, `mlflow.spanOutputs`. Always JSON."""

from collections.abc import Sequence

from otel_eval.extract.common import first, model_call, number, parsed
from otel_eval.extract.dialect import Content, Reading, ToolReading, Turn
from otel_eval.extract.errors import error_of
from otel_eval.extract.messages import turns
from otel_eval.extract.values import json_value
from otel_eval.model import UNRECORDED, ModelCall, Recorded, Span

_TYPE = "mlflow.spanType"


class MLflow:
    """Attribute values are JSON, the span type included; names are the spans' own."""

    id = "mlflow"

    def reads(self, span: Span) -> bool:
        return _TYPE in span.attributes

    def read(self, span: Span) -> Reading:
        reading = Reading()
        reading.session = first(span.attributes, "mlflow.trace.session", "session.id")
        match _content(span, _TYPE):
            case "TOOL":
                reading.tool = _tool(span)
            case "AGENT":
                reading.agent_span, reading.agent = True, span.name
            case "CHAT_MODEL" | "LLM":
                reading.model = _model(span)
        return reading

    def content(self, span: Span) -> Content:
        given, output = _content(span, "mlflow.spanInputs"), _content(span, "mlflow.spanOutputs")
        match _content(span, _TYPE):
            case "AGENT":
                return Content(input=_question(given), output=output)
            case "CHAT_MODEL" | "LLM":
                return Content(inputs=_messages(given), outputs=_messages(_chosen(output)))
        return Content()


def _content(span: Span, key: str) -> Recorded:
    return json_value(span.attributes.get(key, UNRECORDED))


def _tool(span: Span) -> ToolReading:
    error = error_of(span)
    return ToolReading(
        name=span.name,
        arguments=_content(span, "mlflow.spanInputs"),
        output=_content(span, "mlflow.spanOutputs") if error is None else UNRECORDED,
        error=error,
    )


def _question(given: Recorded) -> Recorded:
    """The only argument of the agent's function."""
    if isinstance(given, dict) and len(given) == 1:
        return next(iter(given.values()))
    return given


def _model(span: Span) -> ModelCall:
    usage = parsed(span.attributes.get("mlflow.chat.tokenUsage"))
    usage = usage if isinstance(usage, dict) else {}
    model = _content(span, "mlflow.llm.model")
    return model_call(
        span,
        model if isinstance(model, str) else None,
        number(usage, "input_tokens"),
        number(usage, "output_tokens"),
    )


def _messages(given: Recorded) -> Sequence[Turn]:
    return turns(given) if isinstance(given, dict | list) else ()


def _chosen(output: Recorded) -> Recorded:
    """The messages inside OpenAI's envelope."""
    if isinstance(output, dict) and isinstance(output.get("choices"), list):
        return [choice.get("message") for choice in output["choices"] if isinstance(choice, dict)]
    return output
