"""A load of HTTP requests from many connections, as light as Python can make it: the server is what is measured."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """What came of a load: requests a second, and seconds that one took."""

    rate: float
    median: float
    p99: float
    failed: int


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


def request(method: str, path: str, body: bytes) -> bytes:
    """One request, in bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
