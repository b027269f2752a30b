"""Models for the tests: local servers that speak as much of OpenAI's API as LiteLLM asks for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Completions(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model: ModelServer = self.server  # type: ignore[assignment]
        model.requests += 1
        if model.status != 200:
            self.send_error(model.status)
        elif body.get("stream"):
            self.stream(model)
        elif self.path.endswith("/responses"):
            self.begin("application/json")
            self.write(self.response(model))
        else:
            message = {"role": "assistant", "content": model.name}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            assert model.may_finish.wait(60)
            self.begin("application/json")
            self.write(self.chunk(model, [choice], "", usage=USAGE))

    def stream(self, model: "ModelServer") -> None:
        """One letter at a time; the last ones wait until the model `may_finish`."""
        self.begin("text/event-stream")
        try:
            for letter in model.name:
                choice = {"index": 0, "finish_reason": None, "delta": {"role": "assistant", "content": letter}}
                self.write(b"data: " + self.chunk(model, [choice], ".chunk") + b"\n\n")
                assert model.may_finish.wait(60)
            last = {"index": 0, "finish_reason": "stop", "delta": {}}
            self.write(b"data: " + self.chunk(model, [last], ".chunk") + b"\n\n")
            self.write(b"data: " + self.chunk(model, [], ".chunk", usage=USAGE) + b"\n\ndata: [DONE]\n\n")
        except OSError:  # the caller has hung up
            model.hung_up.set()

    def begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()

    def write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def chunk(self, model: "ModelServer", choices: Any, kind: str, **more: Any) -> bytes:
        about = {"id": "1", "object": f"chat.completion{kind}", "created": 1, "model": model.name}
        return json.dumps({**about, "choices": choices, **more}).encode()

    def response(self, model: "ModelServer") -> bytes:
        text = {"type": "output_text", "text": model.name, "annotations": []}
        message = {"type": "message", "id": "1", "status": "completed", "role": "assistant", "content": [text]}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        about = {"id": "1", "object": "response", "created_at": 1, "status": "completed", "model": model.name}
        return json.dumps({**about, "output": [message], "usage": usage}).encode()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class ModelServer(ThreadingHTTPServer):
    """A model that answers with its name; a `status` other than 200 makes it fail."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), Completions)
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
