"""From scores to the journal: that a trace is scored and what is told about it, in one transaction.

Only when that is on disk do the events go to the forward queue, and the requests of the trace go.
A process that dies before scores the trace again and nobody has heard of it; one that dies after
has the events in its journal and sends them, the same bytes, as often as it takes. Where a model
was asked about the trace, all of this waits for what it says.
"""

import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Condition, Thread
from typing import Final

from otel_eval.model import Evaluation
from otel_eval.scoring import Task, task_of
from otel_eval.sidecar.custody import Custody
from otel_eval.sidecar.forward import Forwarder
from otel_eval.sidecar.ledger import Closing, Entry, Ledger, Target, session_key
from otel_eval.sidecar.logs import place_of
from otel_eval.sidecar.own_requests import OwnRequests
from otel_eval.sidecar.parcels import Parcel, joined, origins, together
from otel_eval.sinks.event import ResultEvent
from otel_eval.workers import suppressed

log = logging.getLogger(__name__)

AT_A_TIME: Final = 256
MAX_WAITING: Final = 2_000
PATIENCE_SECONDS: Final = 1.0
"""How long scoring may be held up by a journal that is behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What is told about a trace or a session that closed."""

    closing: Closing
    awaited: Collection[Task] = ()
    logs: Sequence[Evaluation] = ()
    spans: Sequence[Evaluation] = ()
    held: Parcel | None = None
    """Spans that waited for their scores, with them."""


@dataclass(slots=True)
class _Partial:
    """What waits for models to answer; they may do so before the closing is known here."""

    scored: Scored | None = None
    answered: set[Task] = field(default_factory=set)
    answers: list[Evaluation] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return self.scored is not None and self.answered.issuperset(self.scored.awaited)


@dataclass(frozen=True, slots=True)
class _Outgoing:
    entry: Entry
    parcel: Parcel
    held: Sequence[Parcel] = ()
    """The same spans as they were counted before."""


class Closings:
    """Takes from any thread, and writes in one of its own."""

    def __init__(
        self,
        custody: Custody,
        forwarders: Mapping[Target, Forwarder],
        form: ResultEvent,
        events: Collection[str],
    ) -> None:
        """What `events` does not name, or has no forwarder, is not told."""
        self._journal = custody.journal
        self._custody = custody
        self._events = events
        self._forwarders = forwarders
        self._form = form
        self._waiting: deque[Scored] = deque()
        self._partial: dict[tuple[str, int], _Partial] = {}
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._run, name="otel-eval-closings", daemon=True)
        self._thread.start()

    def make_room(self) -> None:
        """Wait, for a moment, while too much is waiting."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < MAX_WAITING, PATIENCE_SECONDS)

    def put(self, scored: Scored) -> None:
        """In the event loop for what is held, else anywhere."""
        if scored.held is not None:
            self._forwarders["forward"].hold(size=scored.held.size, spans=scored.held.spans)
        key = scored.closing.key, scored.closing.part
        with self._changed:
            if scored.awaited:
                self._partial.setdefault(key, _Partial()).scored = scored
                self._complete(key)
            else:
                self._waiting.append(scored)
            self._changed.notify_all()

    def answer(self, evaluations: Sequence[Evaluation]) -> None:
        """What models said; all that one was asked about a trajectory comes at a time."""
        with self._changed:
            for each in evaluations:
                partial = self._partial.setdefault(_subject(each), _Partial())
                partial.answers.append(each)
                partial.answered.add(task_of(each.rule, each.evaluator, each.trajectory))
            for key in {_subject(each) for each in evaluations}:
                self._complete(key)
            self._changed.notify_all()

    def _complete(self, key: tuple[str, int], *, anyway: bool = False) -> None:
        partial = self._partial[key]
        if partial.scored is not None and (anyway or partial.is_complete):
            scored, answers = partial.scored, partial.answers
            logs, spans = [*scored.logs, *answers], [*scored.spans, *answers]
            self._waiting.append(replace(scored, logs=logs, spans=spans))
            del self._partial[key]

    def finish(self, seconds: float) -> bool:
        """Hand over all that waits; nothing comes after."""
        with self._changed:
            for key in list(self._partial):
                self._complete(key, anyway=True)
            self._closed = True
            self._changed.notify_all()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with suppressed():
            while batch := self._gathered():
                self._write(batch)

    def _gathered(self) -> Sequence[Scored]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            count = min(AT_A_TIME, len(self._waiting))
            found = [self._waiting.popleft() for _ in range(count)]
            self._changed.notify_all()
            return found

    def _write(self, batch: Sequence[Scored]) -> None:
        closings = [each.closing for each in batch]
        outgoing = self._outgoing(batch)

        def act(ledger: Ledger) -> None:
            ledger.close(closings)
            for each in outgoing:
                ledger.add(each.entry, each.parcel.body)

        def then(_is_written: bool) -> None:
            for each in outgoing:
                self._send(each)
            for closing in closings:
                self._custody.closed(closing.key)

        self._journal.record(act, then)

    def _outgoing(self, batch: Sequence[Scored]) -> list[_Outgoing]:
        held = [each.held for each in batch if each.held is not None]
        return [
            *(self._entered(parcel, target) for target, parcel in self._events_of(batch)),
            *(self._entered(joined(each), "forward", held=each) for each in together(held)),
        ]

    def _events_of(self, batch: Sequence[Scored]) -> list[tuple[Target, Parcel]]:
        try:
            return list(self._told(batch))
        # What an application wrote into one trace must not keep the others from being told.
        except Exception as error:
            if len(batch) > 1:
                return [found for each in batch for found in self._events_of([each])]
            closing = batch[0].closing
            log.error("events of %s cannot be written: %s", closing.key, place_of(error))
            return []

    def _told(self, batch: Sequence[Scored]) -> Iterator[tuple[Target, Parcel]]:
        requests = OwnRequests(self._form)
        if "log" in self._events and "logs" in self._forwarders:
            logs = [evaluation for each in batch for evaluation in each.logs]
            if parcel := requests.logs(logs):
                yield "logs", parcel
        if "span" in self._events and "forward" in self._forwarders:
            spans = [evaluation for each in batch for evaluation in each.spans]
            if parcel := requests.spans(spans):
                yield "forward", parcel

    def _entered(self, parcel: Parcel, target: Target, held: Sequence[Parcel] = ()) -> _Outgoing:
        entry = Entry(
            id=self._journal.new_id(),
            signal=parcel.signal,
            spans=parcel.spans,
            size=len(parcel.body),
            target=target,
            forward=True,
            evaluate=False,
        )
        stored = replace(parcel, origins=origins(entry.id, parcel.spans), stored=True)
        return _Outgoing(entry, stored, held)

    def _send(self, outgoing: _Outgoing) -> None:
        entry, parcel = outgoing.entry, outgoing.parcel
        self._journal.count(entry)
        self._custody.keep(entry)
        if not outgoing.held:
            self._forwarders[entry.target].put_own(parcel)
            return
        forwarder = self._forwarders["forward"]
        forwarder.hold(size=-parcel.size, spans=-parcel.spans)
        forwarder.put(parcel)
        for held in outgoing.held:
            self._custody.gone(held)


def _subject(evaluation: Evaluation) -> tuple[str, int]:
    trajectory = evaluation.trajectory
    if trajectory.per == "session" and trajectory.session is not None:
        return session_key(trajectory.session), trajectory.part
    return trajectory.trace_id, trajectory.part
