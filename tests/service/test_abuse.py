"""Slow clients, half-open connections, huge bodies, ids that do not exist: memory stays flat, and others are served."""

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from tests.service.servers import ACTIONS, Apart, create

QUICK = 5.0  # seconds: how long an honest caller may have to wait meanwhile, on a busy machine


class Abused(Apart):
    """A server with short deadlines, and its memory."""

    @property
    def megabytes(self) -> float:
        assert self.process is not None
        return float(psutil.Process(self.process.pid).memory_info().rss / 2**20)

    def serves(self) -> None:
        """An honest caller is served, and soon."""
        began = time.monotonic()
        answer = httpx.post(
            f"{self.address}/v1/experiments/shop/decisions", json={"actions": ACTIONS}, timeout=30, trust_env=False
        )
        assert answer.status_code == 201
        assert time.monotonic() - began < QUICK

    def dial(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Abused]:
    folder: Path = tmp_path_factory.mktemp("abuse")
    config = folder / "service.toml"
    config.write_text("[limits]\nhead_seconds = 2.0\nbody_seconds = 2.0\n")
    with Abused(folder, config=config) as server:
        with httpx.Client(base_url=server.address, timeout=120, trust_env=False) as client:
            create(client)
            for _ in range(50):
                server.serves()
        yield server


def test_half_open_and_slow_connections_are_closed_in_time(server: Abused) -> None:
    before = server.megabytes
    silent = [server.dial() for _ in range(100)]
    headless = [server.dial() for _ in range(100)]
    bodiless = [server.dial() for _ in range(100)]
    for one in headless:
        one.sendall(b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    for one in bodiless:
        one.sendall(
            b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
    server.serves()
    deadline = time.monotonic() + 20
    answers = [_last_words(one, deadline) for one in (*silent, *headless, *bodiless)]
    assert all(answer == b"" for answer in answers[:200])
    assert all(b" 408 " in answer and b"/problems/timeout" in answer for answer in answers[200:])
    server.serves()
    assert server.megabytes < before + 40


def _last_words(connection: socket.socket, deadline: float) -> bytes:
    """What the server says before it hangs up."""
    connection.settimeout(max(0.1, deadline - time.monotonic()))
    found = b""
    with connection:
        while chunk := connection.recv(65536):
            found += chunk
            if b"\r\n\r\n" in found and b"}" in found.partition(b"\r\n\r\n")[2]:
                break
    return found


def test_huge_bodies_are_refused_without_being_read(server: Abused) -> None:
    before = server.megabytes
    for head in (b"Content-Length: 100000000000\r\n", b"Transfer-Encoding: chunked\r\n"):
        with server.dial() as connection:
            connection.sendall(
                b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Type: application/json\r\n" + head + b"\r\n"
            )
            answer = _flood(connection)
        assert b" 413 " in answer
    server.serves()
    assert server.megabytes < before + 40


def _flood(connection: socket.socket) -> bytes:
    """Send until the server has had enough, 20 megabytes at most, and return what it said."""
    block = b"ffff\r\n" + b" " * 0xFFFF + b"\r\n"
    connection.setblocking(False)
    sent, found, deadline = 0, b"", time.monotonic() + 20
    while sent < 20_000_000 and not found and time.monotonic() < deadline:
        try:
            sent += connection.send(block)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            break
        try:
            found += connection.recv(65536)
        except (BlockingIOError, OSError):
            continue
    return found


def test_ten_thousand_unknown_ids_leave_memory_flat(server: Abused) -> None:
    async def flood(count: int, prefix: str) -> None:
        limits = httpx.Limits(max_connections=16)
        async with httpx.AsyncClient(base_url=server.address, timeout=60, trust_env=False, limits=limits) as client:
            for n in range(0, count, 500):
                rewards = [{"decision_id": f"{prefix}-{n + k}", "value": 1.0} for k in range(500)]
                path = "/v1/experiments/shop/reward-batches"
                found = (await client.post(path, json={"rewards": rewards})).json()["results"]
                assert all(entry["problem"]["type"] == "/problems/unknown-decision" for entry in found)
            names = [f"{prefix}-{n}" for n in range(count // 20)]
            answers = await asyncio.gather(*(client.get(f"/v1/experiments/{name}") for name in names))
            assert {answer.status_code for answer in answers} == {404}

    asyncio.run(flood(2_000, "before"))
    before = server.megabytes
    events = httpx.get(f"{server.address}/v1/experiments/shop", trust_env=False).json()["events"]
    asyncio.run(flood(10_000, "after"))
    server.serves()
    assert server.megabytes < before + 40
    after = httpx.get(f"{server.address}/v1/experiments/shop", trust_env=False).json()["events"]
    assert after - events < 300  # refusals beyond the first hundred of an hour are only counted
