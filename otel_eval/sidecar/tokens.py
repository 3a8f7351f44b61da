"""Bearer tokens: several at once, so that a new one can be handed out before the old one ends."""

import logging
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from otel_eval.errors import ConfigError
from otel_eval.sidecar.watched import WatchedFiles

log = logging.getLogger(__name__)


class Tokens:
    """Knows whether a request may come in. Without a token and without a file, every one may."""

    def __init__(self, given: Iterable[str] = (), file: Path | None = None) -> None:
        self.replace(given, file)

    def replace(self, given: Iterable[str], file: Path | None) -> None:
        """Take these instead; where the file is no good, raises ConfigError and changes nothing."""
        from_file = () if file is None else _read(file)
        self._given = _digests(given)
        self._file = file
        self._from_file = from_file
        self._watched = WatchedFiles([file] if file else [])

    @property
    def required(self) -> bool:
        return bool(self._given) or self._file is not None

    def accept(self, authorization: str | None) -> bool:
        """Whether the header's token is one of ours; takes as long whichever it is, or none."""
        if not self.required:
            return True
        if self._file is not None and self._watched.changed():
            self._reread(self._file)
        scheme, _, token = (authorization or "").partition(" ")
        digest = _digest(token.strip())
        matches = [compare_digest(digest, each) for each in self._given + self._from_file]
        return any(matches) and scheme.lower() == "bearer"

    def _reread(self, file: Path) -> None:
        try:
            self._from_file = _read(file)
        except ConfigError as error:
            log.warning("the tokens stay as they were: %s", error)


def _read(file: Path) -> tuple[bytes, ...]:
    """One token per line; empty lines and lines that start with # are none."""
    try:
        lines = [line.strip() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"receivers.otlp.auth.token_file: {file}: {error}") from error
    found = _digests(line for line in lines if line and not line.startswith("#"))
    if not found:
        raise ConfigError(f"receivers.otlp.auth.token_file: {file} holds no token")
    return found


def _digests(tokens: Iterable[str]) -> tuple[bytes, ...]:
    """The line end that a secret's file leaves on a variable is no part of the token."""
    return tuple(_digest(token.strip()) for token in tokens)


def _digest(token: str) -> bytes:
    """Of one length for all, so that not even the length of a token shows."""
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
