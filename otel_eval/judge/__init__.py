"""What a judge is shown, what it may cost, and how it is asked. Light: no model library in here."""

from otel_eval.judge.question import Judge, Question

__all__ = ["Judge", "Question"]
