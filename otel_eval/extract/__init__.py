"""From the spans of a trace to what its agents did."""

from otel_eval.extract.extraction import Extraction, Keys, extract, join, trajectories

__all__ = ["Extraction", "Keys", "extract", "join", "trajectories"]
