"""A server that speaks OpenAI's chat API and answers as it is told."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


class ChatServer(ThreadingHTTPServer):
    """Gives one scripted reply per request; the last one for all that come after."""

    daemon_threads = True

    def __init__(self, *script: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def next_reply(self) -> Reply:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def messages(self, number: int = 0) -> list[tuple[str, str]]:
        """What one request showed: role and text."""
        shown = self.requests[number]["messages"]
        return [(each["role"], each["content"]) for each in shown]


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        assert self.path == "/v1/chat/completions"
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body)
        self.server.next_reply()(self, body)

    def log_message(self, *_: Any) -> None:
        """Silence."""


@contextmanager
def serving(*script: Reply) -> Iterator[ChatServer]:
    server = ChatServer(*script)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def send(
    handler: BaseHTTPRequestHandler, status: int, body: Any, headers: dict[str, str] | None = None
) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"content-type": "application/json", **(headers or {})}.items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw)


def completion(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def arguments(text: str) -> Reply:
    """A call of the tool that the request offers for the answer, with these arguments."""

    def reply(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        function = {"name": body["tools"][0]["function"]["name"], "arguments": text}
        call = {"id": "c1", "type": "function", "function": function}
        message = {"content": None, "tool_calls": [call]}
        send(handler, 200, completion(message, "tool_calls"))

    return reply


def says(answer: str = "Yes", reasoning: str = "because") -> Reply:
    return arguments(json.dumps({"reasoning": reasoning, "answer": answer}))


def grades(score: float) -> Reply:
    return arguments(json.dumps({"reasoning": "because", "score": score}))


def refuses() -> Reply:
    return lambda handler, _: send(
        handler, 200, completion({"content": None, "refusal": "I will not judge this."})
    )


def fails(status: int, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: send(handler, status, {"error": {"message": "no"}}, named)


def body(text: str) -> Reply:
    """A reply with these very words, which calls itself JSON."""
    return lambda handler, _: send(handler, 200, text.encode())


def disconnects() -> Reply:
    def reply(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        handler.close_connection = True

    return reply


def first(wait: Callable[[], object], then: Reply) -> Reply:
    """A slow answer: it comes when the wait is over."""

    def reply(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        wait()
        then(handler, body)

    return reply
