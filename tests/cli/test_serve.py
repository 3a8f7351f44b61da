import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from otel_eval.cli import main, serve
from otel_eval.config import Config
from tests.sidecar import otlp
from tests.sidecar.otlp import PROTOBUF, post, tool_trace
from tests.sidecar.servers import receiving

ROOT = Path(__file__).parents[2]
PROGRAM = "from otel_eval.cli import main; main()"
ANYWHERE = """\
receivers: {otlp: {grpc: {endpoint: "127.0.0.1:0"}, http: {endpoint: "127.0.0.1:0"}}}
admin: {endpoint: "127.0.0.1:0"}
grouping: {settle: 100ms}
"""


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["serve", *words], input=stdin)


def begun(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(*words: str, stdin: str = "") -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command in a process of its own, and its banner."""
    process = begun(*words)
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            process.stdin.write(stdin)
            process.stdin.close()
            banner = [process.stdout.readline()]
            while banner[-1] and "/metrics" not in banner[-1]:
                banner.append(process.stdout.readline())
            yield process, banner
        finally:
            process.kill()


def stopped(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(20)


def http_port(banner: list[str]) -> int:
    found = re.search(r"127\.0\.0\.1:(\d+)/v1/traces", "".join(banner))
    assert found, banner
    return int(found[1])


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_it_forwards_to_where_the_flag_says_and_leaves_on_sigterm(
    protocol: str, tmp_path: Path
) -> None:
    config = tmp_path / "otel-eval.yaml"
    config.write_text(ANYWHERE + "forward: {endpoint: 'http://127.0.0.1:9'}\n")
    with receiving() as far:
        port = far.ports.grpc if protocol == "grpc" else far.ports.http
        url = f"http://127.0.0.1:{port}" + ("/v1/traces" if protocol == "http" else "")

        with serving("-c", str(config), "--forward", url) as (process, banner):
            body = otlp.request(*tool_trace()).SerializeToString()
            status = post(http_port(banner), body, PROTOBUF).status
            code = stopped(process)

        assert banner[0] == "otel-eval is ready\n"
        assert (status, code) == (200, 0)
        assert any(span.scope.name != "otel_eval" for span in far.recorder.spans)


def test_a_configuration_may_be_piped_in() -> None:
    with serving(
        "-c", "-", stdin=ANYWHERE + "rules: [{name: piped, evaluators: [{type: tool-loop}]}]"
    ) as (
        process,
        banner,
    ):
        code = stopped(process)

    assert "piped: tool-loop" in "".join(banner)
    assert code == 0


def test_a_sighup_before_it_is_ready_does_not_end_it(tmp_path: Path) -> None:
    """Its configuration is a pipe, whose other end opens when it begins to read."""
    file = tmp_path / "otel-eval.yaml"
    os.mkfifo(file)
    with begun("-c", str(file)) as process:
        with file.open("w") as config:
            process.send_signal(signal.SIGHUP)
            config.write(ANYWHERE)
        assert process.stdout is not None
        banner = process.stdout.readline()
        code = stopped(process)

    assert (banner, code) == ("otel-eval is ready\n", 0)


def test_what_is_read_again_is_forwarded_to_the_same_place(tmp_path: Path) -> None:
    file = tmp_path / "otel-eval.yaml"
    file.write_text("forward: {endpoint: 'http://a:4317', headers: {x: y}}")
    reload = serve._reload(str(file), "http://b:4317")

    file.write_text("forward: {endpoint: 'http://c:4317', headers: {x: z}}")

    assert reload is not None
    forward = reload().forward
    assert forward is not None
    assert (forward.endpoint, forward.headers) == ("http://b:4317", {"x": "z"})


@pytest.mark.parametrize("path", [None, "-"])
def test_without_a_file_there_is_nothing_to_read_again(path: str | None) -> None:
    assert serve._reload(path, "http://b:4317") is None


@pytest.mark.parametrize(
    ("target", "protocol"),
    [
        ("http://collector:4317", "grpc"),
        ("https://collector", "grpc"),
        ("collector:4317", "grpc"),
        ("http://collector:4317/", "grpc"),
        ("http://collector:4318", "http"),
        ("collector:4318", "http"),
        ("https://otlp.example/otlp", "http"),
        ("http://[::1]:4318", "http"),
    ],
)
def test_the_protocol_follows_from_the_url(target: str, protocol: str) -> None:
    forward = serve._forwarding(Config(), target).forward

    assert forward is not None
    assert (forward.endpoint, forward.protocol) == (target, protocol)


@pytest.mark.parametrize(
    ("words", "stdin", "told"),
    [
        (["-c", "missing.yaml"], None, "missing.yaml: No such file or directory"),
        (["-c", "-"], "rulez: []", "stdin:1: rulez: unknown key"),
        (["--forward", "http://"], None, "--forward http://: no endpoint"),
        (["--forward", "http://a:99999"], None, "--forward http://a:99999: no endpoint"),
        (["--forward", ""], None, "--forward : no endpoint"),
        (
            ["-c", "-"],
            "judge: {model: 'nobody:knows'}\n"
            "rules: [{name: x, evaluators: [{type: tool-selection-accuracy}]}]",
            "nobody:knows",
        ),
        (["--port", "1"], None, "--port"),
        (["traces.jsonl"], None, "unexpected extra argument"),
    ],
    ids=["no file", "bad key", "no host", "bad port", "empty", "bad judge", "bad flag", "a file"],
)
def test_mistakes_are_one_clear_line(words: list[str], stdin: str | None, told: str) -> None:
    result = run(*words, stdin=stdin)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_extra_is_one_clear_line() -> None:
    program = f"import sys; sys.modules['uvicorn'] = None; {PROGRAM}"

    done = subprocess.run(
        [sys.executable, "-c", program, "serve"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert done.stderr == "error: uvicorn is not installed; pip install 'otel-eval[sidecar]'\n"


def test_the_help_has_an_example() -> None:
    assert "otel-eval serve -c otel-eval.yaml --forward" in run("--help").stdout
