"""Models for the tests: local servers that speak as much of OpenAI's API as LiteLLM asks for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        model: ModelServer = self.server  # type: ignore[assignment]
        model.requests += 1
        if model.is_down:
            self.send_error(500)
            return
        body = json.dumps(
            {
                "id": "1", "object": "chat.completion", "created": 1, "model": model.name,
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": model.name}}
                ],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
        ).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class ModelServer(ThreadingHTTPServer):
    """A model that answers with its name; `is_down` makes it fail."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.name, self.requests, self.is_down = name, 0, False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def model_server(name: str) -> Iterator[ModelServer]:
    with ModelServer(name) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
