import asyncio
from threading import Thread
from typing import Any

from otel_eval.sidecar.handover import Handover


class Waking(asyncio.SelectorEventLoop):
    """Counts how often other threads woke it."""

    woken = 0

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        self.woken += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def in_a_thread(act: Any) -> None:
    thread = Thread(target=act)
    thread.start()
    thread.join()


def test_one_waking_serves_all_that_came_and_their_order_is_kept() -> None:
    called: list[int] = []

    async def hand_over(loop: Waking) -> None:
        handover = Handover(loop)
        for first in (0, 100):
            some = range(first, first + 100)
            in_a_thread(
                lambda some=some: [handover.put(lambda n=n: called.append(n)) for n in some]
            )
        assert not called
        done = loop.create_future()
        handover.put(lambda: done.set_result(None))
        await done

    with asyncio.Runner(loop_factory=Waking) as runner:
        loop = runner.get_loop()
        before = loop.woken
        runner.run(hand_over(loop))

        assert loop.woken == before + 1
    assert called == list(range(200))


def test_what_is_put_while_others_are_called_is_called_too() -> None:
    async def hand_over() -> str:
        handover = Handover(asyncio.get_running_loop())
        done = asyncio.get_running_loop().create_future()
        handover.put(lambda: handover.put(lambda: done.set_result("called")))
        found: str = await asyncio.wait_for(done, 10)
        return found

    assert asyncio.run(hand_over()) == "called"


def test_a_call_that_raises_is_reported_and_keeps_no_other_from_being_called() -> None:
    async def hand_over() -> list[Any]:
        loop = asyncio.get_running_loop()
        reported: list[Any] = []
        loop.set_exception_handler(lambda _, report: reported.append(report["exception"]))
        done = loop.create_future()
        handover = Handover(loop)
        handover.put(lambda: reported.append(1 / 0))
        handover.put(lambda: done.set_result(None))
        await asyncio.wait_for(done, 10)
        return reported

    (error,) = asyncio.run(hand_over())

    assert isinstance(error, ZeroDivisionError)


def test_a_loop_that_is_gone_is_no_error() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    Handover(loop).put(lambda: None)
