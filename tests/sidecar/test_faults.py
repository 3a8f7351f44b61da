"""What goes wrong in production, with real processes and real servers.

Each test asserts that nothing that was acknowledged is missing at the target.
OTEL_EVAL_FAULTS=full adds those that take long, and kills 25 times.
"""

import os
import re
import shutil
import signal
import time
from pathlib import Path
from random import Random
from typing import Any, Literal

import grpc
import pytest

from tests.sidecar.collectors import free_port
from tests.sidecar.judges import Gated, Hangs
from tests.sidecar.loads import Load, log_events, requests_of, spans_by_trace, trace_id
from tests.sidecar.otlp import export, post, request, tool_trace, traces
from tests.sidecar.processes import Process, process
from tests.sidecar.proxies import Fault, proxy
from tests.sidecar.running import Running, config_of, forward_to, running
from tests.sidecar.servers import Receiving, receiving
from tests.soak.page import Page

pytestmark = pytest.mark.faults

FULL = os.environ.get("OTEL_EVAL_FAULTS") == "full"
ROUNDS = 25 if FULL else 2
long = pytest.mark.skipif(not FULL, reason="takes long: OTEL_EVAL_FAULTS=full")
Protocol = Literal["grpc", "http"]
RETRYABLE = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
"""To OTLP's clients; the second is for what is under way when the last connection closes."""
SPAN_IDS = {"0000000000000001", "0000000000000002", "00000000000000aa"}


def port_of(far: Receiving, protocol: Protocol) -> int:
    return far.ports.grpc if protocol == "grpc" else far.ports.http


def keeping(folder: Path, **options: Any) -> dict[str, Any]:
    return {"path": str(folder / "journal"), **options}


def grpc_port(started: Process) -> int:
    assert started.ports is not None, started.log
    return started.ports.grpc


def wait(run: Running, name: str, value: float, **labels: str) -> None:
    """For much: the page is read seldom, because to write it is work too."""
    run.loop.until(lambda: run._now(name, labels) == value, 150, pause=0.5)


def end(started: Process) -> None:
    """All that is taken is accounted for, and the process ends as it should."""
    assert Page(started.page()).broken() == []
    started.signal(signal.SIGTERM)
    assert started.exit_code() == 0, started.log


def check_nothing_is_missing(load: Load, far: Receiving) -> None:
    """Every span of every acknowledged trace, and each evaluation of it, of one part only."""
    spans = spans_by_trace(far.recorder.spans)
    own = spans_by_trace(far.recorder.spans, own=True)
    told = log_events(far.recorder.arrivals)
    for trace in load.acknowledged:
        assert spans[trace] == SPAN_IDS
        assert len(own[trace]) == 1, "the span of an evaluation has an id that follows from it"
        assert told[trace, "tool-error-rate", 1] >= 1
    assert {part for _, _, part in told} == {1}


def test_kill_9_at_random_moments_under_load_loses_nothing(tmp_path: Path) -> None:
    random, load = Random(ROUNDS), Load()
    with receiving() as far:
        config = config_of(forward=forward_to(far), journal=keeping(tmp_path))
        for _ in range(ROUNDS):
            with process(tmp_path, config) as started:
                load.start(grpc_port(started))
                load.wait(random.randint(20, 300))
                started.signal(signal.SIGKILL)
                load.stop()
        with process(tmp_path, config) as started:
            recovered = started.wait_for_log("recovered")
            end(started)

        print(f"{ROUNDS} rounds, {len(load.acknowledged)} traces; at the end: {recovered}")
        check_nothing_is_missing(load, far)


def test_a_full_disk_is_refused_for_now_and_costs_nothing_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    """A limit on the size of files fails like a full disk: the write that crosses it is refused."""
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("needs prlimit")
    load = Load(threads=1)
    with receiving() as far:
        config = config_of(forward=forward_to(far), journal=keeping(tmp_path))
        with process(tmp_path, config) as started:
            load.start(grpc_port(started))
            load.wait(10)
            _, hard = resource.prlimit(started.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (1, hard))
            started.wait_for_log("the journal cannot be written")
            before = len(load.acknowledged)
            load.wait_for_refusals(5)
            during = len(load.acknowledged)
            resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (hard, hard))
            load.wait(10)
            load.stop()
            page = started.page()
            end(started)

        assert during - before <= 1
        assert load.codes.keys() == {grpc.StatusCode.UNAVAILABLE}
        assert "otel_eval_journal_failures_total 0.0" not in page
        check_nothing_is_missing(load, far)


def test_a_target_that_goes_and_comes_back_gets_all_of_it_across_restarts(tmp_path: Path) -> None:
    load, port = Load(), free_port()
    forward = {"endpoint": f"http://127.0.0.1:{port}", "queue_mib": 0.01}
    config = config_of(forward=forward, journal=keeping(tmp_path))
    with process(tmp_path, config) as started:
        load.start(grpc_port(started))
        load.wait(100)
        load.stop()
        started.signal(signal.SIGKILL)
    with receiving(grpc={"endpoint": f"127.0.0.1:{port}"}) as far:
        with process(tmp_path, config) as started:
            started.wait_for_log("recovered")
            end(started)

        check_nothing_is_missing(load, far)


def test_a_slow_target_holds_up_nobody_and_gets_all_of_it(tmp_path: Path) -> None:
    load = Load(threads=1)
    with receiving() as far:
        far.recorder.taking = lambda: time.sleep(0.05)
        config = {"forward": forward_to(far), "journal": keeping(tmp_path)}
        with running(**config) as run:
            load.start(run.ports.grpc)
            load.wait(30)
            load.stop()
            custody = run.sidecar._custody
            assert custody is not None
            behind = run.value("otel_eval_spans_queued")
            far.recorder.taking = lambda: None
            run.loop.until(lambda: not custody.journal.requests, 20)

        assert behind > 0
        assert not load.codes
        check_nothing_is_missing(load, far)


def test_sigterm_under_load_leaves_in_time_and_what_is_left_is_done_by_the_next(
    tmp_path: Path,
) -> None:
    load = Load()
    with receiving() as far:
        config = config_of(
            forward=forward_to(far),
            journal=keeping(tmp_path),
            grouping={"settle": "1h", "local_settle": "1h"},
        )
        with process(tmp_path, config) as started:
            load.start(grpc_port(started))
            load.wait(30)
            started.signal(signal.SIGTERM)
            code = started.exit_code()
            load.stop()
            with process(tmp_path, config) as after:
                end(after)

        assert code == 0
        assert grpc.StatusCode.UNAVAILABLE in load.codes
        assert load.codes.keys() <= RETRYABLE
        check_nothing_is_missing(load, far)


def test_a_wall_clock_that_jumps_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By HTTP, because gRPC's clients in this process would take the jump for their own."""
    true_time = time.time
    jumps = [86_400, -86_400, 0] * 3
    with receiving() as far:
        config = {"forward": forward_to(far, "http"), "journal": keeping(tmp_path)}
        with running(**config) as run:
            for number, jump in enumerate(jumps, 1):
                monkeypatch.setattr(time, "time", lambda jump=jump: true_time() + jump)
                for body in requests_of(number):
                    assert post(run.ports.http, body).status == 200
            run.wait("otel_eval_spans_scored_total", 3 * len(jumps))

            assert run.value("otel_eval_traces_total", closed_by="root") == len(jumps)
        spans, told = spans_by_trace(far.recorder.spans), log_events(far.recorder.arrivals)
        assert [spans[trace_id(number)] for number in range(1, len(jumps) + 1)] == [SPAN_IDS] * len(
            jumps
        )
        assert set(told.values()) == {1}


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_target_that_resets_answers_garbage_or_nothing_gets_all_of_it_in_the_end(
    tmp_path: Path, protocol: Protocol
) -> None:
    load = Load(threads=1)
    faults: list[Fault] = ["reset", "garbage", "silent"]
    with receiving() as far, proxy(port_of(far, protocol)) as line:
        target = {"endpoint": f"http://127.0.0.1:{line.port}", "protocol": protocol}
        config = {"forward": {**target, "timeout": "300ms"}, "journal": keeping(tmp_path)}
        with running(**config) as run:
            load.start(run.ports.grpc)
            for fault in faults:
                failed = line.failed
                line.set(fault)
                load.wait(5)
                run.loop.until(lambda failed=failed: line.failed > failed)
            line.set("none")
            load.stop()
            custody = run.sidecar._custody
            assert custody is not None
            run.loop.until(lambda: not custody.journal.requests, 20)

            assert run.value("otel_eval_spans_dropped_total") == 0
        check_nothing_is_missing(load, far)


def test_a_span_of_60_mib_is_forwarded_as_it_came(tmp_path: Path) -> None:
    root = {**tool_trace()[-1], "attributes": {"text": "x" * (60 << 20)}}
    body = request(root).SerializeToString()
    with receiving() as far:
        config = {
            "forward": forward_to(far, queue_mib=16, compression="none"),
            "journal": keeping(tmp_path),
        }
        with running(**config) as run:
            assert export(run.ports.grpc, body).code is grpc.StatusCode.OK
            run.wait("otel_eval_spans_forwarded_total", 1)

        assert body in {arrival.body for arrival in far.recorder.arrivals}


def test_no_file_descriptor_left_is_no_reason_to_lose_what_was_taken(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("needs prlimit")
    load = Load(threads=1)
    with receiving() as far:
        config = config_of(forward=forward_to(far), journal=keeping(tmp_path))
        with process(tmp_path, config) as started:
            load.start(grpc_port(started))
            load.wait(5)
            soft, hard = resource.prlimit(started.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(started.pid, resource.RLIMIT_NOFILE, (3, hard))
            load.wait(20)
            resource.prlimit(started.pid, resource.RLIMIT_NOFILE, (soft, hard))
            load.stop()
            end(started)

        check_nothing_is_missing(load, far)


@long
def test_a_trace_of_100_000_spans_is_cut_into_parts_and_forwarded_whole(tmp_path: Path) -> None:
    with receiving() as far:
        config = {"forward": forward_to(far), "journal": keeping(tmp_path)}
        with running(**config) as run:
            for at in range(100):
                assert post(run.ports.http, traces(1000, first=1000 * at + 1)).status == 200
            wait(run, "otel_eval_spans_forwarded_total", 100_000)
            run.check_identities()

        assert len({span.span_id for span in far.recorder.spans}) == 100_000


@long
def test_100_000_open_traces_are_bounded_and_all_are_forwarded(tmp_path: Path) -> None:
    with receiving() as far:
        grouping = {"settle": "1h", "local_settle": "1h", "idle": "1h", "max_open_traces": 5_000}
        config = {
            "forward": forward_to(far),
            "journal": keeping(tmp_path),
            "emit": {"events": []},
            "grouping": grouping,
        }
        with running(**config) as run:
            for at in range(100):
                roots = [{**tool_trace(trace_id(1000 * at + each))[-1]} for each in range(1, 1001)]
                assert post(run.ports.http, request(*roots).SerializeToString()).status == 200
            wait(run, "otel_eval_spans_forwarded_total", 100_000)
            wait(run, "otel_eval_spans_open", 5_000)

            assert run.value("otel_eval_open_traces") == 5_000
            # Where the machine is slower than the sender, some traces are passed over, and counted.
            closed = run.value("otel_eval_traces_total", closed_by="capacity")
            shed = run.value("otel_eval_spans_unevaluated_total", reason="shed")
            assert closed + shed == 95_000
            assert closed > 0
        ours = {span.trace_id for span in far.recorder.spans if span.scope.name == "tests"}
        assert len(ours) == 100_000


@long
def test_10_000_agents_and_sessions_stay_within_the_bounds_of_labels(tmp_path: Path) -> None:
    with receiving() as far:
        config = {"forward": forward_to(far), "journal": keeping(tmp_path)}
        with running(**config) as run:
            for at in range(100):
                roots = [_agent(100 * at + each) for each in range(1, 101)]
                assert post(run.ports.http, request(*roots).SerializeToString()).status == 200
            wait(run, "otel_eval_spans_scored_total", 10_000)
            agents = set(re.findall(r'agent="([^"]*)"', run.page()))

            assert "__other__" in agents
            assert len(agents) <= 501
            assert "user-" not in run.page()
        assert len({span.trace_id for span in far.recorder.spans}) == 10_000


def _agent(number: int) -> dict[str, Any]:
    root = tool_trace(trace_id(number))[-1]
    names = {"gen_ai.agent.name": f"agent-{number}", "session.id": f"user-{number}"}
    return {**root, "attributes": {**root["attributes"], **names}}


@pytest.mark.parametrize("how", ["raises", "allocates"])
def test_an_evaluator_that_goes_wrong_costs_its_own_score_and_nothing_else(
    tmp_path: Path, how: str
) -> None:
    bad = {"type": f"tests.sidecar.judges:{how.capitalize()}", "name": "bad"}
    rule = {"name": "first", "evaluators": [bad, {"type": "tool-error-rate"}]}
    load = Load(threads=1)
    with receiving() as far:
        config = {"forward": forward_to(far), "journal": keeping(tmp_path), "rules": [rule]}
        with running(**config) as run:
            load.start(run.ports.grpc)
            load.wait(10)
            load.stop()
            told = len(load.acknowledged)
            run.wait("otel_eval_evaluations_total", told, evaluator="bad", verdict="error")
            run.wait("otel_eval_evaluations_total", told, evaluator="tool-error-rate")

        check_nothing_is_missing(load, far)


def test_an_evaluator_that_hangs_holds_up_no_acknowledgement_and_no_span(tmp_path: Path) -> None:
    rule = {"name": "first", "evaluators": [{"type": "tests.sidecar.judges:Gated", "name": "bad"}]}
    load = Load(threads=1)
    Gated.gate.clear()
    with receiving() as far:
        config = {"forward": forward_to(far), "journal": keeping(tmp_path), "rules": [rule]}
        with running(**config) as run:
            load.start(run.ports.grpc)
            load.wait(10)
            load.stop()
            run.wait("otel_eval_spans_forwarded_total", 3 * len(load.acknowledged))
            spans = spans_by_trace(far.recorder.spans)
            Gated.gate.set()

        assert all(spans[trace] == SPAN_IDS for trace in load.acknowledged)


def test_an_evaluator_that_never_ends_costs_no_span_and_is_made_up_for_by_the_next_process(
    tmp_path: Path,
) -> None:
    """One that asks no model runs where all others do, and holds them all up."""
    rule = {
        "name": "first",
        "evaluators": [{"type": "tool-error-rate"}, {"type": "tests.sidecar.judges:Hangs"}],
    }
    load = Load(threads=1)
    Hangs.gate.clear()
    with receiving() as far:
        config = {"forward": forward_to(far), "journal": keeping(tmp_path), "rules": [rule]}
        with running(**config) as run:
            load.start(run.ports.grpc)
            load.wait(10)
            load.stop()
            run.wait("otel_eval_spans_forwarded_total", 3 * len(load.acknowledged))
            drained = run.drain(1)
            left = Path(shutil.copytree(tmp_path / "journal", tmp_path / "left"))
            Hangs.gate.set()
        with running(**{**config, "journal": {"path": str(left)}}) as run:
            run.wait("otel_eval_traces_total", len(load.acknowledged))

        assert not drained
        check_nothing_is_missing(load, far)


def test_reloads_under_load_lose_nothing(tmp_path: Path) -> None:
    load = Load()
    with receiving() as far:
        config = config_of(
            forward=forward_to(far),
            journal=keeping(tmp_path),
            rules=[{"name": "first", "evaluators": [{"type": "tool-error-rate"}]}],
        )
        with process(tmp_path, config) as started:
            load.start(grpc_port(started))
            for _ in range(5):
                load.wait(10)
                started.signal(signal.SIGHUP)
            load.stop()
            started.wait_for_log("reloaded")
            end(started)

        check_nothing_is_missing(load, far)
