"""Durable decisions over HTTP, against what only parses and echoes the same body, in one run.

Two echoes: a plain route of the framework, and the service itself where its handler does nothing else. The second has
the same path in and out, so that it says what a decision and its durability cost.
"""

import asyncio
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx
import numpy as np
from tests.journal.servers import new_database, running_server

from bench.load import Load, request, send

CONNECTIONS, COUNT, TURNS = 64, 2_000, 9
BAR = 0.5
SETTINGS = {
    "dim": 4,
    "alpha": 0.1,
    "delta": 0.01,
    "noise": 0.2,
    "theta_bound": 1.0,
    "feature_bound": 2.0,
    "reward_range": [0, 1],
}
NUMBERS = itertools.count(1)
ECHO = """
import sys, uvicorn
from litestar import Litestar, post
from surefoot.service.request_models import Decide
@post("/echo")
async def echo(data: Decide) -> Decide:
    return data
uvicorn.run(Litestar([echo], openapi_config=None), port=int(sys.argv[1]), http="httptools", access_log=False,
            log_level="warning")
"""
PATH = "/v1/experiments/bench/decisions"
SAME_PATH = """
import sys
from surefoot.service import request_models
from surefoot.service.app import Service
from surefoot.service.request_bodies import decoder, read_body
from surefoot.service.server import Server, config_of
from surefoot.service.settings import Settings
settings = Settings(database=sys.argv[2], port=int(sys.argv[1]))
service = Service(settings)
read = decoder(request_models.Decide)
async def echo(name, body, visit):
    return 201, read_body(read, body)
service.handlers.decide = echo
Server(config_of(settings, service), service).run()
"""


def body() -> bytes:
    """Ten actions in four dimensions, with an id of its own."""
    number = next(NUMBERS)
    rows = np.abs(np.random.default_rng(number % 64).normal(size=(10, 4))) * 0.2
    actions = [{"id": f"action-{n}", "features": row.tolist()} for n, row in enumerate(rows)]
    return json.dumps({"actions": actions, "decision_id": f"visit-{number}"}).encode()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, path: str) -> Iterator[int]:
    """A server in a process of its own, once it answers."""
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not answers(port, path):
            assert time.monotonic() < deadline, "the server never came up"
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int, path: str) -> bool:
    """Whether the server is up."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}").status_code < 500
    except httpx.HTTPError:
        return False


@contextmanager
def service(database: str) -> Iterator[int]:
    """A server of surefoot's."""
    port = free_port()
    command = ["-m", "surefoot.cli", "serve", "--database", database, "--port", str(port)]
    with running(command, port, "/readyz"):
        yield port


def create(port: int, name: str) -> None:
    """Begin an experiment."""
    answer = httpx.post(
        f"http://127.0.0.1:{port}/v1/experiments",
        json={"name": name, "mode": "guarded", "settings": SETTINGS},
        timeout=120,
    )
    answer.raise_for_status()


def load(port: int, path: str, *, count: int = COUNT) -> Load:
    """The load of one turn."""
    return asyncio.run(send(port, lambda: request("POST", path, body()), connections=CONNECTIONS, count=count))


def decisions_against_echo(folder: Path) -> bool:
    """The ratio of rates, turn by turn."""
    port, same = free_port(), free_port()
    command = ["-c", SAME_PATH, str(same), str(folder / "echo.journal")]
    with (
        service(str(folder / "bench.journal")) as ours,
        running(["-c", ECHO, str(port)], port, "/"),
        running(command, same, "/readyz"),
    ):
        create(ours, "bench")
        load(ours, PATH, count=500), load(port, "/echo", count=500), load(same, PATH, count=500)
        turns = [(load(ours, PATH), load(port, "/echo"), load(same, PATH)) for _ in range(TURNS)]
    ratio, by_same = (statistics.median(turn[0].rate / turn[side].rate for turn in turns) for side in (1, 2))
    decided, echoed, echoed_same = (statistics.median(turn[side].rate for turn in turns) for side in range(3))
    p50, p99 = (statistics.median(getattr(a, word) for a, _, _ in turns) * 1e3 for word in ("median", "p99"))
    failed = sum(one.failed for turn in turns for one in turn)
    holds = ratio >= BAR and not failed
    print(
        f"durable decisions over HTTP, {CONNECTIONS} connections: {decided:,.0f} a second "
        f"(median {p50:.1f} ms, p99 {p99:.1f} ms)\n"
        f"a route that only parses and echoes the same body: {echoed:,.0f} a second\n"
        f"ratio {ratio:.2f} (bar {BAR:g})  {'holds' if holds else 'DOES NOT HOLD'}\n"
        f"the service itself where it only parses and echoes: {echoed_same:,.0f} a second, ratio {by_same:.2f}"
    )
    return holds


async def load_all(ports: list[int]) -> float:
    """Decisions a second of all servers together, each asked for an experiment of its own."""
    turns = [
        send(port, partial(request_of, f"own-{n}"), connections=CONNECTIONS // len(ports), count=COUNT // len(ports))
        for n, port in enumerate(ports)
    ]
    began = time.perf_counter()
    await asyncio.gather(*turns)
    return COUNT / (time.perf_counter() - began)


def request_of(name: str) -> bytes:
    """A question for this experiment."""
    return request("POST", f"/v1/experiments/{name}/decisions", body())


def servers_together() -> bool:
    """Two servers on one PostgreSQL against one of them: separate experiments add up, a shared one stays one."""
    with running_server() as postgres, ExitStack() as stack:
        database = new_database(postgres)
        ports = [stack.enter_context(service(database)) for _ in range(2)]
        for n, port in enumerate(ports):
            create(port, f"own-{n}")
        create(ports[0], "shared")
        asyncio.run(load_all(ports))
        pairs = [(asyncio.run(load_all(ports)), asyncio.run(load_all(ports[:1]))) for _ in range(TURNS)]
        shared = "/v1/experiments/shared/decisions"
        failed = sum(load(port, shared, count=500).failed for port in ports)
        rounds = httpx.get(f"http://127.0.0.1:{ports[1]}/v1/experiments/shared", timeout=60).json()["rounds"]
    ratio = statistics.median(a / b for a, b in pairs)
    both, alone = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    holds = ratio > 1 and not failed and rounds == 1000
    print(
        f"two servers on one PostgreSQL, an experiment each: {both:,.0f} decisions a second; one alone: {alone:,.0f}\n"
        f"ratio {ratio:.2f} (bar 1); on a shared experiment {rounds:,} of 1,000 rounds counted once  "
        f"{'holds' if holds else 'DOES NOT HOLD'} ({os.cpu_count()} cores for servers, database and callers)"
    )
    return holds


def main() -> bool:
    """Print everything; true where every bar holds."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        is_quick = decisions_against_echo(Path(folder))
    return servers_together() and is_quick


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
