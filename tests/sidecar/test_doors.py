import socket

import pytest
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value
from starlette.applications import Starlette

from otel_eval.errors import ConfigError
from otel_eval.settings import Admin, Otlp
from otel_eval.sidecar.doors import Doors, _most_under_way
from otel_eval.sidecar.listeners import bind
from otel_eval.sidecar.tokens import Tokens
from otel_eval.workers import suppressed
from tests.sidecar.loops import loop_thread
from tests.sidecar.otlp import export, post, traces
from tests.sidecar.servers import ANY_PORT, Recorder


def doors(recorder: Recorder, **settings: object) -> Doors:
    otlp = Otlp.model_validate({"grpc": ANY_PORT, "http": ANY_PORT, **settings})
    admin = Admin.model_validate(ANY_PORT)
    return Doors(otlp, admin, intake=recorder, tokens=Tokens(), pages=Starlette())


def test_requests_are_handled_with_instrumentation_suppressed() -> None:
    """Spans of our own work would be sent to ourselves, and make more of them."""
    recorder, seen = Recorder(), []
    recorder.taking = lambda: seen.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY))

    async def open_suppressed(made: Doors) -> None:
        with suppressed():
            await made.open()

    with loop_thread() as loop:
        made = loop.call(lambda: doors(recorder))
        loop.run(open_suppressed(made))
        post(made.ports.http, traces())
        export(made.ports.grpc, traces())
        loop.run(made.close())

    assert seen == [True, True]


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("largest", "budget", "most"),
    [(64, 768, 128), (64, 64, 32), (64, 1, 8), (1, 768, 2)],
    ids=["two requests", "half a small budget", "of a tiny one a little", "of small requests two"],
)
def test_requests_on_their_way_in_have_a_share_of_the_budget(
    largest: int, budget: int, most: int
) -> None:
    otlp = Otlp.model_validate(
        {"grpc": {"max_message_mib": largest}, "http": {"max_message_mib": largest}}
    )

    assert _most_under_way(otlp, budget * MIB) == most * MIB


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_port_in_use_is_named(protocol: str) -> None:
    with socket.socket() as taken, loop_thread() as loop:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(OSError, match=f"^cannot listen on {endpoint}: Address already in use$"):
            loop.call(lambda: doors(Recorder(), **{protocol: {"endpoint": endpoint}}))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_an_address_of_another_machine_is_not_called_taken(protocol: str) -> None:
    settings = {protocol: {"endpoint": "192.0.2.1:4317"}}

    with loop_thread() as loop, pytest.raises(OSError, match="Cannot assign requested address"):
        loop.call(lambda: doors(Recorder(), **settings))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_certificate_that_is_not_there_is_told_with_its_place(protocol: str) -> None:
    tls = {"cert_file": "none.crt", "key_file": "none.key"}
    settings = {protocol: {**ANY_PORT, "tls": tls}}

    with loop_thread() as loop, pytest.raises(ConfigError, match=f"^receivers.otlp.{protocol}.tls"):
        loop.call(lambda: doors(Recorder(), **settings))


def test_no_answer_waits_for_the_acknowledgement_of_its_first_half() -> None:
    """asyncio switches Nagle's algorithm off only where it is told that a socket is TCP's."""
    with bind("127.0.0.1:0") as listening:
        assert listening.proto == socket.IPPROTO_TCP
