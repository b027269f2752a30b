"""What the system's clock said when a journal was last open, so that a jump is noticed at the next start.

A clock that is a day ahead would stamp every event, and close every window, a day early; and times of a chain never run
backwards. While a server runs it compares the system's clock with one that nobody can set. That one counts from when
the machine was switched on, so a note of how far the two are apart tells the next process of a jump; after a reboot
nobody can tell.
"""

import secrets
import time
from pathlib import Path
from typing import NamedTuple

# Counts while the machine is suspended, which is no jump.
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
BOOT = Path("/proc/sys/kernel/random/boot_id")
JUMP_SECONDS = 60.0  # a time server corrects less than that between two notes


class ClockNote(NamedTuple):
    """Which time the machine was switched on, and how far the system's clock was ahead of the one that counts from it.

    >>> note = ClockNote(boot_id(), ClockNote.now().offset - 86_400.0)
    >>> round(ClockNote.now().jump_since(note))
    86400
    """

    boot: str
    offset: float

    @classmethod
    def now(cls) -> "ClockNote":
        """What is to be noted now."""
        return cls(boot_id(), time.time() - time.clock_gettime(STEADY))

    def jump_since(self, earlier: "ClockNote | None") -> float:
        """Seconds by which the system's clock was set forward; 0 where nobody can tell."""
        return self.offset - earlier.offset if earlier is not None and earlier.boot == self.boot else 0.0

    def renewed(self) -> "ClockNote":
        """The note to keep while a process runs: it follows small corrections, and no jump."""
        now = ClockNote.now()
        return self if abs(now.jump_since(self)) > JUMP_SECONDS else now


def boot_id() -> str:
    """Which time the machine was switched on, as 32 hexadecimal digits."""
    try:
        return BOOT.read_text().strip().replace("-", "")
    except OSError:  # nobody can tell, so every time is another one
        return secrets.token_hex(16)
