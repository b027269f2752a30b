"""The coins of a guard in an experiment: they follow from secrets that the chain commits to before the first of them.

Whoever draws a coin again, because the first did not suit, would need another secret: the audit computes every coin
once more when the secret is revealed, which is when its block is over. Each block but a process's first is committed to
while the one before it still lasts, so nobody who chooses its secret knows a request that its coins will be about; the
audit counts the blocks of which that is not so. What stays invisible is a request that was dropped, or held back until
its turn suited.

A secret lies outside of the journal until then, in a file that its owner alone may read, so that the blocks of a
process which was killed are revealed by the next one. Each process has blocks of its own.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from surefoot.errors import JournalUnavailableError
from surefoot.journal import Journal
from surefoot.journal.address import beside, flush_folder
from surefoot.policies.coin import coin_of
from surefoot.rounds import decode, events
from surefoot.rounds.events import BLOCK, CoinBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from surefoot.experiment.verbs import Turn

NONE = float("nan")
MOST_BLOCKS = 1000  # looked at, the newest
PART_AHEAD = 10  # of a block, before whose last such part the next one begins


class Secret(msgspec.Struct, array_like=True):
    """The secret of a block, as its file holds it: one in each line."""

    experiment: str
    secret: bytes

    @property
    def commitment(self) -> str:
        """What the chain may hold before the coins are drawn."""
        return hashlib.sha256(self.secret).hexdigest()


class SecretFile:
    """The secrets of one process that are not revealed yet; without a folder they are in memory alone."""

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._file = folder, -1
        self._kept: list[Secret] = []
        self._path: Path | None = None

    def new(self, experiment: str) -> Secret:
        """A new secret, which is on the disk before anything follows from it."""
        secret = Secret(experiment, secrets.token_bytes(32))
        if self._folder is not None:
            self._write(self._folder, secret)
        self._kept.append(secret)
        return secret

    def _write(self, folder: Path, secret: Secret) -> None:
        try:
            if self._path is None:
                folder.mkdir(mode=0o700, exist_ok=True)
                path = folder / secrets.token_hex(8)
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
                # For as long as the process lives: nobody else takes its blocks to be over.
                fcntl.flock(self._file, fcntl.LOCK_EX)
                flush_folder(path)
                self._path = path
            # On a line of its own, whatever a full disk has left of the one before.
            line = b"\n" + msgspec.json.encode(secret) + b"\n"
            if os.write(self._file, line) < len(line):
                raise OSError("the disk took a part of it")
            os.fsync(self._file)
        except OSError as error:
            raise JournalUnavailableError(
                f"The secrets of coins must be kept where their owner alone reads them, but {folder}: {error}. "
                "Nothing was decided: make room there, or name another folder (`secrets`)."
            ) from None

    def over(self, experiment: str, in_use: Sequence[Secret | None]) -> list[Secret]:
        """Secrets of an experiment whose blocks are over: this process's own but those in use, and those of others
        that have ended.
        """
        own = [one for one in self._kept if one.experiment == experiment and one not in in_use]
        return own + [one for path in self._others() for one in _read(path) if one.experiment == experiment]

    def _others(self) -> list[Path]:
        if self._folder is None or not self._folder.is_dir():
            return []
        return [path for path in sorted(self._folder.iterdir()) if path != self._path and _is_left(path)]

    def revealed(self, commitments: set[str]) -> None:
        """Forget secrets that the chain holds by now."""
        self._kept = [one for one in self._kept if one.commitment not in commitments]
        for path in self._others():
            if all(one.commitment in commitments for one in _read(path)):
                with suppress(OSError):
                    path.unlink()


def _is_left(path: Path) -> bool:
    """Whether the process that wrote a file has ended."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(path: Path) -> list[Secret]:
    read = []
    for line in path.read_bytes().splitlines():
        with suppress(msgspec.MsgspecError):  # one that was cut short never entered a chain
            read.append(msgspec.json.decode(line, type=Secret))
    return read


class BegunBlock(NamedTuple):
    """A block whose commitment stands in the chain: its secret, the round that was next then, and its event."""

    secret: Secret
    first: int
    number: int


class Coins:
    """What the coins of one experiment follow from, in this process."""

    def __init__(self, journal: Journal, folder: Path | str | None) -> None:
        path = getattr(journal, "path", None)
        beside_journal = None if path is None else beside(path, ".coins")
        self._file = SecretFile(beside_journal if folder is None else Path(folder))
        self._current: BegunBlock | None = None
        self._next: BegunBlock | None = None
        self.block = 0  # the event that began the current one

    def begin_anew(self) -> None:
        """Begin another block with the next coin: what was written last may never have become durable."""
        self._current = self._next = None

    def source(self, turn: "Turn") -> "Callable[[int], float]":
        """What draws the coin of a decision, if it needs one."""
        return partial(self._draw, turn)

    def _draw(self, turn: "Turn", round_: int) -> float:
        shard = turn.state.shard
        lease = None if shard is None else shard.lease
        if lease is not None and lease.coins is not None:
            secret = self._leased(turn, lease, round_)
            return NONE if secret is None else coin_of(secret, round_)
        if self._current is None or round_ >= self._current.first + BLOCK:
            self._current, self._next = self._next, None
            if self._current is None or round_ >= self._current.first + BLOCK:  # no coin was needed for long
                self._current = None
                self._current = self._begun(turn, round_)
            else:
                self._write(turn, None)
        elif self._next is None and round_ >= self._current.first + BLOCK - BLOCK // PART_AHEAD:
            self._next = self._begun(turn, round_)
        self.block = self._current.number
        return coin_of(self._current.secret.secret, round_)

    def _begun(self, turn: "Turn", round_: int) -> BegunBlock:
        secret = self._file.new(turn.transaction.name)
        return BegunBlock(secret, round_, self._write(turn, secret))

    def _write(self, turn: "Turn", new: Secret | None) -> int:
        """Commit to a new secret, if there is one, and reveal those of blocks that are over; the event's number."""
        blocks = _blocks(turn)
        self._file.revealed({commitment for commitment, (_, is_revealed) in blocks.items() if is_revealed})
        in_use = [new, *(None if one is None else one.secret for one in (self._current, self._next))]
        over = [one for one in self._file.over(turn.transaction.name, in_use) if one.commitment in blocks]
        revealed = [(blocks[one.commitment][0], one.secret.hex()) for one in over if not blocks[one.commitment][1]]
        record = CoinBlock(commitment=None if new is None else new.commitment, revealed=sorted(revealed))
        return turn.write(events.COINS, record).number

    def _leased(self, turn: "Turn", lease: events.Lease, round_: int) -> bytes | None:
        """The secret of a round at an edge, which its hub gave with the lease; None where the lease has none for it."""
        at = round_ // BLOCK - lease.block
        if not 0 <= at < len(lease.coins or ()):
            return None
        commitment = lease.coins[at]  # type: ignore[index]
        if self._current is None or self._current.secret.commitment != commitment:
            data = turn.transaction.attachment(commitment)
            if data is None:
                return None
            blocks = _blocks(turn)
            known = blocks.get(commitment)
            if known is None:
                own = [(number, one) for one, (number, is_revealed) in blocks.items() if not is_revealed]
                secrets_ = [(number, turn.transaction.attachment(one)) for number, one in own]
                revealed = sorted((number, one.hex()) for number, one in secrets_ if one is not None)
                number = turn.write(events.COINS, CoinBlock(commitment=commitment, revealed=revealed)).number
            else:
                number = known[0]
            self._current = BegunBlock(Secret(turn.transaction.name, data), round_, number)
        self.block = self._current.number
        return self._current.secret.secret


def _blocks(turn: "Turn") -> dict[str, tuple[int, bool]]:
    """Every block of the chain by its commitment: its event, and whether its secret is revealed."""
    blocks = dict[str, tuple[int, bool]]()
    revealed = set[int]()
    for event in turn.transaction.newest_of(events.COINS, MOST_BLOCKS):
        record = decode(event, CoinBlock)
        revealed |= {number for number, _ in record.revealed}
        if record.commitment is not None:
            blocks[record.commitment] = event.number, event.number in revealed
    return blocks
