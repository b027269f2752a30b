"""A load of HTTP requests from many connections, as light as Python can make it: the server is what is measured.

`call` is the lightest: raw sockets, bytes prepared before, no event loop. Where the `share` that it took of its core is
far below 1, and nothing else runs there, such as a database, the server is the limit.
"""

import asyncio
import os
import select
import socket
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Load:
    """What came of a load: requests a second, seconds that one took, and the callers' share of a core."""

    rate: float
    median: float
    p99: float
    failed: int
    share: float = 0.0


class _Caller(asyncio.Protocol):
    """One connection: a request, its answer, and the next."""

    def __init__(
        self, requests: Iterator[bytes], seconds: list[float], failed: list[int], ended: "asyncio.Future[None]"
    ):
        self._requests, self._seconds, self._failed, self._ended = requests, seconds, failed, ended
        self._buffer, self._began = b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return
        self._seconds.append(time.perf_counter() - self._began)
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            self._failed.append(1)
        self._buffer = b""
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(request)


def _length(head: bytes) -> int:
    at = head.lower().find(b"content-length: ")
    return int(head[at + 16 :].split(b"\r\n", 1)[0])


async def send(port: int, requests: Callable[[], bytes], *, connections: int, count: int) -> Load:
    """Send `count` requests over so many connections at once."""
    stream = iter([requests() for _ in range(count)])
    seconds: list[float] = []
    failed: list[int] = []
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in range(connections)]
    began = time.perf_counter()
    for end in ends:
        await loop.create_connection(lambda end=end: _Caller(stream, seconds, failed, end), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*ends)
    taken = time.perf_counter() - began
    return Load(len(seconds) / taken, statistics.median(seconds), statistics.quantiles(seconds, n=100)[98], len(failed))


def call(port: int, requests: Iterable[bytes], *, connections: int) -> Load:
    """Send all requests over so many connections at once, each of which waits for its answer before the next."""
    waiting, poll, seconds, failed = iter(requests), select.epoll(), list[float](), 0
    callers = {
        one.fileno(): _Socket(one)
        for one in (socket.create_connection(("127.0.0.1", port)) for _ in range(connections))
    }
    for number in callers:
        poll.register(number, select.EPOLLIN)
    began, worked = time.perf_counter(), time.process_time()
    under_way = sum(caller.send(next(waiting, None)) for caller in callers.values())
    while under_way:
        for number, _ in poll.poll():
            caller = callers[number]
            if (head := caller.receive()) is None:
                continue
            seconds.append(time.perf_counter() - caller.began)
            failed += not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201"))
            under_way -= not caller.send(next(waiting, None))
    taken, worked = time.perf_counter() - began, time.process_time() - worked
    for caller in callers.values():
        caller.socket.close()
    p99 = statistics.quantiles(seconds, n=100)[98]
    return Load(len(seconds) / taken, statistics.median(seconds), p99, failed, worked / taken)


class _Socket:
    """One connection of `call`."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket, self.began, self._found = connected, 0.0, b""

    def send(self, request: bytes | None) -> bool:
        """Send a request, if there is one left."""
        self.began = time.perf_counter()
        if request is not None:
            self.socket.sendall(request)
        return request is not None

    def receive(self) -> bytes | None:
        """The head of an answer that is whole."""
        found = self.socket.recv(65_536)
        assert found, "the server has closed the connection"
        self._found += found
        head, is_whole, body = self._found.partition(b"\r\n\r\n")
        if not is_whole or len(body) < _length(head):
            return None
        self._found = b""
        return head


def core_seconds(process: int) -> float:
    """What a process has taken of its cores so far, all of its threads."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def family_core_seconds(process: int) -> float:
    """The same of a process and its children that still run, as a database has one for each connection."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return sum(map(core_seconds, [process, *map(int, children)]))


def cores() -> tuple[set[int], set[int]]:
    """One core for servers and another for callers; the same, where there is but one."""
    found = sorted(os.sched_getaffinity(0))
    return {found[0]}, {found[-1]}


def request(method: str, path: str, body: bytes) -> bytes:
    """One request, in bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
