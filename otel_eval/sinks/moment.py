"""The engine's counts as observable instruments, all of one moment."""

from collections.abc import Iterable
from threading import local

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from otel_eval.sinks import instruments
from otel_eval.sinks.instruments import Instrument, Pipeline, Snapshot


def observe(meter: Meter, pipeline: Pipeline) -> None:
    moment = _Moment(pipeline)
    for instrument in instruments.PIPELINE:
        _observe(meter, instrument, moment)


class _Moment(local):
    """One snapshot for all instruments of a collection, so that their sums agree.

    A new one is taken when an instrument asks again. Each reader collects in a thread of its own.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._snapshot: Snapshot = {}
        self._told: set[str] = set()

    def seen_by(self, instrument: Instrument) -> Snapshot:
        if not self._told or instrument.name in self._told:
            self._snapshot, self._told = self._pipeline(), set()
        self._told.add(instrument.name)
        return self._snapshot


def _observe(meter: Meter, instrument: Instrument, moment: _Moment) -> None:
    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        for values, value in instruments.observed(instrument, moment.seen_by(instrument)).items():
            yield Observation(value, dict(zip(instrument.labels, values, strict=True)))

    create = (
        meter.create_observable_gauge
        if instrument.kind == "gauge"
        else meter.create_observable_counter
    )
    create(instrument.name, [observe], unit=instrument.unit, description=instrument.help)
