"""A wire between a journal and its server that can be cut at the worst moment: around a commit."""

import select
import socket
import struct
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

SOCKET = ".s.PGSQL.5432"
COMMIT = b"COMMIT\x00"

_FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
STOPPING = b"E" + struct.pack("!I", len(_FIELDS) + 4) + _FIELDS


class Proxy:
    """Passes bytes both ways, until it is told to lose a commit or the answer to it.

    lose = "request": the next commit never reaches the server
    lose = "answer":  the next commit reaches the server, its answer never comes back
    lose = "rest":    its answer comes back, and then, as of a server that is told to stop, an error that ends the
                      session; the end itself is a moment late
    """

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        self._server = f"{parse_qs(parts.query)['host'][0]}/{SOCKET}"
        self.url = urlunsplit(parts._replace(query=f"host={folder}"))
        self.lose: str | None = None
        self.accepts = self._is_open = True
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/{SOCKET}")
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._is_open = False
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while self._is_open:
            if not select.select([self._listener], [], [], 0.02)[0]:
                continue
            client, _ = self._listener.accept()
            if self.accepts:
                self._threads.append(threading.Thread(target=self._relay, args=(client,)))
                self._threads[-1].start()
            else:
                client.close()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            while self._is_open:
                for source in select.select([client, server], [], [], 0.02)[0]:
                    data, target = source.recv(65536), server if source is client else client
                    if source is client and COMMIT in data and self.lose in ("request", "answer"):
                        self._lose(server, data)
                        return
                    if source is server and COMMIT in data and self.lose == "rest":
                        self.lose = None
                        client.sendall(data[: data.index(COMMIT) + len(COMMIT)] + STOPPING)
                        time.sleep(0.1)
                        return
                    if not data:
                        return
                    target.sendall(data)

    def _lose(self, server: socket.socket, data: bytes) -> None:
        lose, self.lose = self.lose, None
        if lose == "answer":
            server.sendall(data)
