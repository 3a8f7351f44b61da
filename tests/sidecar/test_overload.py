"""More than the sidecar can hand on. OTEL_EVAL_OVERLOAD_SECONDS=60 makes it last."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import grpc
import pytest

from otel_eval.sidecar.answers import Refusal
from otel_eval.sidecar.intake import Arrival
from otel_eval.sidecar.signals import TRACES
from tests.sidecar.otlp import traces
from tests.sidecar.processes import Process, process
from tests.sidecar.running import config_of, forward_to
from tests.sidecar.servers import Receiving, Recorder, receiving

SECONDS = float(os.environ.get("OTEL_EVAL_OVERLOAD_SECONDS", "2"))
SENDERS = 4
BATCH = 500
BUFFER_MIB, QUEUE_MIB = 32, 2
BOUND_KIB = (1.5 * (BUFFER_MIB + QUEUE_MIB) + 150) * 1024


class Counting(Recorder):
    """Remembers which batches came, not what is in them, and takes its time over each."""

    batches: Counter[str]

    async def take(self, arrival: Arrival) -> Refusal | None:
        time.sleep(0.05)
        if arrival.spans and arrival.spans[0].scope.name == "tests":
            self.batches[arrival.spans[0].trace_id] += 1
        return None


@dataclass
class Sent:
    acknowledged: set[str] = field(default_factory=set)
    refusals: Counter[tuple[grpc.StatusCode, bool]] = field(default_factory=Counter)
    """By code, and by whether it says when to come again."""

    @property
    def offered(self) -> int:
        """How many batches the sidecar was asked to take, the same one as often as it came."""
        return len(self.acknowledged) + self.refusals.total()


@pytest.fixture
def slow() -> Iterator[Receiving]:
    with receiving(recorder=Counting()) as server:
        assert isinstance(server.recorder, Counting)
        server.recorder.batches = Counter()
        yield server


def test_overload_is_refused_for_now_stays_in_its_memory_and_loses_nothing(
    slow: Receiving, tmp_path: Path
) -> None:
    config = config_of(
        forward=forward_to(slow, compression="none", queue_mib=QUEUE_MIB),
        grouping={"settle": "1s", "max_buffer_mib": BUFFER_MIB, "max_trace_mib": 8},
        emit={"events": []},
    )
    with process(tmp_path, config) as started:
        sent = _send(started)
        started.check_identities()
        peak = _peak_kib(started)
        started.signal(signal.SIGTERM)
        code = started.exit_code()

    print(f"{sent.offered} offered, {len(sent.acknowledged)} taken, peak {peak} of {BOUND_KIB} KiB")
    assert code == 0
    assert sent.offered >= 2 * len(sent.acknowledged)
    assert sent.refusals.keys() == {(grpc.StatusCode.UNAVAILABLE, True)}
    assert peak is None or peak <= BOUND_KIB
    assert isinstance(slow.recorder, Counting)
    assert slow.recorder.batches == Counter(dict.fromkeys(sent.acknowledged, 1))


def _send(started: Process) -> Sent:
    sent, ends = Sent(), time.monotonic() + SECONDS
    threads = [
        threading.Thread(target=_send_until, args=(started, number, ends, sent))
        for number in range(SENDERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sent


def _send_until(started: Process, sender: int, ends: float, sent: Sent) -> None:
    """A batch that is refused comes again at once: no sender could press harder."""
    assert started.ports is not None
    with grpc.insecure_channel(f"127.0.0.1:{started.ports.grpc}") as channel:
        call = channel.unary_unary(TRACES.method)
        for number in count(1):
            trace_id = f"{sender + 1:016x}{number:016x}"
            body = traces(BATCH, trace_id=trace_id, attributes={"text": "x" * 200})
            while not _taken(call, body, sent):
                if time.monotonic() > ends:
                    return
            sent.acknowledged.add(trace_id)


def _taken(call: Callable[..., bytes], body: bytes, sent: Sent) -> bool:
    try:
        call(body, timeout=10)
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        sent.refusals[error.code(), "google.rpc.retryinfo-bin" in trailers] += 1
        return False
    return True


def _peak_kib(started: Process) -> int | None:
    status = Path(f"/proc/{started.pid}/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))

    return int(line.split()[1])
