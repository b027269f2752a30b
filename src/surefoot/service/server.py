"""Running the app on uvicorn: connections that dawdle are closed, and a stop is graceful."""

import gc
import socket
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from surefoot.errors import ConfigError
from surefoot.service.app import Service, create_app
from surefoot.service.logs import configure, log
from surefoot.service.settings import Settings, without_password


class Server(uvicorn.Server):
    """A server that tells the app when it begins to stop, so that streams end and requests can be drained."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second time, stop at once. (uvicorn would end the process by the same signal again.)"""
        self.force_exit = self.should_exit
        self.stop()

    def stop(self) -> None:
        """Begin to stop, from any thread."""
        self._service.stop()
        self.should_exit = True


def protocol_of(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, with a deadline for the head of every request."""

    class Protocol(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_head()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._await_head()

        def on_headers_complete(self) -> None:
            self._deadline.cancel()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._deadline.cancel()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            previous = getattr(self, "_deadline", None)
            if previous is not None:
                previous.cancel()
            self._deadline = self.loop.call_later(seconds, self._give_up)

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return Protocol


def config_of(settings: Settings, service: Service) -> uvicorn.Config:
    """How uvicorn is to run the app."""
    limits = settings.limits
    return uvicorn.Config(
        service,
        host=settings.host,
        port=settings.port,
        http=protocol_of(limits.head_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.stop_seconds)),
        limit_concurrency=limits.connections,
    )


def serve(settings: Settings, *, sockets: list[socket.socket] | None = None) -> None:
    """Serve until told to stop."""
    configure(settings.log)
    service = create_app(settings)
    log.info(
        "serving",
        extra={
            "host": settings.host,
            "port": settings.port,
            "database": without_password(settings.database),
            "asks_for_tokens": not settings.is_open,
        },
    )
    server = Server(config_of(settings, service), service)
    _calm_collector()
    server.run(sockets=sockets)
    if not server.started:
        raise ConfigError(f"The server could not start on {settings.host}:{settings.port}; its log says why.")
    log.info("stopped")


def _calm_collector() -> None:
    """What was loaded at the start lives for ever: looking through it again and again costs half of the speed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
