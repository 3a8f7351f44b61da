import ssl
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from otel_eval.errors import ConfigError
from otel_eval.settings import ClientTls, ServerTls
from otel_eval.sidecar.tls import ReloadingContext, client_context, server_credentials
from tests.sidecar.certificates import Authority
from tests.sidecar.otlp import export, post, traces
from tests.sidecar.servers import Receiving, receiving


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "stranger")


@pytest.fixture
def server(authority: Authority) -> Iterator[Receiving]:
    tls = {"tls": authority.issue()}
    with receiving(http=tls, grpc=tls) as server:
        yield server


@pytest.fixture
def mutual(authority: Authority) -> Iterator[Receiving]:
    tls = {"tls": {**authority.issue(), "client_ca_file": authority.file}}
    with receiving(http=tls, grpc=tls) as server:
        yield server


def test_spans_come_in_encrypted(server: Receiving, authority: Authority) -> None:
    over_http = post(server.ports.http, traces(), tls=authority.context())
    over_grpc = export(server.ports.grpc, traces(), credentials=authority.credentials())

    assert (over_http.status, over_grpc.code) == (200, grpc.StatusCode.OK)
    assert len(server.recorder.spans) == 2


def test_who_trusts_another_authority_does_not_connect(
    server: Receiving, stranger: Authority
) -> None:
    with pytest.raises(ssl.SSLError):
        post(server.ports.http, traces(), tls=stranger.context())
    over_grpc = export(server.ports.grpc, traces(), credentials=stranger.credentials())

    assert over_grpc.code is grpc.StatusCode.UNAVAILABLE
    assert not server.recorder.arrivals


def test_a_client_with_a_certificate_of_ours_is_let_in(
    mutual: Receiving, authority: Authority
) -> None:
    client = authority.issue("client")

    over_http = post(mutual.ports.http, traces(), tls=authority.context(client))
    over_grpc = export(mutual.ports.grpc, traces(), credentials=authority.credentials(client))

    assert (over_http.status, over_grpc.code) == (200, grpc.StatusCode.OK)


@pytest.mark.parametrize("shows", ["nothing", "a stranger's"])
def test_any_other_client_is_not(
    mutual: Receiving, authority: Authority, stranger: Authority, shows: str
) -> None:
    client = None if shows == "nothing" else stranger.issue("client")

    with pytest.raises((ssl.SSLError, ConnectionError)):
        post(mutual.ports.http, traces(), tls=authority.context(client))
    over_grpc = export(mutual.ports.grpc, traces(), credentials=authority.credentials(client))

    assert over_grpc.code is grpc.StatusCode.UNAVAILABLE
    assert not mutual.recorder.arrivals


def test_a_new_certificate_is_used_from_the_next_connection_on(
    server: Receiving, authority: Authority, stranger: Authority
) -> None:
    assert post(server.ports.http, traces(), tls=authority.context()).status == 200

    stranger.issue("server")

    over_http = post(server.ports.http, traces(), tls=stranger.context())
    over_grpc = export(server.ports.grpc, traces(), credentials=stranger.credentials())
    assert (over_http.status, over_grpc.code) == (200, grpc.StatusCode.OK)


def test_a_new_authority_for_clients_is_used_too(
    mutual: Receiving, authority: Authority, stranger: Authority
) -> None:
    client = stranger.issue("client")

    authority.file.write_bytes(stranger.file.read_bytes())
    stranger.issue("server")

    over_http = post(mutual.ports.http, traces(), tls=stranger.context(client))
    over_grpc = export(mutual.ports.grpc, traces(), credentials=stranger.credentials(client))
    assert (over_http.status, over_grpc.code) == (200, grpc.StatusCode.OK)


def test_a_broken_certificate_leaves_the_old_one(
    server: Receiving, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "server.crt").write_text("nothing of that kind")

    over_http = post(server.ports.http, traces(), tls=authority.context())
    over_grpc = export(server.ports.grpc, traces(), credentials=authority.credentials())

    assert (over_http.status, over_grpc.code) == (200, grpc.StatusCode.OK)
    assert "stay as they were" in caplog.text


def test_files_that_are_not_there_are_a_configuration_error(tmp_path: Path) -> None:
    tls = ServerTls(cert_file=tmp_path / "none.crt", key_file=tmp_path / "none.key")

    with pytest.raises(ConfigError, match=r"none\.crt"):
        ReloadingContext.of(tls)
    with pytest.raises(ConfigError, match=r"none\.crt"):
        server_credentials(tls)
    with pytest.raises(ConfigError, match=r"none\.pem"):
        client_context(ClientTls(ca_file=tmp_path / "none.pem"))
