"""The journal: what is in it, what leaves it, and what a process finds that comes after a crash.

A copy of the journal's folder is what a process leaves that is killed at that moment.
"""

import logging
import shutil
import sqlite3
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import grpc
import orjson
import pytest

from otel_eval import settings
from otel_eval.sidecar.journal import FILE, Journal
from otel_eval.sidecar.ledger import Closing, Entry, Ledger
from otel_eval.sidecar.signals import LOGS, TRACES
from tests.sidecar.collectors import free_port
from tests.sidecar.judges import Gated
from tests.sidecar.loads import (
    OWN,
    log_events,
    requests_of,
    spans_by_trace,
    trace_id,
)
from tests.sidecar.loops import LoopThread, loop_thread
from tests.sidecar.otlp import (
    JSON,
    PROTOBUF,
    TRACE_ID,
    attributes,
    export,
    json_request,
    logs,
    post,
    request,
    tool_trace,
)
from tests.sidecar.running import FAST, Running, forward_to, running
from tests.sidecar.servers import Receiving, receiving
from tests.sidecar.targets import DOWN

NEVER = {"settle": "1h", "local_settle": "1h", "idle": "1h"}


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    with loop_thread() as loop:
        yield loop


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def far() -> Iterator[Receiving]:
    with receiving() as server:
        yield server


def opened(loop: LoopThread, folder: Path, **options: Any) -> Journal:
    return loop.call(lambda: Journal(settings.Journal(path=folder, **options)))


def entry(id: int, body: bytes = b"x", **fields: Any) -> Entry:
    return Entry(id=id, signal=TRACES, size=len(body), forward=True, evaluate=True, **fields)


def closing(key: str) -> Closing:
    return Closing(key=key, part=1, closed_by="root", members=["a", "b"], sessions=["of a Señor"])


def add(loop: LoopThread, journal: Journal, each: Entry, body: bytes = b"x") -> bool:
    told: list[bool] = []
    loop.call(lambda: journal.add(each, body, told.append))
    loop.until(lambda: told)
    return told[0]


def keeping(folder: Path, **options: Any) -> dict[str, Any]:
    return {"path": str(folder), **options}


def crash(folder: Path, run: Running | None = None) -> Path:
    """What a process leaves that is killed now; the one that runs is not waited for."""
    left = Path(shutil.copytree(folder, folder.with_name("crash")))
    if run is not None:
        run.drain(0.5)
    return left


def empty(run: Running) -> None:
    journal = run.sidecar._custody
    assert journal is not None
    run.loop.until(lambda: not journal.journal.requests)


def send(run: Running, *numbers: int) -> None:
    for number in numbers:
        for body in requests_of(number):
            assert export(run.ports.grpc, body).code is grpc.StatusCode.OK


# The file.


def test_what_was_added_is_there_after_reopening_in_its_order(
    loop: LoopThread, folder: Path
) -> None:
    journal = opened(loop, folder)
    bodies = {journal.new_id(): f"body {at}".encode() for at in range(20)}
    assert all(add(loop, journal, entry(id, body), body) for id, body in bodies.items())
    journal.close()

    again = opened(loop, folder)

    assert [each.id for each in again.open] == list(bodies)
    assert [loop.run(again.body(id)) for id in bodies] == list(bodies.values())
    assert again.new_id() > max(bodies)
    assert again.requests == 20
    again.close()


@pytest.mark.parametrize("sync", ["interval", "always"])
def test_it_is_written_when_it_is_acknowledged(loop: LoopThread, folder: Path, sync: str) -> None:
    journal = opened(loop, folder, sync=sync)

    assert add(loop, journal, entry(1))
    left = opened(loop, crash(folder))

    assert [each.id for each in left.open] == [1]
    journal.close()
    left.close()


def test_marks_and_removals_are_kept(loop: LoopThread, folder: Path) -> None:
    journal = opened(loop, folder)
    for id in (1, 2, 3):
        add(loop, journal, entry(id))

    journal.record(lambda ledger: ledger.fulfil(1, "forward"))
    journal.record(lambda ledger: ledger.fulfil(2, "evaluate"))
    loop.call(lambda: journal.forget(entry(3)))
    journal.close()
    again = opened(loop, folder)

    assert [(each.id, each.forward, each.evaluate) for each in again.open] == [
        (1, False, True),
        (2, True, False),
    ]
    again.close()


def test_closed_traces_are_remembered_while_requests_may_hold_their_spans(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otel_eval.sidecar.ledger.REMEMBERED", 2)
    folder.mkdir()
    ledger = Ledger(folder / FILE, every_commit=False)
    closings = [closing(trace_id(at)) for at in range(5)]

    ledger.add(entry(7), b"x")
    ledger.close(closings)
    ledger.tidy()
    with_request = ledger.closings()
    ledger.remove(7)
    ledger.tidy()

    assert with_request == closings
    assert ledger.closings() == closings[-2:]
    ledger.shut()


def test_it_is_bounded_but_one_request_always_fits(loop: LoopThread, folder: Path) -> None:
    journal = opened(loop, folder, max_mib=0.01)

    alone = journal.fits(1_000_000)
    add(loop, journal, entry(1, b"x" * 9_000), b"x" * 9_000)

    assert alone
    assert journal.fits(500)
    assert not journal.fits(2_000)
    journal.close()


def test_a_second_process_is_told_that_it_is_in_use(loop: LoopThread, folder: Path) -> None:
    journal = opened(loop, folder)

    with pytest.raises(OSError, match="cannot be used"):
        opened(loop, folder)
    journal.close()


def test_space_is_given_back(folder: Path) -> None:
    folder.mkdir()
    ledger = Ledger(folder / FILE, every_commit=False)
    body = b"x" * 100_000
    with ledger.transaction():
        for at in range(1, 301):
            ledger.add(entry(at), body)
    with ledger.transaction():
        for at in range(1, 301):
            ledger.remove(at)
    for _ in range(20):
        ledger.tidy()
    ledger.shut()

    assert (folder / FILE).stat().st_size < 20_000_000


# Damage.


def _garbage(file: Path) -> None:
    file.write_bytes(b"this is no database" * 1000)


def _header(file: Path) -> None:
    file.write_bytes(b"\0" * 100 + file.read_bytes()[100:])


def _torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _newer(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


@pytest.mark.parametrize("damage", [_garbage, _header, _torn, _newer])
def test_a_damaged_journal_is_set_aside_counted_and_reported(
    loop: LoopThread, folder: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    journal = opened(loop, folder)
    for id in range(1, 50):
        add(loop, journal, entry(id, b"x" * 3000), b"x" * 3000)
    journal.close()

    damage(folder / FILE)
    again = opened(loop, folder)
    works = add(loop, again, entry(1))

    assert works
    assert (again.damaged, len(again.open)) == (1, 0)
    assert (folder / f"{FILE}.damaged-1").exists()
    assert "the journal is damaged" in caplog.text
    again.close()


def test_no_byte_that_changed_on_disk_keeps_a_process_from_starting(
    loop: LoopThread, folder: Path
) -> None:
    """Wherever they are: in a page, in a text that is none then, in the schema."""
    folder.mkdir()
    ledger = Ledger(folder / FILE, every_commit=False)
    with ledger.transaction():
        for id in range(1, 20):
            ledger.add(entry(id), b"x")
        ledger.close([closing(trace_id(number)) for number in range(20)])
    ledger.shut()
    written, random, damaged = (folder / FILE).read_bytes(), Random(1), 0

    for _ in range(40):
        changed = bytearray(written)
        for _ in range(random.choice((1, 20, 80))):
            changed[random.randrange(len(changed))] = random.randrange(256)
        (folder / FILE).write_bytes(changed)
        journal = opened(loop, folder)
        damaged += journal.damaged
        journal.close()

    assert damaged == len(list(folder.glob("*.damaged-*[0-9]")))
    assert damaged > 10


def test_a_disk_that_cannot_be_read_for_a_moment_costs_no_request(
    loop: LoopThread, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, read, failures = opened(loop, folder), Ledger.body, count(1)

    def fails_twice(ledger: Ledger, id: int) -> bytes | None:
        if next(failures) <= 2:
            raise sqlite3.OperationalError("disk I/O error")
        return read(ledger, id)

    add(loop, journal, entry(1))
    monkeypatch.setattr(Ledger, "body", fails_twice)

    assert loop.run(journal.body(1)) == b"x"
    assert journal.failures == 2
    journal.close()


def test_damage_that_shows_later_costs_the_old_file_not_the_process(
    loop: LoopThread, folder: Path
) -> None:
    def malformed(_ledger: Ledger) -> None:
        if not journal.damaged:
            raise sqlite3.DatabaseError("database disk image is malformed")

    journal = opened(loop, folder)
    add(loop, journal, entry(1))

    journal.record(malformed)
    works = add(loop, journal, entry(2))

    assert works
    assert journal.damaged == 1
    assert loop.run(journal.body(1)) is None
    assert loop.run(journal.body(2)) == b"x"
    journal.close()


def test_a_torn_end_of_the_log_costs_only_what_was_not_acknowledged(
    loop: LoopThread, folder: Path
) -> None:
    journal = opened(loop, folder)
    for id in range(1, 11):
        add(loop, journal, entry(id))
    left = crash(folder)
    wal = left / f"{FILE}-wal"
    wal.write_bytes(wal.read_bytes()[:-100])
    journal.close()

    again = opened(loop, left)

    assert again.damaged == 0
    assert [each.id for each in again.open][:9] == list(range(1, 10))
    again.close()


def test_a_body_that_changed_on_disk_is_not_sent(loop: LoopThread, folder: Path) -> None:
    journal = opened(loop, folder)
    add(loop, journal, entry(1))
    journal.record(lambda ledger: ledger._db.execute("UPDATE bodies SET body = x'79'") and None)
    loop.run(journal.settled())

    assert loop.run(journal.body(1)) is None
    journal.close()


# In the sidecar.


def test_requests_leave_when_they_are_forwarded_and_scored(far: Receiving, folder: Path) -> None:
    far.recorder.refuse = lambda _signal: DOWN
    config = {"forward": forward_to(far), "journal": keeping(folder), "grouping": FAST}
    with running(**config) as run:
        send(run, 1, 2)
        run.wait("otel_eval_spans_scored_total", 6)
        waiting = run.value("otel_eval_journal_requests"), run.value("otel_eval_journal_bytes")
        far.recorder.refuse = lambda _signal: None
        empty(run)

        assert waiting[0] >= 4
        assert waiting[1] > 0
        assert run.value("otel_eval_journal_bytes") == 0
        assert run.value("otel_eval_spans_forwarded_total") == 6
    assert spans_by_trace(far.recorder.spans).keys() == {trace_id(1), trace_id(2)}


def test_without_a_target_requests_leave_when_they_are_scored(folder: Path) -> None:
    with running(journal=keeping(folder)) as run:
        send(run, 1)
        run.wait("otel_eval_journal_requests", 1)
        empty(run)

        assert run.value("otel_eval_spans_scored_total") == 3


def test_what_is_passed_by_does_not_stay_for_ever(far: Receiving, folder: Path) -> None:
    with running(forward=forward_to(far), journal=keeping(folder)) as run:
        send(run, 1)
        run.wait("otel_eval_spans_scored_total", 3)
        send(run, 1)
        own = request(tool_trace(trace_id(2))[0])
        own.resource_spans[0].scope_spans[0].scope.name = OWN
        export(run.ports.grpc, own.SerializeToString())
        export(run.ports.grpc, logs().SerializeToString(), signal=LOGS)
        export(run.ports.grpc, b"")
        empty(run)

        assert run.value("otel_eval_spans_duplicate_total") == 3
        assert run.value("otel_eval_spans_own_total") == 1


@pytest.mark.parametrize("mode", ["through", "attach"])
def test_what_was_open_is_scored_and_forwarded_after_a_crash(
    far: Receiving, folder: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "otel_eval")
    dead = {"endpoint": f"http://127.0.0.1:{free_port()}", "mode": mode}
    with running(forward=dead, journal=keeping(folder), grouping=NEVER) as run:
        send(run, *range(1, 11))
        left = crash(folder, run)

    config = {"forward": forward_to(far, mode=mode), "journal": keeping(left)}
    with running(**config) as run:
        run.wait("otel_eval_spans_scored_total", 30)
        empty(run)

        assert run.value("otel_eval_journal_recovered_requests_total") == 20
        assert run.value("otel_eval_journal_recovered_spans_total") == 30
    assert "recovered 20 requests with 30 spans" in caplog.text
    found = spans_by_trace(far.recorder.spans)
    assert all(len(found[trace_id(number)]) == 3 for number in range(1, 11))
    told = log_events(far.recorder.arrivals)
    assert told.keys() == {
        (trace_id(number), name, 1)
        for number in range(1, 11)
        for name in ("tool-error-rate", "tool-loop")
    }
    assert set(told.values()) == {1}
    attached = [span for span in far.recorder.spans if span.events and span.scope.name != OWN]
    assert len(attached) == (10 if mode == "attach" else 0)


def test_they_are_forwarded_in_the_order_in_which_they_came(far: Receiving, folder: Path) -> None:
    dead = {"endpoint": f"http://127.0.0.1:{free_port()}"}
    with running(forward=dead, journal=keeping(folder), grouping=NEVER) as run:
        send(run, *range(1, 30))
        left = crash(folder, run)
    with running(forward=forward_to(far), journal=keeping(left), grouping=NEVER) as run:
        empty_queue = "otel_eval_spans_forwarded_total"
        run.wait(empty_queue, 87)

    arrived = [span.trace_id for span in far.recorder.spans if span.scope.name != OWN]
    numbers = [int(each, 16) for each in arrived]
    # As many as there are senders may overtake each other.
    assert all(later >= sooner - 4 for sooner, later in pairwise(numbers))


@pytest.mark.parametrize("mode", ["through", "attach"])
def test_what_was_scored_before_the_crash_is_told_after_it_and_not_scored_again(
    far: Receiving, folder: Path, mode: str
) -> None:
    dead = {"endpoint": f"http://127.0.0.1:{free_port()}", "mode": mode}
    with running(forward=dead, journal=keeping(folder)) as run:
        send(run, 1)
        custody = run.sidecar._custody
        assert custody is not None
        run.wait("otel_eval_spans_scored_total", 3)
        run.loop.until(lambda: not custody._waiting and not custody._closing)
        run.loop.run(custody.journal.settled())
        left = crash(folder, run)

    target = forward_to(far, mode=mode, max_hold="100ms")
    with running(forward=target, journal=keeping(left)) as run:
        empty(run)
        send(run, 1)
        empty(run)

        assert run.value("otel_eval_spans_scored_total") == 0
        assert run.value("otel_eval_evaluations_total") == 0
    assert set(log_events(far.recorder.arrivals).values()) == {1}
    own = [span for span in far.recorder.spans if span.scope.name == OWN]
    attached = [span for span in far.recorder.spans if span.events and span.scope.name != OWN]
    assert (len(own), len(attached)) == ((0, 1) if mode == "attach" else (1, 0))
    assert len(spans_by_trace(far.recorder.spans)[trace_id(1)]) == 3


def test_a_part_that_was_scored_stays_apart_from_what_came_after_it(folder: Path) -> None:
    calls, root = tool_trace()[:-1], tool_trace()[-1]
    other = tool_trace(trace_id(9))[0]
    with running(journal=keeping(folder), grouping={**FAST, "idle": "1h"}) as run:
        body = request(*calls, root, other).SerializeToString()
        assert export(run.ports.grpc, body).code is grpc.StatusCode.OK
        run.wait("otel_eval_spans_scored_total", 2)
        custody = run.sidecar._custody
        assert custody is not None
        run.loop.until(lambda: not custody._closing)
        left = crash(folder, run)

    with running(journal=keeping(left)) as run:
        second = request({**root, "span_id": "00000000000000bb"}).SerializeToString()
        export(run.ports.grpc, second)
        run.wait("otel_eval_spans_scored_total", 1)

        assert run.value("otel_eval_spans_duplicate_total") == 2
        assert run.value("otel_eval_spans_open") == 1


@pytest.mark.parametrize("logs_first", [True, False])
def test_what_log_records_say_about_an_open_trace_is_known_after_a_crash(
    far: Receiving, folder: Path, logs_first: bool
) -> None:
    model = {
        **tool_trace(tools=["x"])[0],
        "name": "chat gpt",
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt"},
    }
    content = logs()
    record = content.resource_logs[0].scope_logs[0].log_records[0]
    record.event_name = "gen_ai.client.inference.operation.details"
    record.trace_id, record.span_id = bytes.fromhex(TRACE_ID), bytes.fromhex(model["span_id"])
    part = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "milk"}}
    messages = orjson.dumps([{"role": "assistant", "parts": [part]}]).decode()
    record.attributes.extend(attributes({"gen_ai.output.messages": messages}))
    expected = {"type": "tool-call-args", "tool_calls": [{"name": "search", "args": {"q": "milk"}}]}
    config = {"forward": forward_to(far), "rules": [{"name": "args", "evaluators": [expected]}]}
    requests = [(LOGS, content), (TRACES, request(model, *tool_trace(tools=[])))]
    with running(journal=keeping(folder), grouping=NEVER, **config) as run:
        for signal, each in requests if logs_first else reversed(requests):
            export(run.ports.grpc, each.SerializeToString(), signal=signal)
        run.wait("otel_eval_spans_forwarded_total", 2)
        left = crash(folder)
    with running(journal=keeping(left), **config) as run:
        run.wait("otel_eval_evaluations_total", 1, rule="args", verdict="pass")
        empty(run)


def told_names(far: Receiving) -> list[tuple[str, int]]:
    return sorted(
        (name, count) for (_, name, _), count in log_events(far.recorder.arrivals).items()
    )


def test_the_traces_of_an_open_session_are_in_it_after_a_crash(
    far: Receiving, folder: Path
) -> None:
    rules = [
        {"name": "each", "evaluators": [{"type": "tool-loop"}]},
        {"name": "all", "per": "session", "evaluators": [{"type": "tool-error-rate"}]},
    ]
    config = {"forward": forward_to(far), "rules": rules}
    with running(journal=keeping(folder), **config) as run:
        for number in (1, 2):
            spans = [
                {**span, "attributes": {**span["attributes"], "session.id": "of one user"}}
                for span in tool_trace(trace_id(number))
            ]
            export(run.ports.grpc, request(*spans).SerializeToString())
        run.wait("otel_eval_spans_scored_total", 4)
        run.loop.until(lambda: told_names(far) == [("tool-loop", 1)] * 2)
        custody = run.sidecar._custody
        assert custody is not None
        run.loop.until(lambda: custody.journal.requests == 2)
        run.loop.run(custody.journal.settled())
        left = crash(folder)
    far.recorder.reset()
    with running(
        journal=keeping(left), **config, grouping={**FAST, "session_idle": "300ms"}
    ) as run:
        run.wait("otel_eval_sessions_total", 1)
        empty(run)

        assert run.value("otel_eval_evaluations_total") == 1
    assert told_names(far) == [("tool-error-rate", 1)]


def test_a_trace_is_scored_again_when_the_crash_came_before_its_judge_answered(
    far: Receiving, folder: Path
) -> None:
    rule = {
        "name": "both",
        "evaluators": [
            {"type": "tests.sidecar.judges:Gated", "name": "judge"},
            {"type": "tool-loop"},
        ],
    }
    config = {"forward": forward_to(far), "rules": [rule]}
    Gated.gate.clear()
    Gated.asked.clear()
    with running(journal=keeping(folder), **config) as run:
        send(run, 1)
        run.loop.until(Gated.asked.is_set)
        run.wait("otel_eval_evaluations_total", 1)
        before = told_names(far)
        left = crash(folder)
        Gated.gate.set()
        run.loop.until(lambda: told_names(far) == [("judge", 1), ("tool-loop", 1)])
        empty(run)
    far.recorder.reset()
    with running(journal=keeping(left), **config) as run:
        run.loop.until(lambda: told_names(far) == [("judge", 1), ("tool-loop", 1)])
        empty(run)

    assert before == []


def test_a_full_journal_refuses_for_now_and_takes_again_when_it_has_room(
    far: Receiving, folder: Path
) -> None:
    far.recorder.refuse = lambda _signal: DOWN
    with running(forward=forward_to(far), journal=keeping(folder, max_mib=0.02)) as run:
        body = request(*tool_trace()).SerializeToString()
        answers = [export(run.ports.grpc, body) for _ in range(60)]
        over_http = post(run.ports.http, body, PROTOBUF)
        taken = sum(each.code is grpc.StatusCode.OK for each in answers)
        run.check_identities()
        far.recorder.refuse = lambda _signal: None
        empty(run)
        again = export(run.ports.grpc, body)

        assert 10 < taken < 60
        assert answers[-1].code is grpc.StatusCode.UNAVAILABLE
        assert answers[-1].message == "the journal is full"
        assert "google.rpc.retryinfo-bin" in answers[-1].trailers
        assert over_http.status == 503
        assert 1 <= int(over_http.headers["retry-after"]) <= 5
        assert again.code is grpc.StatusCode.OK
    sent = [span for span in far.recorder.spans if span.scope.name != OWN]
    assert len(sent) == 2 * (taken + 1)


def test_a_target_that_is_down_costs_disk_not_memory_and_not_data(
    far: Receiving, folder: Path
) -> None:
    far.recorder.refuse = lambda _signal: DOWN
    target = forward_to(far, queue_mib=0.005)
    with running(forward=target, journal=keeping(folder)) as run:
        send(run, *range(1, 51))
        run.wait("otel_eval_spans_scored_total", 150)
        forwarder = run.sidecar._outbound.forwarder
        assert forwarder is not None
        in_memory = forwarder.bytes
        far.recorder.refuse = lambda _signal: None
        empty(run)

        assert in_memory <= 0.005 * 1024 * 1024
    found = spans_by_trace(far.recorder.spans)
    assert all(len(found[trace_id(number)]) == 3 for number in range(1, 51))
    assert set(log_events(far.recorder.arrivals).values()) == {1}


def test_what_is_not_sent_when_the_process_ends_is_sent_by_the_next(
    far: Receiving, folder: Path
) -> None:
    dead = {"endpoint": f"http://127.0.0.1:{free_port()}"}
    with running(forward=dead, journal=keeping(folder)) as run:
        send(run, 1, 2)
        drained = run.drain(2)

        assert drained, "all of it is scored, and what is not sent is kept"
        assert run.value("otel_eval_spans_queued") == 6
        assert run.value("otel_eval_spans_dropped_total") == 0
    with running(forward=forward_to(far), journal=keeping(folder)) as run:
        empty(run)

        assert run.value("otel_eval_spans_forwarded_total") == 6
    assert len(spans_by_trace(far.recorder.spans, own=True)) == 2
    assert set(log_events(far.recorder.arrivals).values()) == {1}


def test_json_that_waits_for_http_goes_to_grpc_when_that_is_the_target_now(
    far: Receiving, folder: Path
) -> None:
    dead = {"endpoint": f"http://127.0.0.1:{free_port()}", "protocol": "http"}
    with running(forward=dead, journal=keeping(folder)) as run:
        assert post(run.ports.http, orjson.dumps(json_request()), JSON).status == 200
        left = crash(folder, run)
    with running(forward=forward_to(far), journal=keeping(left)) as run:
        run.wait("otel_eval_spans_forwarded_total", 1)

    assert [span.name for span in far.recorder.spans] == ["work"]


def test_events_that_cannot_be_written_leave_the_trace_scored(
    far: Receiving, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    odd = {"type": "tests.sidecar.judges:Unwritable", "name": "odd"}
    rules = [{"name": "first", "evaluators": [odd]}]
    config = {"forward": forward_to(far), "journal": keeping(folder), "grouping": FAST}
    with running(**config, rules=rules) as run:
        send(run, 1, 2)
        empty(run)

        assert run.value("otel_eval_spans_scored_total") == 6
        assert run.value("otel_eval_spans_forwarded_total") == 6
    assert f"events of {trace_id(1)} cannot be written" in caplog.text


def test_a_trace_that_is_nested_too_deeply_holds_up_no_other(far: Receiving, folder: Path) -> None:
    """JSON may be nested more deeply than the protobuf of our own events."""
    deep: dict[str, Any] = {"stringValue": "x"}
    for _ in range(60):
        deep = {"arrayValue": {"values": [deep]}}
    tool = {"key": "tool.name", "value": {"stringValue": "search"}}
    request = json_request(attributes=[tool])
    request["resourceSpans"][0]["resource"] = {"attributes": [{"key": "notes", "value": deep}]}
    config = {"forward": forward_to(far, "http"), "journal": keeping(folder), "grouping": FAST}
    with running(**config) as run:
        assert post(run.ports.http, orjson.dumps(request), JSON).status == 200
        run.wait("otel_eval_spans_scored_total", 1)
        send(run, 1)
        empty(run)

    assert len(spans_by_trace(far.recorder.spans, own=True)) == 2


def test_the_target_may_be_gone_after_a_restart(folder: Path) -> None:
    dead = {"endpoint": f"http://127.0.0.1:{free_port()}"}
    with running(forward=dead, journal=keeping(folder), grouping=NEVER) as run:
        send(run, 1)
        export(run.ports.grpc, logs().SerializeToString(), signal=LOGS)
        left = crash(folder, run)
    with running(journal=keeping(left)) as run:
        run.wait("otel_eval_spans_scored_total", 3)
        empty(run)


def test_bytes_that_changed_on_disk_are_counted_and_the_rest_is_recovered(
    far: Receiving, folder: Path
) -> None:
    dead = {"endpoint": f"http://127.0.0.1:{free_port()}"}
    with running(forward=dead, journal=keeping(folder), grouping=NEVER) as run:
        send(run, 1, 2)
        left = crash(folder, run)
    with sqlite3.connect(left / FILE) as db:
        db.execute("UPDATE bodies SET body = zeroblob(length(body)) WHERE id = 1")
    db.close()
    with running(forward=forward_to(far), journal=keeping(left)) as run:
        empty(run)

        assert run.value("otel_eval_journal_unreadable_requests_total") == 1
        assert run.value("otel_eval_spans_dropped_total", reason="damaged") == 1
        assert run.value("otel_eval_spans_forwarded_total") == 5
