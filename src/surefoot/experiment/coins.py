"""The coins of a guard in an experiment: they follow from secrets that the chain commits to before the first of them.

Which rounds a block serves is written with its commitment, and they begin after the round that is decided next: nobody
who chooses a secret knows a request that its coins will be about. The coin of a round follows from the secret and the
round's number, so neither a restart nor a lost transaction draws again; every process that has the secrets goes on with
the same blocks. Once a block is over its secret is revealed, and the audit computes each coin again. What stays
invisible is a request that was dropped, or held back until its turn suited.

A round that no block serves has no coin, and its proposal no share; the block that it begins serves the next one. After
a restore no earlier block serves: its coins may have been seen in rounds that were lost.
"""

import hashlib
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from surefoot.errors import JournalUnavailableError
from surefoot.journal import Journal, Transaction, View
from surefoot.journal.address import beside, flush_folder
from surefoot.policies.coin import coin_of
from surefoot.rounds import decode, events
from surefoot.rounds.events import BLOCK, CoinBlock

if TYPE_CHECKING:
    from surefoot.experiment.turn import Turn

NONE = float("nan")
MOST_BLOCKS = 1000  # looked at, the newest
PART_AHEAD = 10  # of a block, before whose last such part the next one is committed to
_IN_MEMORY: "WeakKeyDictionary[Journal, dict[str, bytes]]" = WeakKeyDictionary()


def commitment_to(secret: bytes) -> str:
    """What the chain may hold of a secret before its coins are drawn."""
    return hashlib.sha256(secret).hexdigest()


class Secrets:
    """The secrets that are not revealed yet, each in a file named after its commitment that its owner alone may read.

    Without a folder they are in memory, for as long as the journal is open.
    """

    def __init__(self, journal: Journal, folder: Path | None) -> None:
        self._folder = folder
        self._kept = _IN_MEMORY.setdefault(journal, {}) if folder is None else {}
        self._chosen = list[str]()  # by this process

    def new(self, known: Collection[str]) -> str:
        """The commitment to a new secret, which is on the disk; or to one that never entered the chain."""
        for commitment in self._chosen:
            if commitment not in known:
                return commitment
        secret = secrets.token_bytes(32)
        if self._folder is not None:
            self._write(self._folder, secret)
        self._chosen.append(commitment_to(secret))
        self._kept[self._chosen[-1]] = secret
        return self._chosen[-1]

    def _write(self, folder: Path, secret: bytes) -> None:
        path = folder / commitment_to(secret)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                if os.write(file, secret) < len(secret):
                    raise OSError("the disk took a part of it")
                os.fsync(file)
            finally:
                os.close(file)
            flush_folder(path)
        except OSError as error:
            raise JournalUnavailableError(
                f"The secrets of coins must be kept where their owner alone reads them, but {folder}: {error}. "
                "Nothing was decided: make room there, or name another folder (`secrets`)."
            ) from None

    def find(self, commitment: str) -> bytes | None:
        """The secret of a commitment, if this process or one before it on the same folder chose it."""
        if commitment not in self._kept and self._folder is not None:
            with suppress(OSError):
                secret = (self._folder / commitment).read_bytes()
                if commitment_to(secret) == commitment:
                    self._kept[commitment] = secret
        return self._kept.get(commitment)

    def forget(self, revealed: Collection[str]) -> None:
        """Remove secrets that the chain holds by now."""
        self._chosen = [one for one in self._chosen if one not in revealed]
        for commitment in revealed:
            self._kept.pop(commitment, None)
        if self._folder is not None and self._folder.is_dir():
            for name in set(os.listdir(self._folder)).intersection(revealed):
                with suppress(OSError):
                    (self._folder / name).unlink()


class DurableBlock(NamedTuple):
    """A block of coins as it stands in the chain."""

    number: int
    first: int
    commitment: str
    revealed: int  # the event that reveals its secret; 0 until then

    def serves(self, round_: int) -> bool:
        """Whether a round lies within it."""
        return self.first <= round_ < self.first + BLOCK


class Coins:
    """What the coins of one experiment follow from, in this process.

    block: the event that began the block of the last coin
    """

    def __init__(self, journal: Journal, folder: Path | str | None) -> None:
        path = getattr(journal, "path", None)
        beside_journal = None if path is None else beside(path, ".coins")
        self._secrets = Secrets(journal, beside_journal if folder is None else Path(folder))
        self.look_again()

    def look_again(self) -> None:
        """Look blocks up in the chain with the next coin: what was written last may never have become durable."""
        self.block, self._commitment, self._secret = 0, "", b""
        self._first = self._until = 0  # the rounds for which nothing has to be looked up

    def begin(self, turn: "Turn") -> None:
        """Commit to the block that serves from the first round on, where the experiment is new and draws its coins."""
        created = turn.state.created
        if not turn.state.kind.draws or created.settings.get("seed") is not None or turn.state.head.number > 1:
            return
        with suppress(JournalUnavailableError):  # the first decision says so
            turn.write(events.COINS, CoinBlock(commitment=self._secrets.new(()), first=1))

    def draw(self, turn: "Turn", round_: int) -> float:
        """The coin of the round that is decided; nan where no block serves it."""
        shard = turn.state.shard
        lease = None if shard is None else shard.lease
        if lease is not None and lease.coins is not None:
            self._serve_lease(turn, lease, round_)
        elif not self._first <= round_ < self._until or self.block <= turn.state.restored:
            self._serve(turn, round_)
        return coin_of(self._secret, round_) if self._secret else NONE

    def _serve(self, turn: "Turn", round_: int) -> None:
        """Look up the block of a round, commit to one where another will be needed, and reveal what is over."""
        self.look_again()
        blocks = _blocks(turn)
        hidden = [one for one in blocks if not one.revealed]
        own = {one.commitment: secret for one in hidden if (secret := self._secrets.find(one.commitment)) is not None}
        usable = [one for one in hidden if one.commitment in own]
        over = [one for one in usable if one.number <= turn.state.restored or round_ >= one.first + BLOCK]
        usable = [one for one in usable if one not in over]
        serving = next((one for one in usable if one.serves(round_)), None)
        first = round_ + 1 if serving is None else serving.first + BLOCK
        ahead = first - BLOCK // PART_AHEAD
        is_due = serving is None or (round_ >= ahead and not any(one.serves(first) for one in usable))
        revealed = [(one.number, own[one.commitment].hex()) for one in over]
        if is_due or revealed:
            commitment = self._secrets.new({one.commitment for one in blocks}) if is_due else None
            turn.write(events.COINS, CoinBlock(commitment=commitment, first=first if is_due else 0, revealed=revealed))
        if serving is not None:
            self.block, self._secret = serving.number, own[serving.commitment]
            self._first, self._until = round_, ahead if round_ < ahead else first
        stored = _stored(turn.transaction)  # what is not may be lost
        self._secrets.forget({one.commitment for one in blocks if 0 < one.revealed <= stored})

    def _serve_lease(self, turn: "Turn", lease: events.Lease, round_: int) -> None:
        """The block of a round at an edge, whose secret its hub gave with the lease; none where the lease has none."""
        coins, at = lease.coins or (), round_ // BLOCK - lease.block
        commitment = coins[at] if 0 <= at < len(coins) else ""
        if commitment == self._commitment:
            return
        self.look_again()
        secret = turn.transaction.attachment(commitment) if commitment else None
        if secret is None:
            return
        blocks = _blocks(turn)
        number = next((one.number for one in blocks if one.commitment == commitment), 0)
        if not number:
            known = [(one.number, turn.transaction.attachment(one.commitment)) for one in blocks if not one.revealed]
            revealed = [(number, data.hex()) for number, data in known if data is not None]
            record = CoinBlock(commitment=commitment, first=round_ // BLOCK * BLOCK, revealed=revealed)
            number = turn.write(events.COINS, record).number
        self.block, self._commitment, self._secret = number, commitment, secret


def _blocks(turn: "Turn") -> list[DurableBlock]:
    """The newest blocks of the chain, oldest first."""
    blocks, revealed = list[DurableBlock](), dict[int, int]()
    for event in turn.transaction.newest_of(events.COINS, MOST_BLOCKS):
        record = decode(event, CoinBlock)
        revealed |= {number: event.number for number, _ in record.revealed}
        if record.commitment is not None:
            blocks.append(DurableBlock(event.number, record.first, record.commitment, revealed.get(event.number, 0)))
    return blocks[::-1]


def _stored(view: View) -> int:
    """The number of the newest event that is stored."""
    while isinstance(view, Transaction):
        view = view.over
    return view.head.number
