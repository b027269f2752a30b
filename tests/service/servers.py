"""Servers for tests: in a process of their own where they are to be killed, inside this one elsewhere."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from surefoot.service.app import Service
from surefoot.service.server import Server, config_of
from surefoot.service.settings import Settings
from surefoot.service.trusted_clock import TrustedClock

POLICY = {
    "dim": 2,
    "alpha": 0.1,
    "delta": 0.01,
    "noise": 0.5,
    "theta_bound": 1.0,
    "feature_bound": 1.0,
    "reward_range": [0, 1],
}
ACTIONS = [{"id": "blue", "features": [0.6, 0.1]}, {"id": "red", "features": [0.9, 0.3]}]
PATIENCE = 120.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(settings: Settings, lines: list[bytes] | None = None, clock: TrustedClock | None = None) -> Iterator[str]:
    """A server in a thread of this process; its address. Its log of requests goes to `lines`."""
    service = Service(settings, write=None if lines is None else lines.append, clock=clock)
    server = Server(config_of(settings, service), service)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        await_ready(address)
        try:
            yield address
        finally:
            server.stop()
            thread.join(30)
            assert not thread.is_alive()


class Apart:
    """A server in a process of its own, which can be killed and started again at the same address."""

    def __init__(
        self, folder: Path, *, environment: dict[str, str] | None = None, program: str = "", **options: Any
    ) -> None:
        self.environment = os.environ if environment is None else environment
        self.port, self.log = free_port(), folder / "server.log"
        self.address = f"http://127.0.0.1:{self.port}"
        self.options = {"database": str(folder / "shop.journal"), "port": self.port, **options}
        self.process: subprocess.Popen[bytes] | None = None
        self.program = ["-c", program] if program else ["-m", "surefoot.cli"]

    def start(self, *, wait: bool = True) -> None:
        command = [sys.executable, *self.program, "serve"]
        for name, value in self.options.items():
            command += [f"--{name}", str(value)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env={**self.environment, "PYTHONWARNINGS": "ignore"})
        if wait:
            await_ready(self.address)

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


def await_ready(address: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/readyz", trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise AssertionError("the server never became ready")


def create(client: httpx.Client, name: str = "shop", **settings: Any) -> None:
    answer = client.post("/v1/experiments", json={"name": name, "mode": "guarded", "settings": POLICY, **settings})
    assert answer.status_code == 201, answer.text
