"""A line to a target that can be made to fail: between a sidecar and a real server."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

Fault = Literal["none", "reset", "garbage", "silent"]
GARBAGE = b"\x00\xffHTTP/1.1 what?\r\n\r\n" * 20


class Proxy:
    """Each connection fails as the fault says that is set when it is made."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.fault: Fault = "none"
        self.failed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._server.getsockname()[1]
        return port

    def set(self, fault: Fault) -> None:
        """Also ends what is open."""
        self.fault = fault
        while self._open:
            _reset(self._open.pop())

    def close(self) -> None:
        self._server.close()
        self.set("none")

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        if self.fault == "none":
            self._connect(client)
            return
        self.failed += 1
        if self.fault == "silent":
            self._open.append(client)
            return
        with suppress(OSError):
            if self.fault == "garbage":
                client.recv(1000)
                client.sendall(GARBAGE)
        _reset(client)

    def _connect(self, client: socket.socket) -> None:
        far = socket.create_connection(self._target)
        self._open += [client, far]
        for one, other in ((client, far), (far, client)):
            threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def _reset(connection: socket.socket) -> None:
    """So that the other side sees a reset, not an end."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RD)
    connection.close()


@contextmanager
def proxy(port: int) -> Iterator[Proxy]:
    made = Proxy(port)
    try:
        yield made
    finally:
        made.close()
