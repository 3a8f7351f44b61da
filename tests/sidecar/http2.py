"""gRPC written out by hand: a body that no client would send, and what no client shows."""

import socket
import struct

_SETTINGS, _HEADERS, _DATA, _GO_AWAY = 4, 1, 0, 7
_END_STREAM, _END_HEADERS = 1, 4
_STATUS = b"grpc-status\x01"


def grpc_status(port: int, method: str, body: bytes, encoding: str) -> int:
    """What the server answers to a message that is marked as compressed."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
        "grpc-encoding": encoding,
    }
    message = struct.pack(">BI", 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(
            _PREFACE
            + _frame(_HEADERS, _END_HEADERS, 1, b"".join(map(_header, headers.items())))
            + _frame(_DATA, _END_STREAM, 1, message)
        )
        return _status(connection)


def go_away_of(port: int) -> bytes:
    """Why the server asks for another connection after a while; where it does not, times out."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(_PREFACE)
        with connection.makefile("rb") as frames:
            while (head := frames.read(9))[3] != _GO_AWAY:
                frames.read(int.from_bytes(head[:3]))
            return frames.read(int.from_bytes(head[:3]))


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _header(header: tuple[str, str]) -> bytes:
    """Literal and not indexed: the one form of HPACK that needs no tables."""
    return b"\x00" + b"".join(bytes([len(each)]) + each.encode() for each in header)


def _status(connection: socket.socket) -> int:
    """gRPC's server writes it literally, with its name the first time."""
    seen = b""
    while _STATUS not in seen[:-1]:
        piece = connection.recv(65536)
        assert piece, seen
        seen += piece
    return int(seen[seen.index(_STATUS) + len(_STATUS) :][:1])


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, b"")
