"""Models for the tests: local servers that speak as much of OpenAI's API as LiteLLM asks for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model: ModelServer = self.server  # type: ignore[assignment]
        model.requests += 1
        if model.status != 200:
            self.send_error(model.status)
        elif body.get("stream"):
            self._stream(model)
        else:
            message = {"role": "assistant", "content": model.name}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            self._begin("application/json")
            self._write(self._chunk(model, [choice], "", usage=USAGE))

    def _stream(self, model: "ModelServer") -> None:
        """One letter at a time; the last ones wait until the model `may_finish`."""
        self._begin("text/event-stream")
        try:
            for letter in model.name:
                choice = {"index": 0, "finish_reason": None, "delta": {"role": "assistant", "content": letter}}
                self._write(b"data: " + self._chunk(model, [choice], ".chunk") + b"\n\n")
                assert model.may_finish.wait(60)
            last = {"index": 0, "finish_reason": "stop", "delta": {}}
            self._write(b"data: " + self._chunk(model, [last], ".chunk") + b"\n\n")
            self._write(b"data: " + self._chunk(model, [], ".chunk", usage=USAGE) + b"\n\ndata: [DONE]\n\n")
        except OSError:  # the caller has hung up
            model.hung_up.set()

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _chunk(self, model: "ModelServer", choices: Any, kind: str, **more: Any) -> bytes:
        about = {"id": "1", "object": f"chat.completion{kind}", "created": 1, "model": model.name}
        return json.dumps({**about, "choices": choices, **more}).encode()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class ModelServer(ThreadingHTTPServer):
    """A model that answers with its name; a `status` other than 200 makes it fail."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.name, self.requests, self.status = name, 0, 200
        self.may_finish, self.hung_up = threading.Event(), threading.Event()
        self.may_finish.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def model_server(name: str) -> Iterator[ModelServer]:
    with ModelServer(name) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.may_finish.set()
        server.shutdown()
