import threading
from collections.abc import Iterator

import pytest
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value

from otel_eval.workers import Crew, Worker


class Notes:
    """Work that waits until it is released, and keeps what it did."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.began = threading.Event()
        self.done: list[object] = []

    def __call__(self, item: object) -> None:
        self.began.set()
        assert self.released.wait(10)
        self.done.append(item)


@pytest.fixture
def notes() -> Iterator[Notes]:
    made = Notes()
    yield made
    made.released.set()


def test_a_crew_that_is_not_started_works_inline(notes: Notes) -> None:
    notes.released.set()
    crew: Crew[int] = Crew(notes, name="crew", most=1)

    assert crew.put(1)
    crew.close(2)
    assert not crew.put(3)

    assert notes.done == [1, 2]
    assert crew.wait(0)


def test_a_crew_refuses_what_finds_too_much_waiting(notes: Notes) -> None:
    crew: Crew[int] = Crew(notes, name="crew", most=1)
    crew.start()
    assert crew.put(1)
    assert notes.began.wait(10)

    assert crew.put(2)
    assert not crew.put(3)
    assert not crew.put(4, patience=0.01)
    assert not crew.wait(0.01)
    notes.released.set()
    assert crew.wait(10)

    assert notes.done == [1, 2]


def test_a_crew_waits_for_room_as_long_as_it_is_told(notes: Notes) -> None:
    crew: Crew[int] = Crew(notes, name="crew", most=1)
    crew.start()
    crew.put(1)
    assert notes.began.wait(10)
    crew.put(2)

    threading.Timer(0.05, notes.released.set).start()

    assert crew.put(3, patience=10)


def test_a_crew_takes_the_last_item_however_much_is_waiting(notes: Notes) -> None:
    crew: Crew[int] = Crew(notes, name="crew", most=1)
    crew.start()
    crew.put(1)
    assert notes.began.wait(10)
    crew.put(2)

    crew.close(3)
    crew.close(4)
    assert not crew.put(5)
    notes.released.set()

    assert crew.wait(10)
    assert notes.done == [1, 2, 3]


def test_the_threads_of_a_crew_end_when_it_is_closed() -> None:
    crew: Crew[int] = Crew(lambda _: None, name="ends", threads=3, most=1)
    crew.start()
    threads = [each for each in threading.enumerate() if each.name == "ends"]

    crew.close()
    for each in threads:
        each.join(10)

    assert len(threads) == 3
    assert not any(each.is_alive() for each in threads)


@pytest.mark.parametrize("started", [True, False])
def test_what_a_crew_does_makes_no_spans(started: bool) -> None:
    seen: list[object] = []
    crew: Crew[int] = Crew(
        lambda _: seen.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY)), name="crew", most=1
    )
    if started:
        crew.start()

    crew.put(1)
    crew.wait(10)
    crew.close()

    assert seen == [True]


def test_a_worker_goes_on_after_a_step_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()

    def step() -> None:
        raise ArithmeticError("once more")

    worker = Worker(step, lambda _whose, _how: failed.set(), 0.01)
    worker.start()

    assert failed.wait(10)
    failed.clear()
    assert failed.wait(10)
    assert worker.ask(worker.stop, 10)
    assert "a step of the engine failed" in caplog.text


def test_a_worker_that_is_busy_is_not_waited_for_longer_than_asked(notes: Notes) -> None:
    worker = Worker(lambda: notes(0), lambda _whose, _how: None, 0.01)
    worker.start()
    assert notes.began.wait(10)

    assert not worker.ask(lambda: None, 0.05)
    notes.released.set()
    assert worker.ask(worker.stop, 10)


def test_a_worker_that_stopped_leaves_the_work_to_who_asks() -> None:
    worker = Worker(lambda: None, lambda _whose, _how: None, 0.01)
    worker.stop()
    asked: list[str] = []

    assert worker.ask(lambda: asked.append(threading.current_thread().name), 10)

    assert asked == [threading.current_thread().name]
