"""How far an edge's log has come, in a file beside it: a log that was put back to an earlier state is shorter.

The mark follows the log: it is never ahead of what was written, nor after a power cut of what was synced.
"""

import os
import secrets
import struct
from pathlib import Path

from surefoot.errors import ConfigError

NAME = 16  # bytes, drawn anew for every log
REACHED = struct.Struct("<Q")
SPOILED = 2**64 - 1  # no log comes so far


class LogMark:
    """The mark of one log: `name`, which the log's head repeats, and how many bytes have been written to it."""

    def __init__(self, file: int, name: bytes) -> None:
        self._file, self.name = file, name.hex()

    @classmethod
    def begin(cls, path: Path) -> "LogMark":
        """The mark of a new log; one that a log of the same place has left behind is gone then."""
        name = secrets.token_bytes(NAME)
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            os.pwrite(file, name + REACHED.pack(0), 0)
        except OSError as error:
            raise ConfigError(f"There must be room for a mark beside an edge's log, but: {error}.") from None
        return cls(file, name)

    @classmethod
    def open(cls, path: Path) -> "LogMark":
        """The mark of a log that there is."""
        try:
            file = os.open(path, os.O_RDWR)
        except OSError as error:
            raise ConfigError(
                f"An edge's log must have its mark beside it, but: {error}. Without it nobody can tell a log from an "
                "earlier state of it. Begin a new log, by a new name; the lease of the old one stays charged."
            ) from None
        return cls(file, os.pread(file, NAME, 0))

    @property
    def reached(self) -> int:
        """How many bytes have been written to the log, those of its earlier files included."""
        data = os.pread(self._file, REACHED.size, NAME)
        found: int = REACHED.unpack(data)[0] if len(data) == REACHED.size else SPOILED
        return found

    def reach(self, size: int) -> None:
        """Note that the log has come so far."""
        os.pwrite(self._file, REACHED.pack(size), NAME)

    def spoil(self) -> None:
        """Have nobody go on with the log: it holds what was not played."""
        self.reach(SPOILED)

    def flush(self) -> None:
        """Have the disk write it."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
