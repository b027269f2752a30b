"""The log of an edge: an append-only file that only one process, on one machine, goes on with.

A decision is written before it is answered. By default the write is the system's, which survives the end of the process
but not of the machine: after a power cut rounds may be missing that were played, so the lease must not go on. With
`sync` every write waits for the disk.
"""

import contextlib
import fcntl
import os
import secrets
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from surefoot.edge.edge_entries import FRAME, HANDED, AnyEntry, Closed, Entry, LogHead, Opened, framed, read_entries
from surefoot.edge.log_mark import LogMark
from surefoot.errors import (
    ConfigError,
    JournalBusyError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalUnavailableError,
)

FORMAT = 1
CHUNK = 1 << 20  # bytes read at once
GENERATION = 0x80087601  # FS_IOC_GETVERSION: which of the files that have had this inode
BOOT = Path("/proc/sys/kernel/random/boot_id")


class EdgeLog:
    """One file, which is locked while it is open, and the mark beside it."""

    def __init__(self, path: Path, *, sync: bool, is_new: bool = False) -> None:
        self.path, self._sync = path, sync
        self._file = self._locked(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if is_new else 0))
        self._mark: LogMark | None = None  # none yet of a file that is to take the place of another
        self.head: LogHead
        self.size = 0

    @classmethod
    def begin(cls, path: Path, *, experiment: str, shard: str, token: str, sync: bool) -> "EdgeLog":
        """A new file, or one that nothing was written to."""
        log = cls(path, sync=sync, is_new=True)
        try:
            if os.fstat(log._file).st_size:
                raise JournalBusyError(f"An edge's log must be open once, but another one has just begun {path}.")
            log._mark = LogMark.begin(_beside(path))
            log._begin(LogHead(FORMAT, experiment, shard, token, _identity(log._file), log._mark.name, 0))
            log.flush()
            _flush_folder(path)
        except BaseException:
            log.close(is_clean=False)
            raise
        return log

    @classmethod
    def resume(cls, path: Path, *, sync: bool) -> "tuple[EdgeLog, list[tuple[AnyEntry, int]]]":
        """The file of an earlier process, and what it holds, each with where it ends."""
        log = cls(path, sync=sync)
        try:
            entries = log._read()
            log._check_file()
            log._check_machine([entry for entry, _ in entries])
            log._mark = LogMark.open(_beside(path))
            log._check_mark(log._mark)
            os.ftruncate(log._file, log.size)  # what was cut short was never answered
            log.opened()
            log.flush()  # or else a power cut would leave a log that ends as it was closed
        except BaseException:
            log.close(is_clean=False)
            raise
        return log, entries

    def _begin(self, head: LogHead) -> None:
        self.head = head
        self.append(head)
        self.opened()

    def _locked(self, path: Path, flags: int) -> int:
        try:
            file = os.open(path, flags, 0o600)  # it holds secrets: of its leases, and of a guard's coins
        except OSError as error:
            raise ConfigError(f"`log` must be a file that can be written, but {path} cannot: {error}.") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise JournalBusyError(f"An edge's log must be open once, but another one has {path} open.") from None
        return file

    def _read(self) -> list[tuple[AnyEntry, int]]:
        data = Path(self.path).read_bytes()
        found = list(read_entries(data))
        if not found or not isinstance(found[0][0], LogHead) or found[0][0].format != FORMAT:
            raise ConfigError(f"`log` must be the log of an edge, or a new file, but {self.path} is neither.")
        self.head, self.size = found[0][0], found[-1][1]
        return found

    def _check_file(self) -> None:
        if self.head.file != _identity(self._file):
            raise ConfigError(
                f"An edge's log must be the file that it was begun as, but {self.path} is a copy: two copies would "
                "spend one lease twice. Begin a new log, by a new name; the lease of the old one stays charged."
            )

    def _check_mark(self, mark: LogMark) -> None:
        if mark.name != self.head.mark or self.head.before + self.size < mark.reached:
            raise ConfigError(
                f"An edge's log must be as it was left, but {self.path} is an earlier state of it, such as from a "
                "backup, or could not be written to its end: its lease would be spent twice. Begin a new log, by a new "
                "name; the lease of this one stays charged."
            )

    def _check_machine(self, entries: list[AnyEntry]) -> None:
        before = next(entry for entry in reversed(entries) if isinstance(entry, Opened))
        if not (before.is_synced or before.boot == boot() or isinstance(entries[-1], Closed)):
            raise ConfigError(
                f"The machine must not have been switched off since {self.path} was written, but it was: rounds may be "
                "missing that were played. Begin a new log, by a new name; the lease of this one stays charged. "
                "`sync=True` writes every decision to the disk."
            )

    def opened(self) -> None:
        """Note which process goes on from here."""
        self.append(Opened(boot(), self._sync))

    def append(self, entry: Entry) -> bytes:
        """Write an entry, whole or not at all; returns its frame."""
        frame = framed(entry)
        if self._file < 0:
            raise JournalUnavailableError(f"An edge's log must be open to be written, but {self.path} is closed.")
        try:
            if os.write(self._file, frame) != len(frame):
                raise JournalFullError(f"There must be room for an edge's log, but {self.path} is full.")
            if self._sync:
                os.fdatasync(self._file)
            if self._mark is not None:
                self._mark.reach(self.head.before + self.size + len(frame))
        except BaseException as error:
            self._take_back()
            if isinstance(error, JournalError) or not isinstance(error, OSError):
                raise
            raise JournalFullError(
                f"An edge's log must be written before a decision is answered, but {self.path} cannot: {error}."
            ) from None
        self.size += len(frame)
        return frame

    def _take_back(self) -> None:
        """Remove what a failed write has left: it was not answered, so nobody played it."""
        try:
            os.ftruncate(self._file, self.size)
            if self._sync:
                os.fdatasync(self._file)
            if self._mark is not None:
                self._mark.reach(self.head.before + self.size)
        except OSError:
            if self._mark is not None:
                with contextlib.suppress(OSError):
                    self._mark.spoil()

    def handed_after(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Frames of what is to be handed in, from a place in the file on, and where each ends."""
        chunk = CHUNK
        while start < self.size:
            wanted = min(chunk, self.size - start)
            data, ended = os.pread(self._file, wanted, start), 0
            for entry, end in read_entries(data):
                if isinstance(entry, HANDED):
                    yield data[ended:end], start + end
                ended = end
            if not ended and (len(data) < wanted or start + wanted == self.size):
                raise JournalCorruptedError(f"{self.path} must hold what was written to it, but does not from {start}.")
            start, chunk = start + ended, CHUNK if ended else 2 * chunk

    def entry_at(self, start: int) -> AnyEntry:
        """The entry that begins there."""
        header = os.pread(self._file, FRAME.size, start)
        size = FRAME.unpack(header)[0] if len(header) == FRAME.size else 0
        found = next(read_entries(os.pread(self._file, FRAME.size + size, start)), None)
        if found is None:
            raise JournalCorruptedError(f"{self.path} must hold what was written to it, but does not at {start}.")
        return found[0]

    def flush(self) -> None:
        """Have the disk write everything."""
        try:
            os.fsync(self._file)
            if self._mark is not None:
                self._mark.flush()
        except OSError as error:
            raise JournalError(f"The disk must write an edge's log, {self.path}, but: {error}.") from None

    def replace(self, entries: list[Entry]) -> None:
        """Begin the file anew with these entries, all at once."""
        path = self.path.with_name(self.path.name + ".new")
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # of a process that was ended on the way
        made = EdgeLog(path, sync=self._sync, is_new=True)
        try:
            before = self.head.before + self.size
            made._begin(msgspec.structs.replace(self.head, file=_identity(made._file), before=before))
            for entry in entries:
                made.append(entry)
            made.flush()
            os.replace(path, self.path)
        except BaseException:
            made.close(is_clean=False)
            raise
        self._file, old = made._file, self._file
        self.head, self.size = made.head, made.size
        os.close(old)
        assert self._mark is not None
        with contextlib.suppress(OSError):  # either of the two is enough: the old file is behind the mark
            self._mark.reach(before + self.size)
            self._mark.flush()
            _flush_folder(path)

    def close(self, *, is_clean: bool = True) -> None:
        """Close the file; with everything on the disk if nothing went wrong."""
        if self._file < 0:
            return
        try:
            if is_clean:
                self.append(Closed())
                self.flush()
        finally:
            os.close(self._file)
            self._file = -1
            if self._mark is not None:
                self._mark.close()


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".mark")


def _flush_folder(path: Path) -> None:
    """Have the disk write the names in the folder of a file, where the file system can."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(folder)
    finally:
        os.close(folder)


def _identity(file: int) -> str:
    """What a copy does not share: the inode, and which of its files this is where the file system tells."""
    try:
        (generation,) = struct.unpack("l", fcntl.ioctl(file, GENERATION, b"\0" * 8))
    except OSError:
        generation = 0
    return f"{os.fstat(file).st_ino}.{generation}"


def boot() -> str:
    """Which time the machine was switched on."""
    try:
        return BOOT.read_text().strip()
    except OSError:  # nobody can tell, so every time is another one
        return secrets.token_hex(16)
