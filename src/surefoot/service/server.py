"""Running the app on uvicorn: slow connections are closed, and a stop is graceful.

granian (2.8) and hypercorn (0.18) bound a head, but have neither a deadline for a whole body nor a limit of connections
by address, so that they would need a protocol of ours as well. nginx has limits for both, but a server must withstand
its callers without one, too: on a laptop, or inside a cluster.
"""

import asyncio
import gc
import socket
import sys
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from surefoot.errors import ConfigError
from surefoot.journal.address import without_password
from surefoot.service.app import Service, create_app
from surefoot.service.authorization import KEY, RequestScope
from surefoot.service.logs import configure, log
from surefoot.service.preflight import check_heads, listen
from surefoot.service.problems import MEDIA_TYPE, encode, problem
from surefoot.service.settings import Limits, Settings


class Server(uvicorn.Server):
    """A server that tells the app when it begins to stop, so that streams end and requests can be drained."""

    def __init__(
        self, config: uvicorn.Config, service: Service, say: Callable[[str], None] = lambda line: None
    ) -> None:
        super().__init__(config)
        self._service, self._say = service, say

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second signal stops at once. (uvicorn would end the process by the same signal again.)"""
        self.force_exit = self.should_exit
        self.stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and only then say so: whoever waits for that line may call at once."""
        await super().startup(sockets)
        if self.started:
            settings = self._service.settings
            port = sockets[0].getsockname()[1] if sockets else settings.port  # 0 asks for any that is free
            self._say(f"Open {page_address(settings.host, port)} in a browser. Ctrl-C stops the server.")
            log.info(
                "serving",
                extra={
                    "host": settings.host,
                    "port": port,
                    "database": without_password(settings.database),
                    "asks_for_tokens": not settings.is_open,
                },
            )
            # It may still be made, and is read then; until that, everybody is refused.
            if settings.tokens is not None and not Path(settings.tokens).is_file():
                advice = "nobody can ask for anything: make one with `surefoot token create`"
                log.warning("no token file", extra={"tokens": settings.tokens, "advice": advice})

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; look for slow connections twice a second."""
        if counter % 5 == 0:
            for connection in list(self.server_state.connections):
                if isinstance(connection, HttpProtocol):
                    connection.close_timed_out()
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Begin to stop, from any thread."""
        self._service.stop()
        self.should_exit = True


def page_address(host: str, port: int) -> str:
    """Where a browser on this machine finds the page.

    >>> page_address("0.0.0.0", 8080), page_address("::1", 8080)
    ('http://127.0.0.1:8080/', 'http://[::1]:8080/')
    """
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _last_words(word: str) -> bytes:
    """An answer to a request that never reaches the app."""
    found = problem(word)
    body = encode(found)
    head = f"HTTP/1.1 {found.status} {HTTPStatus(found.status).phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
    head += "retry-after: 1\r\n" if found.status == 503 else ""
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


TOO_SLOW, HEAD_TOO_LARGE, MALFORMED, BUSY = map(_last_words, ("timeout", "head-too-large", "malformed", "busy"))


class Connections:
    """Connections that are open, by the address they came from: where there are too many, the one idle longest makes
    room. So a caller that opens connections and says nothing takes none from others, and a probe is always let in.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._by_address: dict[str, dict[HttpProtocol, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, connection: Any) -> bool:
        """Take a connection; false if no other is idle that could make room for it."""
        ours = self._by_address.setdefault(address, {})
        has_room = len(ours) < self.limits.connections_per_address or _drop_idle([ours])
        has_room = has_room and (self._count < self.limits.connections or _drop_idle(self._by_address.values()))
        ours[connection] = None
        self._count += 1
        return has_room

    def remove(self, address: str, connection: Any) -> None:
        """Forget a connection that was closed."""
        ours = self._by_address.get(address, {})
        if connection in ours:
            del ours[connection]
            self._count -= 1
        if not ours:
            self._by_address.pop(address, None)


def _drop_idle(groups: Iterable[dict[Any, None]]) -> bool:
    idle = [(one.idle_since, at, one) for at, one in enumerate(one for group in groups for one in group)]
    oldest = min(((since, at, one) for since, at, one in idle if since is not None), default=None)
    if oldest is not None:
        oldest[2].drop()
    return oldest is not None


class Together:
    """A transport that joins what is written in one turn of the loop: a head and its body are one packet."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._waiting = transport, loop, list[bytes]()
        self.get_extra_info, self.is_closing = transport.get_extra_info, transport.is_closing
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    def write(self, data: bytes) -> None:
        """Send soon."""
        self._waiting.append(data)
        if len(self._waiting) == 1:
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send now."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def close(self) -> None:
        """Close, once everything is sent."""
        self.flush()
        self._transport.close()


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol for callers that nobody knows yet: one request at a time, limits of size, number and time.

    Checking all connections now and then is cheaper than a timer for every request.
    """

    _awaited: str | None = None
    _since = 0.0
    _unread_bytes = 0  # since a head, or a piece of a body, was last complete
    _address = ""

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections, self._limits = connections, connections.limits

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request, if there is room for another connection."""
        super().connection_made(Together(transport, self.loop))  # type: ignore[arg-type]
        self._await("head")
        self._address = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._connections.add(self._address, self):
            self.transport.write(BUSY)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for others, and decide nothing for a caller that has hung up."""
        self._connections.remove(self._address, self)
        visit = None if self.cycle is None else self.cycle.scope.get(KEY)
        if isinstance(visit, RequestScope) and visit.waits_for is not None:
            visit.waits_for.cancel()
        super().connection_lost(exc)

    @property
    def idle_since(self) -> float | None:
        """Since when nothing was asked for; None while an answer is due."""
        return self._since if self._is_answered else None

    @property
    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def drop(self) -> None:
        """Close the connection, for another one needs the room."""
        self._connections.remove(self._address, self)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Read on, unless something that is no body does not end: a head, trailers, the extension of a chunk."""
        self._unset_keepalive_if_required()
        self._unread_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except HttpParserError:
            self._refuse(MALFORMED)
        if self._unread_bytes > self._limits.head_bytes:
            self._refuse(HEAD_TOO_LARGE)

    def _decline(self, rest: bytes) -> None:
        """Read the request without its offer of another protocol: the parser would skip its body."""
        kept = [b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        if len(kept) == len(self.headers):  # CONNECT, which offers nothing and wants a tunnel
            self._refuse(MALFORMED)
            return
        line = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        self.parser = HttpRequestParser(self)
        self.data_received(b"".join([line, *kept, b"\r\n", rest]))

    def _refuse(self, words: bytes) -> None:
        """Close, with these words where they can still be the answer; a request under way is answered first."""
        if self._awaited != "body" and not self._is_answered:
            self.cycle.keep_alive, self._awaited = False, None
            return
        if self._awaited != "body" or not self.cycle.response_started:
            self.transport.write(words)
        if self.cycle is not None:
            # Past the app, which may still wait for the body; the event wakes it to find its caller gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.drop()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._unread_bytes = 0
        self._await("head")

    def on_headers_complete(self) -> None:
        """The head is here."""
        if not self._is_answered:
            raise HttpParserError("a request before the answer to the last")
        if self.parser.should_upgrade():
            return
        super().on_headers_complete()
        self.headers = []  # trailers go where nobody looks
        self._unread_bytes = 0
        self._await("body")

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is here."""
        if self.parser.should_upgrade():
            return
        self._awaited, self._since, self._unread_bytes = None, self.loop.time(), 0
        super().on_message_complete()

    def close_timed_out(self) -> None:
        """Close the connection if the caller takes too long; one that has sent a head gets an answer."""
        waited = self.loop.time() - self._since
        if self._awaited == "head" and waited > self._limits.head_seconds:
            self._refuse(b"")
        elif self._awaited == "body" and waited > self._limits.body_seconds:
            self._refuse(TOO_SLOW)

    def _await(self, what: str) -> None:
        self._awaited, self._since = what, self.loop.time()


def config_of(settings: Settings, service: Service) -> uvicorn.Config:
    """How uvicorn is to run the app."""
    app: Any = service
    if "opentelemetry.sdk" in sys.modules:  # whoever loads it wants spans
        from surefoot.integrations.otel import TracedApp

        app = TracedApp(service, KEY)
    protocol: Any = partial(HttpProtocol, connections=Connections(settings.limits))
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        # Anybody else can claim an address in such a header, and rates are limited by address.
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=settings.proxies,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.stop_seconds)),
    )


def serve(
    settings: Settings, *, sockets: list[socket.socket] | None = None, say: Callable[[str], None] = lambda line: None
) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Parameters
    ----------
    settings : Settings
        The server's settings.
    sockets : list of socket, optional
        Sockets to listen on in place of `settings.host` and `settings.port`.
    say : callable, optional
        Called with a line that names the address to open, once it answers there.

    Raises
    ------
    ConfigError
        If no server can run with these settings, its port is taken, or it could not start.
    JournalError
        If the journal cannot be opened; the message says why.

    Examples
    --------
    >>> settings = Settings(database="shop.journal", port=8080)
    >>> serve(settings)                                          # doctest: +SKIP
    """
    configure(settings.log)
    service = create_app(settings)
    # Before uvicorn starts, which would write a traceback and not a sentence.
    listening = sockets or [listen(settings.host, settings.port)]
    try:
        service.registry.open()
        check_heads(service.registry.journal, settings.heads)
    except BaseException:
        for one in listening:
            one.close()
        raise
    server = Server(config_of(settings, service), service, say)
    calm_collector()
    server.run(sockets=listening)
    # uvicorn logs what kept it from starting, and returns.
    if not server.started:
        raise ConfigError(f"The server could not start on {settings.host}:{settings.port}; its log says why.")
    log.info("stopped")


def calm_collector() -> None:
    """What was loaded at the start lives as long as the process: searching it again and again costs half the speed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
