import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import orjson
import pytest

from otel_eval.sidecar.ports import Ports
from tests.sidecar import otlp
from tests.sidecar.otlp import PROTOBUF, export, post, tool_trace, traces
from tests.sidecar.processes import Process, process
from tests.sidecar.running import config_of, forward_to
from tests.sidecar.servers import receiving

RULES = [{"name": "first", "evaluators": [{"type": "tool-error-rate"}]}]


@pytest.fixture(scope="module")
def _started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Path]]:
    folder = tmp_path_factory.mktemp("app")
    config = config_of(
        receivers={"auth": {"bearer_tokens": ["old"]}},
        rules=RULES,
        log={"format": "json"},
    )
    with process(folder, config) as started:
        yield started, folder / "otel-eval.yaml"
        started.check_identities()


@pytest.fixture
def started(_started: tuple[Process, Path]) -> Process:
    return _started[0]


@pytest.fixture
def file(_started: tuple[Process, Path]) -> Path:
    return _started[1]


def ports(started: Process) -> Ports:
    assert started.ports is not None
    return started.ports


def test_the_banner_says_where_to_send_and_where_scores_appear(started: Process) -> None:
    text = "\n".join(started.banner)

    variable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    assert f"{variable}=http://127.0.0.1:{ports(started).grpc} " in text
    assert f"{variable}=http://127.0.0.1:{ports(started).http}/v1/traces " in text
    assert "first: tool-error-rate" in text
    assert f"http://127.0.0.1:{ports(started).admin}/metrics" in text


def test_it_is_small_when_idle(started: Process) -> None:
    status = Path(f"/proc/{started.pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))

    assert int(line.split()[1]) < 90 * 1024


def test_sighup_takes_new_rules_and_tokens_and_keeps_the_old_ones_if_they_are_bad(
    started: Process, file: Path
) -> None:
    config = orjson.loads(file.read_bytes())

    file.write_bytes(orjson.dumps({**config, "rules": [{"name": "x", "evaluators": "nothing"}]}))
    started.signal(signal.SIGHUP)
    bad = orjson.loads(started.wait_for_log("stays as it was"))
    kept = export(ports(started).grpc, traces(), token="old").code
    config["rules"] = [{**RULES[0], "name": "second"}]
    config["receivers"]["otlp"]["auth"]["bearer_tokens"] = ["old", "new"]
    file.write_bytes(orjson.dumps(config))
    started.signal(signal.SIGHUP)
    started.wait_for_log("reloaded: 1 rules")
    body = otlp.request(*tool_trace()).SerializeToString()
    codes = {export(ports(started).grpc, body, token=each).code for each in ("old", "new")}

    assert bad["level"] == "error"
    assert "otel-eval.yaml" in bad["message"]
    assert {kept, *codes} == {grpc.StatusCode.OK}
    page = started.page()
    assert 'otel_eval_config_reloads_total{result="failure"} 1.0' in page
    assert 'otel_eval_config_reloads_total{result="success"} 1.0' in page


def test_every_line_of_the_log_is_json_and_none_holds_a_token(started: Process) -> None:
    export(ports(started).grpc, traces(), token="wrong")
    lines = [orjson.loads(line) for line in started.log]

    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert not any('"old"' in line or "wrong" in line for line in started.log)


def test_sigterm_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with receiving() as far:
        with process(tmp_path, config_of(forward=forward_to(far))) as started:
            acknowledged: list[int] = []
            refused: set[str] = set()
            enough = threading.Event()
            sender = threading.Thread(
                target=_send_until_refused, args=(ports(started), acknowledged, refused, enough)
            )
            sender.start()
            assert enough.wait(15)
            started.check_identities()
            started.signal(signal.SIGTERM)
            code = started.exit_code()
            sender.join(10)

            assert code == 0
            started.wait_for_log("drained")
        received = {span.span_id for span in far.recorder.spans if span.scope.name == "tests"}
        assert {f"{number:016x}" for number in acknowledged} <= received
        assert refused <= {"503", "gone"}


def _send_until_refused(
    ports: Ports, acknowledged: list[int], refused: set[str], enough: threading.Event
) -> None:
    for number in range(1, 100_000):
        try:
            status = post(ports.http, traces(first=number), PROTOBUF).status
        except OSError:
            refused.add("gone")
            return
        if status == 200:
            acknowledged.append(number)
        else:
            refused.add(str(status))
        if number == 50:
            enough.set()


def test_a_port_in_use_is_a_clean_failure(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        config = config_of(receivers={"http": {"endpoint": endpoint}})

        with process(tmp_path, config) as started:
            assert started.exit_code() == 2
            assert len(started.log) == 1
            assert f"ERROR   cannot listen on {endpoint}: Address already in use" in started.log[0]
