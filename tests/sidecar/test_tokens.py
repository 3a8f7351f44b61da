from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from otel_eval.errors import ConfigError
from otel_eval.sidecar.tokens import Tokens
from tests.sidecar.otlp import PROTOBUF, export, post, traces
from tests.sidecar.servers import Receiving, receiving


@pytest.fixture(scope="module")
def server() -> Iterator[Receiving]:
    with receiving(tokens=Tokens(["old", "new"])) as server:
        yield server


@pytest.mark.parametrize("token", ["old", "new"])
def test_any_of_several_tokens_is_let_in(server: Receiving, token: str) -> None:
    headers = {**PROTOBUF, "Authorization": f"Bearer {token}"}

    assert post(server.ports.http, traces(), headers).status == 200
    assert export(server.ports.grpc, traces(), token=token).code is grpc.StatusCode.OK


@pytest.mark.parametrize(
    "authorization", [None, "Bearer wrong", "Bearer", "Basic old", "old", "Bearer old new", "\xff"]
)
def test_anything_else_is_not(server: Receiving, authorization: str | None) -> None:
    headers = PROTOBUF if authorization is None else {**PROTOBUF, "Authorization": authorization}

    answer = post(server.ports.http, traces(), headers)

    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.error().code == 16


@pytest.mark.parametrize("token", [None, "wrong"])
def test_nor_over_grpc(server: Receiving, token: str | None) -> None:
    answer = export(server.ports.grpc, traces(), token=token)

    assert answer.code is grpc.StatusCode.UNAUTHENTICATED
    assert "grpc-status-details-bin" in answer.trailers


def test_a_line_end_after_a_token_is_no_part_of_it() -> None:
    tokens = Tokens(["secret\n"])

    assert tokens.accept("Bearer secret")
    assert not tokens.accept("Bearer")


def test_without_tokens_everyone_is_let_in() -> None:
    assert Tokens().accept(None)


def test_a_file_adds_tokens_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# of March\n\nfirst\n")
    tokens = Tokens(["given"], file)

    before = [tokens.accept(f"Bearer {each}") for each in ("given", "first", "second")]
    file.write_text("second\n")
    after = [tokens.accept(f"Bearer {each}") for each in ("given", "first", "second")]

    assert (before, after) == ([True, True, False], [True, False, True])


def test_a_file_that_goes_bad_leaves_the_tokens_as_they_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "tokens"
    file.write_text("first\n")
    tokens = Tokens((), file)

    file.write_text("# none\n")

    assert tokens.accept("Bearer first")
    assert "stay as they were" in caplog.text
    assert "first" not in caplog.text


@pytest.mark.parametrize("content", [None, "", "# none\n"])
def test_a_file_without_tokens_is_a_configuration_error(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "tokens"
    if content is not None:
        file.write_text(content)

    with pytest.raises(ConfigError, match="token_file"):
        Tokens((), file)


def test_replacing_takes_all_or_nothing(tmp_path: Path) -> None:
    tokens = Tokens(["old"])

    with pytest.raises(ConfigError):
        tokens.replace(["new"], tmp_path / "missing")
    kept = tokens.accept("Bearer old"), tokens.accept("Bearer new")
    tokens.replace(["new"], None)

    assert kept == (True, False)
    assert (tokens.accept("Bearer old"), tokens.accept("Bearer new")) == (False, True)
