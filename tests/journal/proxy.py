"""A wire between a journal and its server that can be cut, or fall silent, at the worst moment: around a commit."""

import selectors
import socket
import struct
import threading
import time
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit, urlunsplit

SOCKET = ".s.PGSQL.5432"
COMMIT = b"COMMIT\x00"

_FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
STOPPING = b"E" + struct.pack("!I", len(_FIELDS) + 4) + _FIELDS


class Proxy:
    """Passes bytes both ways over TCP, until it loses a commit, its answer, or everything.

    lose = "request":     the next commit never reaches the server, and the connection is cut
    lose = "answer":      the next commit reaches the server, and the connection is cut before its answer
    lose = "rest":        its answer comes back, and then, as of a server that stops, an error that ends the session;
                          the end itself is a moment late
    lose = "hang before": the next commit never reaches the server, and the connection stays open in silence
    lose = "hang after":  the next commit reaches the server, and then the connection stays open in silence
    is_silent:            nothing passes any more, while connections are taken and bytes are acknowledged
    is_cut:               every connection ends, and so does each new one
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.server = f"{parse_qs(parts.query)['host'][0]}/{SOCKET}"
        self.lose: str | None = None
        self.accepts = self.is_open = True
        self.is_silent = self.is_cut = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{self.port}", query=""))
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def close(self) -> None:
        self.is_open = False
        for thread in self.threads:
            thread.join()
        self.listener.close()

    def accept(self) -> None:
        while self.is_open:
            if not _readable(self.listener):
                continue
            client, _ = self.listener.accept()
            if self.accepts and not self.is_cut:
                self.threads.append(threading.Thread(target=self.relay, args=(client,)))
                self.threads[-1].start()
            else:
                client.close()

    def relay(self, client: socket.socket) -> None:
        # Either end may reset the connection at any time: then it is over.
        with suppress(ConnectionError), client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self.server)
            while self.is_open and not self.is_cut:
                if self.is_silent:
                    time.sleep(0.02)
                    continue
                for source in _readable(client, server):
                    data, target = source.recv(65536), server if source is client else client
                    if source is client and COMMIT in data and self.lose in ("request", "answer"):
                        lose, self.lose = self.lose, None
                        if lose == "answer":
                            server.sendall(data)
                        return
                    if source is client and COMMIT in data and self.lose in ("hang before", "hang after"):
                        lose, self.lose = self.lose, None
                        if lose == "hang after":
                            server.sendall(data)
                        self.hang(client)
                        return
                    if source is server and COMMIT in data and self.lose == "rest":
                        self.lose = None
                        client.sendall(data[: data.index(COMMIT) + len(COMMIT)] + STOPPING)
                        time.sleep(0.1)
                        return
                    if not data:
                        return
                    target.sendall(data)

    def hang(self, client: socket.socket) -> None:
        """Say nothing until the client gives up."""
        while self.is_open:
            if _readable(client) and not client.recv(65536):
                return


def _readable(*sockets: socket.socket) -> list[socket.socket]:
    """Those of some sockets that have something to read, or have ended; it waits for a moment."""
    with selectors.DefaultSelector() as selector:  # select() takes no descriptor beyond 1,023
        for one in sockets:
            selector.register(one, selectors.EVENT_READ)
        ready = {key.fileobj for key, _ in selector.select(0.02)}
    return [one for one in sockets if one in ready]
