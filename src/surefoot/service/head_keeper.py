"""Heads that leave the journal: to the log, to a file, to an address, so that a rewritten journal is found out.

Beside the file stands the list of what was erased, so that no older copy of the journal brings it back.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from surefoot.errors import JournalError, JournalNotFoundError
from surefoot.experiment.restore import Erasure, erased_beside, erasures, read_erased
from surefoot.journal import Head, Journal
from surefoot.journal.address import private_file
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import note_heads
from surefoot.journal.signatures import SigningKey, head_message
from surefoot.service.fetch import fetch
from surefoot.service.logs import log
from surefoot.service.responses import NamedHead
from surefoot.service.settings import Settings

POST_SECONDS, STOP_SECONDS = 10.0, 5.0  # for heads on their way, and for the last ones at a stop


class HeadKeeper:
    """Notes where experiments stand, once in a while, in the journal's own chain and outside of it."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings, self._clock = settings, clock
        self.key = None if settings.signing_key is None else SigningKey(settings.signing_key)
        self._noted, self._alone = dict[str, Head](), threading.Lock()
        self._unfiled, self._unsent = dict[str, NamedHead](), dict[str, NamedHead]()  # the newest, by name
        self._new = deque[NamedHead]()  # from the threads that note to the loop that sends
        self._listed: dict[str, Head] | None = None  # the newest erasure of each chain that is in the list
        self.failures = 0
        self._noted_at = self._sent_at = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since all heads were last kept, or since the start."""
        sent = self._noted_at if self._settings.heads_url is None else self._sent_at
        return time.monotonic() - min(self._noted_at, sent)

    def signed(self, name: str, head: Head) -> NamedHead:
        """A head of this moment, with a signature where there is a key."""
        now = self._clock()
        if self.key is None:
            return NamedHead(name, head.number, head.hash, now)
        signature = self.key.sign(head_message(name, head, now))
        return NamedHead(name, head.number, head.hash, now, signature, self.key.name)

    def note(self, journal: Journal) -> None:
        """Note the heads that have moved since the last time; what fails is counted. May wait for the journal."""
        try:
            with self._alone:
                self._note(journal)
            self._noted_at = time.monotonic()
        except Exception as error:  # of any kind: the next time is another try
            self._note_failure(error)

    async def send(self, seconds: float | None = None) -> None:
        """Send what `heads_url` does not have yet; what fails is counted, and sent the next time."""
        if self._settings.heads_url is None:
            return
        while self._new:
            head = self._new.popleft()
            self._unsent[head.experiment] = head
        try:
            if self._unsent:
                body = _lines([*self._unsent.values()])
                kind, seconds = "application/x-ndjson", seconds or POST_SECONDS
                await fetch(self._settings.heads_url, seconds=seconds, body=body, content_type=kind)
                self._unsent.clear()
            self._sent_at = time.monotonic()
        except Exception as error:  # whatever an address answers, the next time is another try
            self._note_failure(error)

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        log.error("heads could not be kept", extra={"error": type(error).__name__, "detail": str(error)})

    def _note(self, journal: Journal) -> None:
        heads = dict(filter(None, (self._moved(journal, name) for name in journal.names())))
        # First, and whatever becomes of the heads: what is not listed comes back with an older copy.
        if self._settings.heads is not None:
            self._list_erased(journal, erased_beside(self._settings.heads), heads)
        if heads:
            heads[JOURNAL] = note_heads(journal, heads, time=self._clock())
            self._noted.update(heads)
            signed = {name: self.signed(name, head) for name, head in heads.items()}
            for head in signed.values():
                told = msgspec.to_builtins(head)
                log.info("head", extra=told | {"head_time": told.pop("time")})
            self._unfiled |= signed
            if self._settings.heads_url is not None:
                self._new.extend(signed.values())
        if self._unfiled and self._settings.heads is not None:
            _append(Path(self._settings.heads), [*self._unfiled.values()])
        self._unfiled.clear()

    def _moved(self, journal: Journal, name: str) -> tuple[str, Head] | None:
        try:
            head = journal.head(name)
        except JournalError:  # a damaged experiment must not keep the heads of the others back
            return None
        return (name, head) if head != self._noted.get(name) else None

    def _list_erased(self, journal: Journal, path: Path, moved: Iterable[str]) -> None:
        """Add what these chains, and the journal's own, say was erased since the last time, whoever erased it."""
        if self._listed is None:
            self._listed = {one.chain: Head(one.number, one.hash) for one in read_erased(path)}
        found = list[Erasure]()
        for chain in (*moved, JOURNAL):
            with suppress(JournalNotFoundError):  # there is no chain of the journal's own yet
                found += erasures(journal.view(chain), self._listed.get(chain))
        if found:
            _append(path, found)
            self._listed.update({one.chain: Head(one.number, one.hash) for one in found})


def _lines(entries: Sequence[NamedHead | Erasure]) -> bytes:
    return b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)


def _append(path: Path, entries: Sequence[NamedHead | Erasure]) -> None:
    """Add lines to a file that only its owner may read, durably."""
    private_file(path)
    with path.open("ab") as file:
        file.write(_lines(entries))
        file.flush()
        os.fsync(file.fileno())
