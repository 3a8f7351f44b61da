import logging
import warnings

import orjson
import pytest

from otel_eval.config import Config
from otel_eval.settings import Log, Otlp
from otel_eval.sidecar import logs
from otel_eval.sidecar.banner import banner, url
from otel_eval.sidecar.doors import unguarded
from otel_eval.sidecar.ports import Ports

PORTS = Ports(grpc=4317, http=4318, admin=9464)


def test_the_banner_of_a_sidecar_without_configuration() -> None:
    assert banner(Config(), PORTS).splitlines() == [
        "otel-eval is ready",
        "  OTLP/gRPC  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4317 "
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc",
        "  OTLP/HTTP  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces "
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
        "  rules      default: tool-error-rate, tool-loop  (no rules are configured)",
        "  scores     http://127.0.0.1:9464/metrics",
    ]


@pytest.mark.parametrize(("mode", "how"), [("through", "as spans"), ("attach", "on their spans")])
def test_the_banner_names_every_place_where_scores_go(mode: str, how: str) -> None:
    config = Config.parse(
        {
            "forward": {"endpoint": "http://far:4317", "mode": mode},
            "emit": {
                "logs": {"endpoint": "http://logs:4317"},
                "metrics": {"endpoint": "http://metrics:4317"},
            },
        }
    )

    text = banner(config, PORTS)

    assert "log events to http://logs:4317" in text
    assert f"span events, {how}, to http://far:4317" in text
    assert "metrics to http://metrics:4317" in text


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("127.0.0.1:4317", "http://127.0.0.1:1"),
        (":4317", "http://localhost:1"),
        ("0.0.0.0:4317", "http://localhost:1"),
        ("[::1]:4317", "http://[::1]:1"),
    ],
)
def test_an_address_to_send_to(endpoint: str, shown: str) -> None:
    assert url(endpoint, 1) == shown


@pytest.mark.parametrize(
    ("settings", "open_to_all"),
    [
        ({}, []),
        ({"grpc": {"endpoint": "0.0.0.0:4317"}}, ["0.0.0.0:4317"]),
        ({"http": {"endpoint": ":4318"}}, [":4318"]),
        ({"http": {"endpoint": "localhost:4318"}, "grpc": {"endpoint": "[::1]:1"}}, []),
        ({"grpc": {"endpoint": ":4317"}, "auth": {"bearer_tokens": ["x"]}}, []),
    ],
)
def test_what_is_open_to_others_without_a_token(
    settings: dict[str, object], open_to_all: list[str]
) -> None:
    otlp = Otlp.model_validate(settings)

    assert unguarded(otlp, otlp.auth) == open_to_all


@pytest.fixture
def _root_logger_as_before():
    root, own = logging.getLogger(), logging.getLogger("otel_eval")
    before = root.handlers[:], root.level, own.level
    yield
    root.handlers[:], level, own_level = before
    root.setLevel(level)
    own.setLevel(own_level)
    logging.captureWarnings(False)


@pytest.mark.usefixtures("_root_logger_as_before")
def test_a_log_line_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Log(level="info", format="json"))

    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("otel_eval.x").exception("it %s", "failed")

    line = orjson.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"], line["message"]) == ("error", "otel_eval.x", "it failed")
    assert "ValueError: broken" in line["exception"]


@pytest.mark.usefixtures("_root_logger_as_before")
def test_what_a_library_warns_of_is_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logs.configure(Log(level="info", format="json"))

        warnings.warn("old", DeprecationWarning, stacklevel=1)

    line = orjson.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")


@pytest.mark.usefixtures("_root_logger_as_before")
def test_a_log_line_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Log(level="info", format="text"))

    logging.getLogger("otel_eval").info("hello")
    logging.getLogger("otel_eval").debug("not this")

    assert capsys.readouterr().err.rstrip().endswith("INFO    hello")
