"""What an edge writes down: one frame per entry, its length, its checksum and that of both first.

Frames of rounds, rewards and leases are handed in as they were written; the others stay in the log.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import TypeAlias

import msgspec
import numpy as np

from surefoot.arrays import Matrix
from surefoot.edge.bundle import Bundle
from surefoot.errors import InputError, JournalCorruptedError

FRAME = struct.Struct("<III")
SIZED = struct.Struct("<II")
LONGEST = 1 << 28  # bytes of one entry


class Entry(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """One entry."""


class Decided(Entry, tag="decided", frozen=True):
    """A round as it was decided; `rows` are those of all actions, `is_expired` if it was the baseline's for that.

    `decision_id` is the caller's own, if there is one.
    """

    round: int
    moment: float
    rows: bytes
    actions: int
    names: list[str] | None
    baseline: int
    known: float | list[float] | None
    action: int
    is_learner: bool
    is_expired: bool
    decision_id: str | None = None

    def matrix(self) -> Matrix:
        """One row per action."""
        if self.actions < 1 or not self.rows or len(self.rows) % (8 * self.actions):
            raise InputError(f"`rows` must be those of {self.actions} actions, but has {len(self.rows)} bytes.")
        return np.frombuffer(self.rows).reshape(self.actions, -1)


class Drawn(Entry, tag="drawn", frozen=True):
    """A guard's round; its coin follows from the lease's secret. Actions are JSON.

    `share` is the probability of the proposal, `is_expired` if it was the baseline's for that, `decision_id` the
    caller's own, if there is one.
    """

    round: int
    moment: float
    baseline: bytes
    proposal: bytes
    prediction: float | dict[str, float] | None
    share: float
    is_learner: bool
    is_expired: bool
    decision_id: str | None = None

    @property
    def played(self) -> bytes:
        """The action of the side that the coin chose."""
        return self.proposal if self.is_learner else self.baseline


class Rewarded(Entry, tag="rewarded", frozen=True):
    """A reward, of a guard by metric, or None where the round was abandoned."""

    round: int
    moment: float
    value: float | dict[str, float] | None


class VoidedEntry(Entry, tag="voided", frozen=True):
    """A round in which another action was played than was decided."""

    round: int
    moment: float
    action: int


class PlayedEntry(Entry, tag="played", frozen=True):
    """A guard's round in which another action was played than its coin chose: JSON, or None for the baseline."""

    round: int
    moment: float
    action: bytes | None


class LeaseBegan(Entry, tag="lease", frozen=True):
    """From here on this lease holds."""

    lease: int
    moment: float


class LeaseHandedIn(Entry, tag="ended", frozen=True):
    """The rounds of the lease are complete; `is_untimed` if the clock was wrong."""

    lease: int
    moment: float
    is_untimed: bool


class LogHead(Entry, tag="log", frozen=True):
    """Whose log it is, the secret that its bundles are bound to, and the file that it was written as.

    mark:   name of the mark beside the file
    before: bytes of the files that this one took the place of
    """

    format: int
    experiment: str
    shard: str
    token: str
    file: str
    mark: str
    before: int


class Received(Entry, tag="bundle", frozen=True):
    """A bundle, before the lease begins."""

    bundle: Bundle


class Opened(Entry, tag="opened", frozen=True):
    """A process goes on with the log; `boot` tells whether the machine was switched off since."""

    boot: str
    is_synced: bool


class Timed(Entry, tag="timed", frozen=True):
    """By the clock that nobody can set, since the machine was switched on: what to add for the time, and the expiry."""

    boot: str
    offset: float
    until: float


class Acknowledged(Entry, tag="kept", frozen=True):
    """The service has taken in so many entries in all; the head of its chain is the receipt."""

    entries: int
    number: int
    hash: str


class Saved(Entry, tag="saved", frozen=True):
    """Everything before, in short: the shard, what the service has taken in, and the frames that it has not.

    `rounds` is what is remembered of rounds beside the shard.
    """

    shard: bytes
    entries: int
    follows: int
    moment: float
    unsent: list[bytes]
    rounds: bytes = b""


class Closed(Entry, tag="closed", frozen=True):
    """The process has closed the log, and the disk has everything."""


AnyDecided: TypeAlias = Decided | Drawn
HandedEntry: TypeAlias = AnyDecided | Rewarded | VoidedEntry | PlayedEntry | LeaseBegan | LeaseHandedIn
AnyEntry: TypeAlias = HandedEntry | LogHead | Received | Opened | Timed | Acknowledged | Saved | Closed
HANDED = (Decided, Drawn, Rewarded, VoidedEntry, PlayedEntry, LeaseBegan, LeaseHandedIn)
_encode = msgspec.msgpack.Encoder().encode
_decode_any = msgspec.msgpack.Decoder(AnyEntry).decode
_decode_handed = msgspec.msgpack.Decoder(HandedEntry).decode


def framed(entry: Entry) -> bytes:
    """An entry as a frame."""
    payload = _encode(entry)
    sized = SIZED.pack(len(payload), zlib.crc32(payload))
    return b"%b%b%b" % (sized, zlib.crc32(sized).to_bytes(4, "little"), payload)


def frames(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The payload of each whole frame, and where it ends; a last one that was cut short is left out."""
    start = 0
    while start + FRAME.size <= len(data):
        size, checksum, guard = FRAME.unpack_from(data, start)
        end = start + FRAME.size + size
        payload = data[start + FRAME.size : end]
        is_sized = size <= LONGEST and zlib.crc32(data[start : start + SIZED.size]) == guard
        if is_sized and end > len(data):
            return
        if not is_sized or zlib.crc32(payload) != checksum:
            if not any(data[end - 1 if is_sized else start + FRAME.size :]):
                return  # a disk may have kept the length of what it had no time to write
            raise JournalCorruptedError(f"The frame at byte {start} must have its checksum, but was altered.")
        yield payload, end
        start = end


def read_entries(data: bytes) -> Iterator[tuple[AnyEntry, int]]:
    """The entries of a log, and where each ends."""
    try:
        for payload, end in frames(data):
            yield _decode_any(payload), end
    except msgspec.MsgspecError as error:
        raise JournalCorruptedError(f"An edge's log must hold its entries, but: {error}.") from None


def read_handed(data: bytes) -> list[HandedEntry]:
    """Entries that were handed in, all of them whole."""
    try:
        whole = list(frames(data))
        found: list[HandedEntry] = [_decode_handed(payload) for payload, _ in whole]
    except (msgspec.MsgspecError, JournalCorruptedError) as error:
        raise InputError(f"`entries` must be frames of an edge's log, but: {error}.") from None
    end = whole[-1][1] if whole else 0
    if end != len(data):
        raise InputError(f"`entries` must be whole frames, but {len(data) - end} bytes are left over.")
    return found
