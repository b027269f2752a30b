"""Whether this server can do its work: write durably, tell the time, and open every experiment."""

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from surefoot.errors import SurefootError
from surefoot.journal import Journal
from surefoot.journal.clock import JUMP_SECONDS
from surefoot.service.logs import log
from surefoot.service.metrics import Histogram
from surefoot.service.trusted_clock import TrustedClock

PROBE_SECONDS = 2.0  # between two writes that only test the journal
STALE_SECONDS = 15.0  # a write that succeeded longer ago says nothing


class Health(msgspec.Struct, kw_only=True):
    """How the server is.

    status:           "ready", or why it is not: "starting", or "unwritable" where the journal takes no events now
    detail:           what is wrong, in a sentence that anybody may read; the log says more
    seconds_since_write: since the journal last took a write and flushed it; null before the first
    clock_offset:     seconds by which the system's clock is ahead of what it must be by now
    is_clock_trusted: false after a jump; events are stamped at the pace of a clock that cannot be set until it is over
    damaged:          experiments that cannot be read, or take no events; all others go on. The list of experiments says
                      why one cannot be read, the log why one takes no events
    """

    status: Literal["ready", "starting", "stopping", "unwritable"]
    detail: str = ""
    seconds_since_write: float | None = None
    clock_offset: float = 0.0
    is_clock_trusted: bool = True
    damaged: int = 0


class HealthMonitor:
    """What is known of the server's health; `probe` asks the journal, all else only tells."""

    def __init__(self, clock: TrustedClock, now: Callable[[], float] = time.monotonic) -> None:
        self.clock, self._now = clock, now
        self.is_open, self.is_stopping = False, False
        self.damaged: dict[str, str] = {}  # cannot be read
        self.refusing: dict[str, str] = {}  # take no events
        self.writes = Histogram()
        self.failed_writes = 0
        self._written: float | None = None
        self._error: str | None = None
        self.is_clock_trusted, self._is_new = True, True

    def probe(self, journal: Journal) -> None:
        """Write to the journal, and look at the clocks. May wait for the journal."""
        began = self._now()
        try:
            self._note_refusing(journal.probe())
            ended = self._now()
            self._written, self._error = ended, None
            self.writes.add(ended - began)
            self._look_at_clock(journal)
        except SurefootError as error:
            if self._error is None:
                log.error("the journal cannot be written", extra={"error": type(error).__name__, "detail": str(error)})
            self.failed_writes += 1
            self._error = f"The journal takes no events now ({type(error).__name__})."

    def _note_refusing(self, refusing: dict[str, str]) -> None:
        for name in refusing.keys() - self.refusing.keys():
            log.error("an experiment takes no events", extra={"experiment": name, "detail": refusing[name]})
        for name in self.refusing.keys() - refusing.keys():
            log.info("an experiment takes events again", extra={"experiment": name})
        self.refusing = refusing

    @property
    def unwell(self) -> set[str]:
        """Experiments that cannot be read, or take no events."""
        return {*self.damaged, *self.refusing}

    def _look_at_clock(self, journal: Journal) -> None:
        shared = journal.clock()
        if self._is_new:
            # On a file the note of the last server tells. A clock that was set back is followed: it may have been ahead
            # until then, and a window that closes late can be mended, one that closes early cannot.
            if shared is None and (jump := journal.clock_jump()) > JUMP_SECONDS:
                self.clock.start_from(self.clock() - jump)
            elif shared is not None:
                self.clock.start_from(shared)
        self._is_new = False
        self.clock.follow()
        is_trusted = not self.clock.is_off and (shared is None or self.clock.agrees(shared))
        if is_trusted != self.is_clock_trusted:
            word = "the clock is right again" if is_trusted else "a clock has jumped"
            (log.info if is_trusted else log.error)(word, extra={"offset_seconds": round(self.clock.offset, 3)})
        self.is_clock_trusted = is_trusted

    @property
    def seconds_since_write(self) -> float | None:
        """Since the journal last took a write."""
        return None if self._written is None else self._now() - self._written

    def read(self) -> Health:
        """How the server is."""
        age = self.seconds_since_write
        known = Health(
            status="ready",
            seconds_since_write=age,
            clock_offset=self.clock.offset,
            is_clock_trusted=self.is_clock_trusted and not self.clock.is_off,
            damaged=len(self.unwell),
        )
        if self.is_stopping:
            return msgspec.structs.replace(known, status="stopping", detail="The server is stopping.")
        if not self.is_open or (age is None and self._error is None):
            return msgspec.structs.replace(known, status="starting", detail="Experiments are being opened.")
        if self._error is not None:
            return msgspec.structs.replace(known, status="unwritable", detail=self._error)
        if age is not None and age > STALE_SECONDS:
            detail = f"The journal has taken no write for {age:.0f} s: the last one has not come back."
            return msgspec.structs.replace(known, status="unwritable", detail=detail)
        return known
