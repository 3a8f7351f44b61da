"""Certificates of the receivers, read again when their files change.

A connection keeps what it was opened with. Files that cannot be used leave the old ones in place.
"""

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeAlias

import grpc

from otel_eval.errors import ConfigError
from otel_eval.settings import ClientTls, ServerTls, Tls
from otel_eval.sidecar.watched import WatchedFiles

log = logging.getLogger(__name__)

Configuration: TypeAlias = Any  # what grpc.ssl_server_certificate_configuration gives


@contextmanager
def within(section: str) -> Iterator[None]:
    """Errors about certificates name the section of the configuration that they are from."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{section}.{error}") from error


def server_context(tls: ServerTls) -> ssl.SSLContext:
    """A context from the files as they are now; raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    cert_file, key_file = pair(tls)
    try:
        context.load_cert_chain(cert_file, key_file)
        if tls.client_ca_file is not None:
            context.load_verify_locations(tls.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"tls: {_files(tls)}: {error}") from error
    return context


def client_context(tls: ClientTls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(*pair(tls))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"tls: {tls.ca_file or tls.cert_file}: {error}") from error
    return context


def client_credentials(tls: ClientTls) -> grpc.ChannelCredentials:
    client_context(tls)  # gRPC takes anything here and fails at the handshake
    if tls.cert_file is None:
        return grpc.ssl_channel_credentials(_bytes(tls.ca_file))
    cert_file, key_file = pair(tls)
    return grpc.ssl_channel_credentials(_bytes(tls.ca_file), _bytes(key_file), _bytes(cert_file))


def pair(tls: Tls) -> tuple[Path, Path]:
    if tls.cert_file is None or tls.key_file is None:
        raise ConfigError("tls: cert_file and key_file are missing")
    return tls.cert_file, tls.key_file


def _files(tls: ServerTls) -> str:
    files = (tls.cert_file, tls.key_file, tls.client_ca_file)
    return ", ".join(str(file) for file in files if file is not None)


def _bytes(file: Path | None) -> bytes | None:
    return None if file is None else file.read_bytes()


def watched_files(tls: ServerTls | ClientTls) -> WatchedFiles:
    authority = tls.client_ca_file if isinstance(tls, ServerTls) else tls.ca_file
    files = (tls.cert_file, tls.key_file, authority)
    return WatchedFiles(file for file in files if file is not None)


class ReloadingContext(ssl.SSLContext):
    """For asyncio, which asks the context for one object per connection: each gets the newest."""

    tls: ServerTls
    watched: WatchedFiles
    current: ssl.SSLContext

    @classmethod
    def of(cls, tls: ServerTls) -> Self:
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context.tls = tls
        context.watched = watched_files(tls)
        context.current = server_context(tls)
        return context

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        if self.watched.changed():
            self._reload()
        return self.current.wrap_bio(*args, **options)

    def _reload(self) -> None:
        try:
            self.current = server_context(self.tls)
        except ConfigError as error:
            log.warning("the certificates stay as they were: %s", error)
        else:
            log.info("certificates read again: %s", _files(self.tls))


def server_credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """Credentials that gRPC asks again for at every handshake."""
    watched = watched_files(tls)

    def fetch() -> Configuration:
        if not watched.changed():
            return None
        try:
            return _configuration(tls)
        except ConfigError as error:
            log.warning("the certificates stay as they were: %s", error)
            return None

    return grpc.dynamic_ssl_server_credentials(
        _configuration(tls), fetch, tls.client_ca_file is not None
    )


def _configuration(tls: ServerTls) -> Configuration:
    server_context(tls)  # gRPC takes anything here and fails at the handshake
    cert_file, key_file = pair(tls)
    return grpc.ssl_server_certificate_configuration(
        [(key_file.read_bytes(), cert_file.read_bytes())], _bytes(tls.client_ca_file)
    )
