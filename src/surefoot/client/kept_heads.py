"""Receipts that a client keeps: the newest head of each experiment, in memory and if asked in a file of JSON lines.

A head vouches for all events before it. So the newest is enough, and a file need not have a line for every answer.
"""

import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import ConfigError, JournalUnavailableError, ReceiptError
from surefoot.journal.address import private_file
from surefoot.rounds.answers import EventHead

BEGIN = b'{"experiment":'  # of every line
SECONDS = 1.0  # between two lines of an experiment in the file


class KeptHead(msgspec.Struct, frozen=True):
    """A line of the file, with the time when it was heard of: what `surefoot audit --expect` takes."""

    experiment: str
    number: int
    hash: str
    time: float


class KeptHeads:
    """The newest head of each experiment; `contradicted` says where the service gave an event two hashes."""

    def __init__(self, path: Path | str | None = None) -> None:
        self._path, self._lock = None if path is None else Path(path), threading.Lock()
        self._newest, self._times = dict[str, EventHead](), dict[str, float]()
        self._written = dict[str, tuple[int, float]]()
        self.contradicted: deque[str] = deque(maxlen=100)
        self.unwritten = 0  # lines that the disk refused
        if self._path is not None:
            self._load(self._path)

    def newest(self, experiment: str) -> EventHead | None:
        """The newest head that the service gave."""
        return self._newest.get(experiment)

    def keep(self, experiment: str, answer: Any) -> None:
        """Keep the head of an answer, if it has one."""
        head = head_of(answer)
        if head is None:
            return
        with self._lock:
            last = self._newest.get(experiment)
            if last is not None and last.number == head.number and last.hash != head.hash:
                self.contradicted.append(f"Event {head.number} of {experiment!r} was {last.hash}, and is {head.hash}.")
            if last is None or last.number < head.number:
                self._newest[experiment], self._times[experiment] = head, time.time()
                if time.monotonic() - self._written.get(experiment, (0, -SECONDS))[1] >= SECONDS:
                    self._write(experiment, head)

    def close(self) -> None:
        """Write the newest heads that are not in the file yet."""
        with self._lock:
            for experiment, head in self._newest.items():
                if self._written.get(experiment, (0, 0.0))[0] < head.number:
                    self._write(experiment, head)

    def check(self, experiment: str, current: EventHead | None) -> EventHead | None:
        """The newest head, where it is what the service finds at its number now; an error where it is not."""
        kept = self.newest(experiment)
        if kept is not None and current != kept:
            now = "is gone" if current is None else f"has {current.hash}"
            raise ReceiptError(
                f"Event {kept.number} of {experiment!r} must have the hash {kept.hash}, which the service gave, but "
                f"{now}: the journal was rewritten, or an older copy "
                "was restored. Keep the receipt, and run `surefoot audit --expect` on the journal."
            )
        return kept

    def _write(self, experiment: str, head: EventHead) -> None:
        self._written[experiment] = head.number, time.monotonic()
        if self._path is not None:
            line = msgspec.json.encode(KeptHead(experiment, head.number, head.hash, self._times[experiment]))
            try:
                with self._path.open("ab") as file:
                    file.write(line + b"\n")
            except OSError:  # a full disk must not keep anybody from playing
                self.unwritten += 1

    def _load(self, path: Path) -> None:
        try:
            data = path.read_bytes() if path.exists() else b""
            for line in data.splitlines():
                kept = _read(line)
                if kept is None:
                    continue
                last = self._newest.get(kept.experiment)
                if last is None or last.number < kept.number:
                    self._newest[kept.experiment] = EventHead(kept.number, kept.hash)
            private_file(path)
            with path.open("ab") as file:
                # The next line must not become the rest of one that was cut short.
                file.write(b"" if not data or data.endswith(b"\n") else b"\n")
        except (OSError, JournalUnavailableError, msgspec.MsgspecError) as error:
            raise ConfigError(f"`receipts` must be a file of this client's, but {path} is not: {error}.") from None
        self._written = {name: (head.number, 0.0) for name, head in self._newest.items()}


def _read(line: bytes) -> KeptHead | None:
    """A line of the file; None for one that a crash cut short."""
    try:
        return msgspec.json.decode(line, type=KeptHead)
    except msgspec.MsgspecError:
        # A disk may have kept a line's length without its end.
        begun = line.rstrip(b"\0")
        if begun.startswith(BEGIN) or BEGIN.startswith(begun):
            return None
        raise


def head_of(answer: Any) -> EventHead | None:
    """The head that an answer of the service carries."""
    if not isinstance(answer, dict):
        head = getattr(answer, "head", None)
        return head if isinstance(head, EventHead) else None
    if "head_hash" in answer:
        return EventHead(answer["events"], answer["head_hash"])
    # A batch that was sent from the queue has one entry.
    entry = (answer.get("results") or [answer])[0]
    head = (entry.get("receipt") or entry).get("head")
    return None if head is None else msgspec.convert(head, EventHead)
