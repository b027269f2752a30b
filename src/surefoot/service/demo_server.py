"""The demo: a service, its page and simulated visitors in one process, with a journal that is deleted at the end."""

import math
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from surefoot.errors import ConfigError
from surefoot.service.app import create_app
from surefoot.service.demo_shop import SHOP
from surefoot.service.demo_visitors import HOST, Demo, Visitors
from surefoot.service.logs import configure
from surefoot.service.server import Server, config_of
from surefoot.service.settings import Settings


def run(
    world: Demo = SHOP,
    *,
    port: int = 0,
    seconds: float | None = None,
    rate: float | None = None,
    seed: int = 1,
    say: Callable[[str], None] = print,
) -> None:
    """Run the demo until Ctrl-C, or for so many seconds; port 0 takes a free one.

    It listens on the loopback address only, and connects to nothing else.
    """
    if rate is not None and not 0 < rate < math.inf:
        raise ConfigError(f"`rate > 0` must hold, but got {rate}; it is visitors a second.")
    if seconds is not None and not 0 < seconds < threading.TIMEOUT_MAX:
        raise ConfigError(f"`seconds > 0` must hold, but got {seconds}; without it the demo ends at Ctrl-C.")
    with tempfile.TemporaryDirectory(prefix="surefoot-demo-") as folder, _listening(port) as listener:
        # Bound before the server runs, so that visitors know the port where 0 was asked for.
        port = listener.getsockname()[1]
        visitors = Visitors(world, port, rate=rate, seed=seed, say=say)
        settings = Settings(database=str(Path(folder) / "demo.journal"), host=HOST, port=port, log="warning")
        with _ending(seconds) as begin:
            visitors.start(on_open=begin, on_end=_interrupt)
            try:
                _serve(settings, listener, visitors)
            finally:
                visitors.join()
    if visitors.failure is not None:
        raise visitors.failure
    say(f"Ended after {visitors.counts.total():,} decisions.")


def _serve(settings: Settings, listener: socket.socket, visitors: Visitors) -> None:
    configure(settings.log)
    service = create_app(settings)

    class DemoServer(Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            visitors.stop()  # before the doors close
            super().handle_exit(sig, frame)

    DemoServer(config_of(settings, service), service).run(sockets=[listener])


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last demo's port may linger
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise ConfigError(
                f"`port` must be free, but {port} is not ({error.strerror}); 0 takes a free one."
            ) from None
        yield listener


@contextmanager
def _ending(seconds: float | None) -> Iterator[Callable[[], None]]:
    """Treat Ctrl-C, SIGTERM and the end of the time alike; the time counts from the call of what is yielded."""
    timer = threading.Timer(seconds or 0.0, _interrupt)
    timer.daemon = True
    before = signal.signal(signal.SIGTERM, _on_end)
    try:
        yield timer.start if seconds is not None else lambda: None
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        timer.cancel()


def _on_end(number: int, frame: FrameType | None) -> Any:
    raise KeyboardInterrupt


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)
