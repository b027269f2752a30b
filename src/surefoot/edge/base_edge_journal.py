"""An edge's shard and its log, which never differ: what is played was written, and what was written is played again.

A process that goes on with a log decides every round of it once more, by the same leases, and must come to the same.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

import msgspec

from surefoot.edge.bundle import Bundle, OpenedBank, OpenedBundle
from surefoot.edge.edge_entries import (
    HANDED,
    Acknowledged,
    AnyDecided,
    AnyEntry,
    Decided,
    Drawn,
    Entry,
    LeaseBegan,
    LeaseHandedIn,
    Received,
    Rewarded,
    Saved,
    Timed,
)
from surefoot.edge.edge_log import EdgeLog, boot
from surefoot.edge.edge_messages import EdgeLease
from surefoot.edge.edge_rounds import BaseEdgeRounds
from surefoot.errors import ConfigError, JournalCorruptedError, JournalError, JournalUnavailableError, SurefootError
from surefoot.experiment.snapshots import pack
from surefoot.journal.signatures import PublicKey
from surefoot.leases import GuardShard, Shard

LARGEST_LOG = 1 << 26  # bytes; beyond, it begins anew with the next lease


class Part(NamedTuple):
    """Entries to be sent: how many, as frames, and where the next ones begin in the file."""

    entries: int
    data: bytes
    end: int


S = TypeVar("S", Shard, GuardShard)
R = TypeVar("R", bound=BaseEdgeRounds[Any])
B = TypeVar("B", OpenedBundle, OpenedBank)


class BaseEdgeJournal(ABC, Generic[S, R, B]):
    """The shard at the end of its log; `error` once that cannot be written any more."""

    def __init__(self, log: EdgeLog, key: PublicKey, experiment: str, shard: str) -> None:
        self._log, self._key = log, key
        self.experiment, self.name, self.token = experiment, shard, log.head.token
        self.error: SurefootError | None = None
        self.bundle: B
        self.shard: S
        self.rounds: R
        self._places, self._before = array("Q"), 0  # where rounds stand in the file, and how many came before it
        self._handed_in = 0  # rounds of earlier leases
        self.actions: bytes | None = None
        self.timed: Timed | None = None  # of the present lease
        self.moment = 0.0  # nothing is written before
        self.follows, self.kept = 1, 0  # event and number of entries that the service has
        self._carried: list[bytes] = []  # entries from before the file began, not sent
        self._position = 0  # where entries begin in the file that were not sent
        self.handed = 0  # entries to be handed in, sent or not

    @classmethod
    def open(cls, path: Path, key: PublicKey, *, experiment: str, shard: str, token: str, sync: bool) -> Self:
        """A new log with this token, or the log of an earlier process, which has its own."""
        if not path.exists() or (path.is_file() and not path.stat().st_size):  # made, and the process was ended
            log = EdgeLog.begin(path, experiment=experiment, shard=shard, token=token, sync=sync)
            return cls(log, key, experiment, shard)
        log, entries = EdgeLog.resume(path, sync=sync)
        try:
            if (log.head.experiment, log.head.shard) != (experiment, shard):
                raise ConfigError(
                    f"`log` must be that of edge {shard!r} of {experiment!r}, but {path} is of {log.head.shard!r} of "
                    f"{log.head.experiment!r}."
                )
            journal = cls(log, key, experiment, shard)
            journal._replay(entries)
        except BaseException:
            log.close(is_clean=False)
            raise
        return journal

    @property
    def is_joined(self) -> bool:
        """Whether there is a lease yet."""
        return hasattr(self, "shard")

    @property
    def unsent(self) -> int:
        """Entries that the service does not have."""
        return self.handed - self.kept

    def write(self, entry: Entry) -> None:
        """Append an entry, after which the shard is where it says; where that fails, nothing counts any more."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        start = self._log.size
        try:
            self._log.append(entry)
        except JournalError as error:
            self.error = error
            raise
        except Exception as error:
            self.error = JournalError(f"An entry of an edge's log must be plain data, but: {error}.")
            raise
        if isinstance(entry, HANDED):
            self.handed += 1
            self.moment = entry.moment
        if isinstance(entry, (Decided, Drawn)):
            self._places.append(start)

    def close_windows(self, now: float) -> None:
        """Learn what is due before something is decided; nothing is written before that moment from then on."""
        self.moment = max(self.moment, now)
        self.rounds.close(now)

    def settle(self, entry: Rewarded) -> None:
        """Take a reward, or abandon the round."""
        self.write(entry)
        self._settle(entry)

    def _settle(self, entry: Rewarded) -> None:
        self.rounds.close(entry.moment)
        self.rounds.settle(entry, self.bundle.head.reward_bounds)

    def _decided(self, round_: int) -> AnyDecided | None:
        """A round as it was decided; None if that was before the file began."""
        place = round_ - self._before - 1
        if not 0 <= place < len(self._places):
            return None
        found = self._log.entry_at(self._places[place])
        assert isinstance(found, (Decided, Drawn))
        return found

    def is_leased(self, round_: int) -> bool:
        """Whether a round counts in the present lease."""
        return self.shard.policy.is_leased and round_ > self._handed_in

    def end_lease(self, now: float, *, is_untimed: bool) -> None:
        """From now on only the baseline plays, until the next lease."""
        entry = LeaseHandedIn(self.shard.lease.number, now, is_untimed)
        self.write(entry)
        self._end(entry)

    def _end(self, entry: LeaseHandedIn) -> None:
        self.rounds.close(entry.moment)
        self.shard.hand_in(entry.moment)
        self._handed_in = self.shard.rounds

    def time(self, offset: float, until: float) -> None:
        """Note the time, and when the lease expires, for a process that goes on with the log."""
        self.timed = Timed(boot(), offset, until)
        self.write(self.timed)

    def accept(self, bundle: Bundle, now: float) -> None:
        """Go on under a lease, if it is the next one, is signed and has not expired."""
        opened = self.opened(bundle)
        number = self.shard.lease.number + 1 if self.is_joined else 1
        if opened.head.lease.number != number or (self.is_joined and self.shard.policy.is_leased):
            raise ConfigError(
                f"Lease {number} must be next for edge {self.name!r}, after the one before was handed in, but got "
                f"lease {opened.head.lease.number}. A lease is used once."
            )
        if now >= opened.head.expires:
            raise ConfigError(
                f"A lease must not have expired, but this one did at {opened.head.expires:.0f}, and it is {now:.0f}. "
                "Set the clock, or ask for a new one."
            )
        self.write(Received(bundle))
        self.timed = None
        began = LeaseBegan(number, max(now, self.moment, opened.head.lease.since))
        self.write(began)
        self._begin(opened, began.moment)
        if self._log.size > LARGEST_LOG:
            self._save()

    @abstractmethod
    def opened(self, bundle: Bundle) -> B:
        """A bundle for this log, if it is signed and whole."""

    def _begin(self, opened: B, moment: float) -> None:
        self.bundle = opened
        if opened.bundle.actions is not None:
            self.actions = opened.bundle.actions
        if self.is_joined:
            self.rounds.close(moment)
            self._renew(opened)
            self.rounds.forget_settled()
        else:
            self._start(opened)

    @abstractmethod
    def _start(self, opened: B) -> None:
        """Begin under a first lease."""

    @abstractmethod
    def _renew(self, opened: B) -> None:
        """Go on under a lease."""

    @abstractmethod
    def _resume(self, opened: B, saved: Saved) -> None:
        """Go on where a file was begun anew."""

    @abstractmethod
    def _do_again(self, entry: Any) -> None:
        """Decide or void once more."""

    def part(self, size: int) -> Part:
        """The next entries that were not sent, about so many bytes of them."""
        found, data, end = 0, bytearray(), self._position
        for frame, frame_end in self._unsent():
            if data and len(data) + len(frame) > size:
                break
            data += frame
            found, end = found + 1, frame_end
        return Part(found, bytes(data), end)

    def _unsent(self) -> Iterator[tuple[bytes, int]]:
        for frame in self._carried:
            yield frame, self._position
        yield from self._log.handed_after(self._position)

    def acknowledged(self, part: Part, answer: EdgeLease) -> None:
        """Note what the service has taken in."""
        self.follows = answer.number
        if part.entries:
            del self._carried[: part.entries]
            self._position, self.kept = part.end, self.kept + part.entries
            self.write(Acknowledged(self.kept, answer.number, answer.hash))

    def _save(self) -> None:
        """Begin the file anew: what was handed in is the service's to keep."""
        left = [frame for frame, _ in self._unsent()]
        saved = Saved(pack(self.shard.state()), self.kept, self.follows, self.moment, left, self.rounds.kept())
        bundle = msgspec.structs.replace(self.bundle.bundle, actions=self.actions)
        try:
            self._log.replace([Received(bundle), saved])
        except (JournalError, OSError):  # a full disk: the file that there is goes on
            return
        self._carried, self._position = left, self._log.size
        self._places, self._before = array("Q"), self.shard.rounds

    def _replay(self, entries: list[tuple[AnyEntry, int]]) -> None:
        """Come to where the log ends."""
        waiting: B | None = None
        handed = list[int]()  # where each entry ends that is to be handed in
        before = start = 0  # such entries before the file began, and where an entry begins
        for entry, end in entries:
            if isinstance(entry, Received):
                waiting, self.timed = self.opened(entry.bundle), None
            elif isinstance(entry, Timed):
                self.timed = entry if entry.boot == boot() else None
            elif isinstance(entry, Acknowledged):
                self.kept, self.follows = entry.entries, entry.number
            elif isinstance(entry, Saved) and waiting is not None:
                self.bundle, self.actions, self.moment = waiting, waiting.bundle.actions, entry.moment
                self._resume(waiting, entry)
                self._before = self._handed_in = self.shard.rounds
                self.kept, self.follows, self._carried = entry.entries, entry.follows, list(entry.unsent)
                before, self._position = entry.entries + len(entry.unsent), end
            elif isinstance(entry, HANDED):
                self._take_again(entry, waiting)
                self.moment = entry.moment
                handed.append(end)
                if isinstance(entry, (Decided, Drawn)):
                    self._places.append(start)
            start = end
        self.handed = before + len(handed)
        del self._carried[: max(0, len(self._carried) - max(0, before - self.kept))]
        if self.kept > before:
            self._position = handed[self.kept - before - 1]

    def _take_again(self, entry: Any, waiting: B | None) -> None:
        if isinstance(entry, LeaseBegan):
            if waiting is None or waiting.head.lease.number != entry.lease:
                raise JournalCorruptedError(f"Lease {entry.lease} began, but the log does not hold it.")
            self._begin(waiting, entry.moment)
        elif isinstance(entry, LeaseHandedIn):
            self._end(entry)
        elif isinstance(entry, Rewarded):
            self._settle(entry)
        else:
            self.rounds.close(entry.moment)
            self._do_again(entry)

    def _foreign(self, entry: AnyEntry) -> JournalCorruptedError:
        return JournalCorruptedError(f"{self._log.path} must be of one kind of edge, but holds {entry!r:.80} as well.")

    def _altered(self, entry: AnyDecided, told: str) -> JournalCorruptedError:
        return JournalCorruptedError(
            f"Round {entry.round} of {self._log.path} must be what its lease decides, but {told}. The log was altered."
        )

    def leave_to_parent(self) -> None:
        """In a fork: the log is the parent's, or two processes would spend one lease."""
        self.error = JournalUnavailableError(
            "An edge must be used by the process that opened it, but this one is a fork of it. Open an edge in each "
            "process, with a log and a name of its own."
        )
        self._log.close(is_clean=False)

    def close(self) -> None:
        """Close the log."""
        is_clean = self.error is None
        if self.error is None:
            self.error = JournalUnavailableError("An edge must be open, but this one was closed.")
        self._log.close(is_clean=is_clean)
