"""A journal in one append-only file, for an app's own process: no database, and a transaction in microseconds.

**The file** is a header and then frames, one for each commit, with the entries of all its transactions. Where to find
them by number and key is held in memory, and built when the file is opened. A frame begins with its length, a checksum
of its entries, and one of both, so a frame that was cut short by the end of the process, or of the machine's power, is
known and cut off: it was never acknowledged. Nothing in the file is overwritten. What is erased cannot be read from
then on, and leaves the disk when the file is written once more without it, and takes the old one's place (`forget`).

**With `sync`**, the default, transactions that wait together share a flush, and what was acknowledged survives the loss
of the machine's power. Without, a transaction is one write by the thread that calls: it takes microseconds, and
survives the end of the process, but not of the machine's power.

**One writer, one history.** The process that writes holds a lock on the file; a child that it forks shares the lock,
and may not write. Whoever spends from a lease by what the
file says must not spend it twice: from a copy, or from an earlier state of it. So the header names the file's inode,
which a copy does not share. A mark beside the file, `<path>.mark`, says how far it has come, and whether it was open
without `sync` when the machine was switched off. A file that is not as its last writer left it, or may lack what was
acknowledged, can be read and copied (`surefoot move`), and is never written to again.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder, FileJournal(Path(folder) / "app.log", sync=False) as journal:
...     created = journal.create("shop", b'{"alpha":0.05}', time=0.0)
...     journal.transact("shop", lambda t: t.append("decision", b'{"action":3}', time=1.0)).number
2
"""

import errno
import fcntl
import hashlib
import os
import secrets
import struct
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import astuple

from surefoot.errors import (
    JournalBusyError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
    JournalUnavailableError,
    OutcomeUnknownError,
)
from surefoot.journal.address import FILE_MAGIC, beside, flush_folder
from surefoot.journal.clock import ClockNote, boot_id
from surefoot.journal.contract import Transaction
from surefoot.journal.events import Event, Head, verified
from surefoot.journal.group_commit import GroupCommit, Job, stage
from surefoot.journal.memory import MemoryJournal, MemoryView
from surefoot.journal.private_text import PrivateText

T = TypeVar("T")
HEADER, MARK = struct.Struct("<QQ16sq"), struct.Struct("<16sQ16sd?")  # fields of Header and Mark
FRAME, SIZES = struct.Struct("<III"), struct.Struct("<II")  # length of the entries, their checksum, and that of both
WORD = struct.Struct("<I")  # a checksum, and the length of an entry before it
REACHED = struct.Struct("<Q")
START = len(FILE_MAGIC) + HEADER.size + WORD.size  # of the first frame
CHUNK = 1 << 20  # bytes that are read, or written once more, together
READ_AHEAD = 2048  # bytes that are read of an entry before its length is known
SEARCH = 1 << 22  # bytes behind a damaged frame in which a whole one is looked for
GARBAGE = 1 << 20  # bytes of removed attachments that a file may hold, or as many as of all else
GENERATION = 0x80087601  # FS_IOC_GETVERSION: which of the files that have had this inode
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class EventEntry(msgspec.Struct, array_like=True, tag="event", frozen=True, gc=False):
    """An event of an experiment."""

    name: str
    number: int
    kind: str
    time: float
    payload: bytes
    key: str | None
    previous: str
    hash: str


class TextEntry(msgspec.Struct, array_like=True, tag="text", frozen=True, gc=False):
    """The private text of an event."""

    name: str
    number: int
    alias: str | None
    person: str | None
    salt: bytes
    text: bytes


class AttachmentEntry(msgspec.Struct, array_like=True, tag="attachment", frozen=True, gc=False):
    """An attachment of an experiment."""

    name: str
    digest: str
    data: bytes


class Removal(msgspec.Struct, array_like=True, tag="removal", frozen=True, gc=False):
    """That something is gone: the private text of an event, the attachment of a digest, or the experiment (None)."""

    name: str
    what: int | str | None


Entry: TypeAlias = EventEntry | TextEntry | AttachmentEntry | Removal
PROBE = AttachmentEntry("", "", bytes(4096))  # is written to see whether there is room, and cut off again
encode = msgspec.msgpack.Encoder().encode
decode: Callable[[bytes], Entry] = msgspec.msgpack.Decoder(Entry).decode


class FileView(MemoryView):
    """An experiment of a file journal, which knows where in the file each entry begins."""

    def __init__(self, name: str, journal: "FileJournal") -> None:
        super().__init__(name, journal._lock, array("Q"))
        self._journal = journal

    def load(self, place: int) -> Any:
        """The event, text or attachment that begins there."""
        entry = self._journal._log.entry_at(place)
        if isinstance(entry, EventEntry):
            return Event(*astuple(entry)[1:])
        return PrivateText(*astuple(entry)[2:]) if isinstance(entry, TextEntry) else astuple(entry)[-1]

    def find(self, key: str) -> Event | None:
        """The event that carries this key, or has this alias."""
        event = super().find(key)
        return None if event is None else next(verified(self.name, [event]))

    def newest_of(self, kind: str, limit: int) -> list[Event]:
        """The newest events of a kind, newest first."""
        return [event for each in super().newest_of(kind, limit) for event in verified(self.name, [each])]

    def attachment(self, digest: str) -> bytes | None:
        """The attachment, if it still has the hash that it is named by."""
        with suppress(JournalCorruptedError):
            data = super().attachment(digest)
            return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None
        return None

    def holds(self, entry: Entry, place: int) -> bool:
        """Whether an entry that begins there is still part of the experiment."""
        if isinstance(entry, EventEntry):
            return entry.number <= len(self._events) and self._events[entry.number - 1] == place
        if isinstance(entry, TextEntry):
            return self._texts.get(entry.number) == place
        return isinstance(entry, AttachmentEntry) and self._attachments.get(entry.digest) == place

    def bytes_of(self, digest: str) -> int:
        """How much of the file an attachment takes; 0 where there is none."""
        return self._journal._log.length_at(self._attachments[digest]) if digest in self._attachments else 0


class FileJournal(MemoryJournal):
    """Experiments in one append-only file."""

    def __init__(self, path: Path | str, *, read_only: bool = False, sync: bool = True) -> None:
        super().__init__()
        self.path, self._read_only = Path(path), read_only
        self._has_erased, self._garbage = False, 0
        # Whether a frame is being written, and whether the index may hold a part of it.
        self._is_writing = self._is_applying = False
        self._log = LogFile(self.path, read_only=read_only)
        if read_only:
            self._lock = CurrentLock(self._lock, self._catch_up)
        try:
            self._load()
            self._jump = 0.0 if read_only else self._log.take_over(sync=sync)
            self._forget()  # what a process that was killed had not come to
        except BaseException:
            self._log.close()
            raise
        is_grouped = sync and not read_only
        self._group = GroupCommit(self._commit, name=f"journal {self.path.name}") if is_grouped else None

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """With `sync`, run `work` in the writing thread and share a flush; else run it here, and write it."""
        if self._group is None:
            return super().transact(name, work)
        self._log.refuse_fork()
        return self._group.transact(name, work, keys)

    def submit(
        self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = (), executor: Executor
    ) -> "Future[T]":
        """With `sync`, run `work` in the writing thread; else in one of the executor's."""
        self._log.refuse_fork()
        if self._group is None:
            return super().submit(name, work, executor=executor)
        return self._group.submit(name, work, keys)

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Remove an experiment, note that, and write the file once more without it."""
        super().remove(name, head=head, note=note)
        self.forget()

    def forget(self) -> None:
        """Write the file once more, without what was erased."""
        self._alone(self._forget)

    @property
    def knows_copies(self) -> bool:
        """Whether what is opened again cannot be an older copy: one would be refused."""
        return True

    @property
    def is_forgetting(self) -> bool:
        """Whether what was erased is still in the file, because there was no room to write it once more."""
        return self._has_erased

    def probe(self) -> dict[str, str]:
        """Write and flush a frame, and cut it off again; and note the clock."""
        self._alone(self._probe)
        return {}

    def clock_jump(self) -> float:
        """By how much the system's clock was set forward between the last process's note of it and the opening."""
        return self._jump

    def close(self) -> None:
        """Finish what is waiting, flush, and release the lock."""
        if self._group is not None:
            self._group.close()
        with self._turn:
            if self._chains is not None:
                super().close()
                self._log.close()

    def _alone(self, call: Callable[[], T]) -> T:
        if self._read_only:
            raise JournalReadOnlyError(f"A journal must be open for writing, but {self.path} was opened to be read.")
        self._log.refuse_fork()
        return super()._alone(call) if self._group is None else self._group.alone("", call)

    def _commit(self, group: list[Job]) -> None:
        self._keep([staged for _, staged in stage(group, self.view)])

    def _keep(self, transactions: Sequence[Transaction], *, removed: str | None = None) -> None:
        """Write what transactions gathered as one frame, and then apply it."""
        entries = [entry for transaction in transactions for entry in _entries(transaction)]
        if removed is not None:
            entries.append(Removal(removed, None))
        if entries:
            self._write(entries)
            if self._garbage > max(GARBAGE, self._log.size // 2):
                self._compact()

    def _write(self, entries: Sequence[Entry]) -> None:
        self._restore()
        self._is_writing = True
        try:
            places = self._log.append(entries)
            with self._lock:
                self._is_applying = True
                for entry, place in zip(entries, places, strict=True):
                    self._apply(self._open(), entry, place)
                self._is_applying = False
            self._log.acknowledge()
            self._is_writing = False
        except BaseException as error:  # also Ctrl-C
            raise self._explained(error) from error

    def _explained(self, error: BaseException) -> BaseException:
        """What a failed write means: nothing was written if it can be cut off, and otherwise nobody knows."""
        try:
            self._restore()
        except JournalError:
            return OutcomeUnknownError(f"{self.path}: {error}. Look up what you wrote by its key.")
        if not isinstance(error, OSError):
            return error
        if error.errno in FULL:
            return JournalFullError(f"{self.path}: {error}. Nothing was written: make room on the disk, and try again.")
        return JournalUnavailableError(f"{self.path}: {error}. Nothing was written.")

    def _restore(self) -> None:
        """Cut off what a failed write has left."""
        if not self._is_writing:
            return
        try:
            self._log.take_back()
        except OSError as error:
            raise JournalUnavailableError(f"{self.path}: a write failed, and cannot be undone: {error}.") from error
        if self._is_applying:
            with self._lock:
                self._load()
        self._is_writing = self._is_applying = False

    def _load(self) -> None:
        """Build the index from the whole file."""
        chains: dict[str, FileView] = {}
        self._has_erased, self._garbage = False, 0
        self._log.size = START
        self._follow(chains)
        self._replace(chains)

    def _follow(self, chains: dict[str, FileView]) -> None:
        """Take what follows in the file into the index."""
        for frame, end in self._log.frames(self._log.size):
            for entry, place in frame:
                self._apply(chains, entry, place)
            self._log.size = end

    def _replace(self, chains: dict[str, FileView]) -> None:
        """Use another index. Whoever holds a view sees what that has."""
        for name, view in self._open().items():
            view.replace(chains.get(name) or self._new_view(name))
            if name in chains:
                chains[name] = view
        self._chains = chains

    def _catch_up(self) -> None:
        """Read what a writer elsewhere has acknowledged since."""
        if self._chains is None:
            return
        if self._log.is_outdated:
            self._log.close()
            self._log = LogFile(self.path, read_only=True)
            self._load()
        self._follow(self._open())

    def _apply(self, chains: dict[str, FileView], entry: Entry, place: int) -> None:
        """Take an entry of the file into the index."""
        if entry.name not in chains:
            chains[entry.name] = self._new_view(entry.name)
        view = chains[entry.name]
        if isinstance(entry, EventEntry):
            view.put_event(Head(entry.number, entry.hash), entry.kind, entry.key, place)
        elif isinstance(entry, TextEntry):
            view.put_text(entry.number, entry.alias, entry.person, place)
        elif isinstance(entry, AttachmentEntry):
            view.put_attachment(entry.digest, place)
        elif isinstance(entry.what, str):
            self._garbage += view.bytes_of(entry.what)
            view.drop_attachment(entry.what)
        else:
            self._has_erased = True
            if entry.what is None:
                chains.pop(entry.name).replace(self._new_view(entry.name))
            else:
                view.drop_text(entry.what)

    def _forget(self) -> None:
        if self._has_erased and not self._read_only:
            self._compact()

    def _compact(self) -> None:
        """Write what the file still holds to another one, which takes its place; where there is no room, later."""
        with suppress(OSError):
            self._restore()
            new, chains = self._log.successor(), dict[str, FileView]()
            try:
                for batch in self._batches():
                    for entry, place in zip(batch, new.append(batch), strict=True):
                        self._apply(chains, entry, place)
                    new.acknowledge()
                new.replace(self._log)
            finally:
                if new.is_at(self.path):  # also where Ctrl-C came just then
                    with self._lock:
                        self._log, old = new, self._log
                        self._replace(chains)
                    new.inherit(old)
                    self._has_erased, self._garbage = False, 0
                else:
                    new.discard()

    def _batches(self) -> Iterator[list[Entry]]:
        """What is still part of an experiment, in order."""
        batch, size, views = list[Entry](), 0, self._open()
        for frame, end in self._log.frames(START):
            live = [entry for entry, place in frame if entry.name in views and views[entry.name].holds(entry, place)]
            batch += live
            size += end - frame[0][1] if live else 0
            if size > CHUNK:
                yield batch
                batch, size = [], 0
        yield batch

    def _probe(self) -> None:
        self._restore()
        self._is_writing = True
        try:
            self._log.append([PROBE])
            self._log.note_clock()
        except OSError as error:
            raise self._explained(error) from error
        self._restore()
        self._forget()

    def _new_view(self, name: str) -> FileView:
        return FileView(name, self)


class CurrentLock:
    """The lock of a reader, who first reads what a writer elsewhere has written since."""

    def __init__(self, lock: AbstractContextManager[Any], catch_up: Callable[[], None]) -> None:
        self._lock, self._catch_up = lock, catch_up

    def __enter__(self) -> None:
        self._lock.__enter__()
        try:
            self._catch_up()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(None, None, None)


class Header(NamedTuple):
    """What the file begins with.

    inode, generation: of the file that it was written as
    mark:              name of the mark beside it
    before:            bytes that had been acknowledged when it took another file's place, less those that it began with
    """

    inode: int
    generation: int
    mark: bytes
    before: int = 0

    def packed(self) -> bytes:
        """The bytes, with their checksum."""
        data = FILE_MAGIC + HEADER.pack(*self)
        return data + WORD.pack(zlib.crc32(data))


class Mark(NamedTuple):
    """What the file beside a file journal says.

    name:         as in the header
    reached:      bytes that have been acknowledged, since the journal was begun; never ahead of the file
    boot, offset: a note of the clock (`surefoot.journal.clock`)
    is_volatile:  whether a writer without `sync` has not closed the journal
    """

    name: bytes
    reached: int
    boot: bytes
    offset: float
    is_volatile: bool

    @property
    def clock(self) -> ClockNote:
        """The note of the clock."""
        return ClockNote(self.boot.hex(), self.offset)

    def noting(self, clock: ClockNote) -> "Mark":
        """With another note of the clock."""
        return self._replace(boot=bytes.fromhex(clock.boot), offset=clock.offset)


class LogFile:
    """The file, its lock, and the mark beside it; `size` is how much of it is whole and acknowledged."""

    def __init__(self, path: Path, *, read_only: bool = False, is_successor: bool = False) -> None:
        self.path, self.size, self._end, self._process = path, START, START, os.getpid()
        self._read_only, self._is_writer, self._sync = read_only, False, False
        self._mark, self._file = -1, _open(path) if read_only else _open_locked(path)
        self._header = Header(*_identity(self._file), secrets.token_bytes(16))
        try:
            if not is_successor:
                self._read_header()
        except BaseException:
            self.close()
            raise

    def take_over(self, *, sync: bool) -> float:
        """Go on with a file that was read, as its writer; by how much the system's clock was set forward since."""
        last, now = self._check_history(), ClockNote.now()
        try:
            os.ftruncate(self._file, self.size)  # what was cut short was never acknowledged
            os.fsync(self._file)
            self._put_mark(last._replace(reached=self._header.before + self.size, is_volatile=not sync).noting(now))
        except OSError as error:
            raise JournalUnavailableError(f"{self.path}: {error}. It cannot be written.") from error
        self._is_writer, self._sync = True, sync
        return now.jump_since(last.clock)

    def refuse_fork(self) -> None:
        """Raise in a child that was forked after the file was opened: both would spend one lease."""
        if os.getpid() != self._process:
            raise JournalUnavailableError(
                f"A file journal must be written by the process that opened it, but {self.path} was opened before a "
                "fork. Open another one in the child, by a new name."
            )

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Write a frame behind all that is acknowledged, and flush it with `sync`; where each entry begins."""
        parts, places, at = list[bytes](), list[int](), self.size + FRAME.size
        for entry in entries:
            data = encode(entry)
            parts += (WORD.pack(len(data)), data)
            places.append(at)
            at += WORD.size + len(data)
        body = b"".join(parts)
        sizes = SIZES.pack(len(body), zlib.crc32(body))
        frame = b"%b%b%b" % (sizes, WORD.pack(zlib.crc32(sizes)), body)
        if os.pwrite(self._file, frame, self.size) != len(frame):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._sync:
            os.fdatasync(self._file)
        self._end = at
        return places

    def acknowledge(self) -> None:
        """Make the last frame part of the file."""
        self.size = self._end
        if self._mark >= 0:
            os.pwrite(self._mark, REACHED.pack(self._header.before + self.size), len(self._header.mark))

    def take_back(self) -> None:
        """Cut off what follows the last frame that was acknowledged."""
        os.ftruncate(self._file, self.size)
        if self._sync:
            os.fsync(self._file)

    def note_clock(self) -> None:
        """Write down what the system's clock says, and have the disk write everything."""
        os.fsync(self._file)
        mark = self._read_mark()
        if mark is not None:
            self._put_mark(mark.noting(mark.clock.renewed()))

    def frames(self, start: int) -> Iterator[tuple[list[tuple[Entry, int]], int]]:
        """The entries of each whole frame from there on, with where they begin, and where it ends.

        A last one that was cut short is left out: it was never acknowledged. Any other is damage.
        """
        data, at, end = b"", 0, self._readable()
        while start < end:
            body = _body(data, at)
            if body is None:  # not in memory, or not as a whole
                data, at = os.pread(self._file, CHUNK, start), 0
                if len(data) >= FRAME.size and FRAME.unpack_from(data)[0] + FRAME.size > len(data):
                    data = os.pread(self._file, min(FRAME.unpack_from(data)[0] + FRAME.size, end - start), start)
                body = _body(data, at)
            if body is None or start + FRAME.size + len(body) > end:
                self._refuse_damage(start, end)
                return
            yield self._entries(body, start + FRAME.size), start + FRAME.size + len(body)
            start, at = start + FRAME.size + len(body), at + FRAME.size + len(body)

    def entry_at(self, place: int) -> Entry:
        """The entry that begins there."""
        data = os.pread(self._file, READ_AHEAD, place)
        end = WORD.size + int.from_bytes(data[: WORD.size], "little")
        data = data[:end] if end <= len(data) else os.pread(self._file, end, place)
        return self._decoded(data[WORD.size :], place)

    def length_at(self, place: int) -> int:
        """How many bytes the entry that begins there has."""
        return int.from_bytes(os.pread(self._file, WORD.size, place), "little")

    @property
    def is_outdated(self) -> bool:
        """Whether another file has taken its place, or it was cut off before what was read of it."""
        return not self.is_at(self.path) or self._readable() < self.size

    def is_at(self, path: Path) -> bool:
        """Whether the file at that path is this one."""
        with suppress(FileNotFoundError):
            return os.stat(path).st_ino == os.fstat(self._file).st_ino
        return False

    def successor(self) -> "LogFile":
        """A file that is to take the place of this one."""
        path = beside(self.path, ".new")
        path.unlink(missing_ok=True)  # of a process that was killed on the way
        return LogFile(path, is_successor=True)

    def replace(self, other: "LogFile") -> None:
        """Put this file, which holds all that counts of the other, in the place of that."""
        # As if it had grown as much: the mark says the same of both, whichever of them a power cut leaves there.
        before = other._header.before + other.size - self.size
        self._header = self._header._replace(mark=other._header.mark, before=before)
        os.pwrite(self._file, self._header.packed(), 0)
        os.fsync(self._file)
        os.replace(self.path, other.path)

    def inherit(self, other: "LogFile") -> None:
        """Go on in the place of the other, which is closed."""
        self.path, self._is_writer, self._sync = other.path, other._is_writer, other._sync
        self._mark, other._mark = other._mark, -1
        other.close()
        flush_folder(self.path)

    def discard(self) -> None:
        """Remove a file that takes nobody's place."""
        self.close()
        with suppress(OSError):
            self.path.unlink()

    def close(self) -> None:
        """Close the files; after this process has written to them, with everything on the disk."""
        mark = self._read_mark()
        if self._is_writer and mark is not None and os.getpid() == self._process:
            with suppress(OSError):  # then the next process finds it as after a kill
                os.fsync(self._file)
                self._put_mark(mark._replace(is_volatile=False))
        for file in (self._mark, self._file):
            if file >= 0:
                os.close(file)
        self._mark = self._file = -1

    def _read_header(self) -> None:
        """Read how the file begins, or begin it."""
        data, size = os.pread(self._file, START, 0), os.fstat(self._file).st_size
        is_whole = len(data) == START and data[-WORD.size :] == WORD.pack(zlib.crc32(data[: -WORD.size]))
        if not self._read_only and FILE_MAGIC.startswith(data[: len(FILE_MAGIC)]) and size <= START and not is_whole:
            self._begin()
        elif not data.startswith(FILE_MAGIC):
            raise JournalSchemaError(f"{self.path} must be a journal, but it is another kind of file.")
        elif not is_whole:
            raise JournalCorruptedError(f"The first {START} bytes of {self.path} are damaged: restore a backup.")
        else:
            self._header = Header._make(HEADER.unpack_from(data, len(FILE_MAGIC)))
            with suppress(OSError):  # a copy has none
                self._mark = os.open(beside(self.path, ".mark"), os.O_RDONLY if self._read_only else os.O_RDWR)

    def _begin(self) -> None:
        """Write the header of a new file, and its mark; one that another journal has left there is gone then."""
        try:
            self._mark = os.open(beside(self.path, ".mark"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            self._put_mark(Mark(self._header.mark, START, b"", 0.0, False))
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, self._header.packed(), 0)
            os.fsync(self._file)
            flush_folder(self.path)
        except OSError as error:
            raise JournalUnavailableError(f"{self.path}: {error}. It cannot be begun there.") from error

    def _read_mark(self) -> Mark | None:
        """The mark of this file; None where there is none."""
        data = os.pread(self._mark, MARK.size, 0) if self._mark >= 0 else b""
        mark = Mark._make(MARK.unpack(data)) if len(data) == MARK.size else None
        return mark if mark is not None and mark.name == self._header.mark else None

    def _put_mark(self, mark: Mark) -> None:
        os.pwrite(self._mark, MARK.pack(*mark), 0)
        os.fsync(self._mark)

    def _check_history(self) -> Mark:
        """The mark of a file that is as its last writer left it."""
        mark = self._read_mark()
        if self._header[:2] != _identity(self._file):
            raise self._refusal("is a copy")
        if mark is None:
            raise self._refusal("has lost the mark that stood beside it")
        if self._header.before + self.size < mark.reached:
            raise self._refusal("is an earlier state of itself, such as from a backup")
        if mark.is_volatile and mark.clock.boot != boot_id():
            raise self._refusal("was open without `sync` when the machine was switched off, and may lack decisions")
        return mark

    def _refusal(self, why: str) -> JournalReadOnlyError:
        return JournalReadOnlyError(
            f"A file journal must be as its last writer left it, but {self.path} {why}: a lease would be spent twice. "
            "Read it with `read_only=True`, copy it with `surefoot move`, or begin another one, by a new name."
        )

    def _readable(self) -> int:
        """Where it ends; for a reader, what the writer has acknowledged."""
        mark, size = self._read_mark() if self._read_only else None, os.fstat(self._file).st_size
        return size if mark is None else min(size, mark.reached - self._header.before)

    def _refuse_damage(self, at: int, end: int) -> None:
        """Refuse a frame that is not whole, unless it is the last one."""
        mark, rest = self._read_mark(), os.pread(self._file, min(SEARCH, end - at), at)
        was_acknowledged = mark is not None and at < mark.reached - self._header.before
        if was_acknowledged or any(_body(rest, n) is not None for n in range(1, len(rest) - FRAME.size)):
            raise JournalCorruptedError(f"The frame at byte {at} of {self.path} is damaged: restore a backup.")

    def _entries(self, body: bytes, first: int) -> list[tuple[Entry, int]]:
        entries, at = list[tuple[Entry, int]](), 0
        while at < len(body):
            end = at + WORD.size + WORD.unpack_from(body, at)[0]
            entries.append((self._decoded(body[at + WORD.size : end], first + at), first + at))
            at = end
        return entries

    def _decoded(self, data: bytes, place: int) -> Entry:
        try:
            return decode(data)
        except msgspec.MsgspecError as error:
            raise JournalCorruptedError(f"The entry at byte {place} of {self.path} is damaged: {error}.") from None


def _entries(transaction: Transaction) -> Iterator[Entry]:
    """What transactions gathered, in the order in which it is to be applied."""
    name = transaction.name
    for event in transaction.events:
        yield EventEntry(name, *astuple(event))
    for number, text in transaction.texts.items():
        yield Removal(name, number) if text is None else TextEntry(name, number, *astuple(text))
    for digest, data in transaction.attachments.items():
        yield Removal(name, digest)
        if data is not None:
            yield AttachmentEntry(name, digest, data)


def _body(data: bytes, at: int) -> bytes | None:
    """The entries of the frame that begins there; None where it is not whole."""
    if at + FRAME.size > len(data):
        return None
    length, checksum, guard = FRAME.unpack_from(data, at)
    if zlib.crc32(data[at : at + SIZES.size]) != guard:
        return None
    body = data[at + FRAME.size : at + FRAME.size + length]
    return body if len(body) == length and zlib.crc32(body) == checksum else None


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise JournalNotFoundError(f"There must be a journal at {path}, but there is no such file or folder.") from None
    except OSError as error:
        raise JournalUnavailableError(f"{path}: {error}. Check its permissions.") from None


def _open_locked(path: Path) -> int:
    """Open a file that no other process writes, and make it if there is none."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # it holds what people said, and secrets of leases
    except FileNotFoundError:
        raise JournalNotFoundError(f"There must be a journal at {path}, but there is no such file or folder.") from None
    except OSError as error:
        raise JournalUnavailableError(f"{path}: {error}. Check the permissions of the file and its folder.") from None
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(file).st_ino:  # else another file has just taken its place
            return file
    os.close(file)
    raise JournalBusyError(
        f"One process may write a file journal, but another has {path} open. Close it there, or open this one with "
        "`read_only=True`."
    )


def _identity(file: int) -> tuple[int, int]:
    """What a copy does not share: the inode, and which of its files this is where the file system tells."""
    try:
        (generation,) = struct.unpack("L", fcntl.ioctl(file, GENERATION, b"\0" * 8))
    except OSError:
        generation = 0
    return os.fstat(file).st_ino, generation
