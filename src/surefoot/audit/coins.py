"""The coins of a guard: whether each follows from a secret that was fixed before it, and whether they can be fair.

Before the first coin of a block the chain holds the SHA-256 of a secret, of 16 to 64 bytes, and the round from which on
it serves; once the block is over, the secret itself. The coin of a round is the top 53 bits of an 8-byte BLAKE2b, keyed
with the secret, of the number of the round (8 bytes, big-endian). A block serves 1,000 rounds. Those of an edge, whose
hub commits to its secrets in its leases, begin at whole thousands; any other begins after the round that comes next
when its hash is written, or the secret might have been chosen by whoever knew that round's request. Only the second
event of a chain may serve from the first round on. The round in which a block had to begin has no coin, and its
proposal no share; such rounds are counted. After a restore the blocks before it serve no more, for their coins may have
been seen. Whoever has several blocks for one round may choose among their coins: the most there were are counted, used
or not.

Fairness is tested by bets that nobody wins against fair coins, on many ways of cheating at once. Each bet multiplies
its wealth by a factor whose mean is 1 if the coin is uniform given all that came before: on the side
(exp(r w U)/(1 - p + p exp(r w)), with w = 1, or w the sign of the newest reward beside their mean, or of each metric
that of the round's prediction beside the mean of those before), and on the draw itself (1 + r f(draw), f a cosine, or
the product of this draw's cosine and the last one's). Their average is a
martingale, so with fair coins it ever reaches 1/LEVEL with probability LEVEL at most (Ville), however long one looks.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surefoot.audit.compensated_sums import Vector
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.journal.events import Event
from surefoot.rounds import events

BLOCK = 1000  # rounds
LEVEL = 1e-6
LIMIT = math.log(1.0 / LEVEL)
SIDE_RATES = np.array([-1.0, -0.3, -0.1, -0.03, 0.03, 0.1, 0.3, 1.0])
# Below 1 in size, so that no bet can lose all and 1 + r f stays above 0.
DRAW_RATES = np.array([-0.9, -0.3, -0.1, -0.03, 0.03, 0.1, 0.3, 0.9])
WAVES = np.pi * np.array([1.0, 2.0, 3.0, 4.0])


@dataclass
class CommittedBlock:
    """A block of coins; its rounds are kept until its secret can be compared with them.

    first: the first round that it serves
    coins: event, round and the coin
    """

    commitment: str
    first: int
    coins: list[tuple[int, int, float]] = field(default_factory=list)
    is_revealed: bool = False
    is_dead: bool = False  # the chain was restored since

    def serves(self, round_: int) -> bool:
        """Whether it may give the coin of a round."""
        return self.first <= round_ < self.first + BLOCK and not (self.is_revealed or self.is_dead)


class CommittedCoins:
    """Every block of a guard's coins, and the lease that commits to them where the chain is an edge's."""

    def __init__(self, findings: Findings, tally: AuditCounts) -> None:
        self._findings, self._tally = findings, tally
        self._blocks: dict[int, CommittedBlock] = {}
        self._open: list[CommittedBlock] = []  # those that may serve a round to come
        self._commitments: set[str] = set()
        self._newest = 0, 0  # the event that began the newest block, and the first round that it serves
        self.lease: events.Lease | None = None

    def take(self, event: Event, record: events.CoinBlock) -> None:
        """A block begins, and others are revealed."""
        for number, secret in record.revealed:
            self._reveal(event, number, secret)
        if record.commitment is None:
            return
        if record.commitment in self._commitments:
            self._findings.add(
                event.number, "block", "a block of coins must have a secret of its own, but has another's"
            )
        if (text := self._early(event, record)) is not None:
            self._findings.add(event.number, "block", text)
        self._commitments.add(record.commitment)
        self._newest = event.number, record.first
        self._blocks[event.number] = block = CommittedBlock(record.commitment, record.first)
        self._open.append(block)
        self._tally.coin_blocks += 1

    def _early(self, event: Event, record: events.CoinBlock) -> str | None:
        """What is wrong with the first round of a block."""
        if self.lease is not None and self.lease.coins is not None:
            leased = {one: BLOCK * block for block, one in enumerate(self.lease.coins, self.lease.block)}
            if leased.get(record.commitment or "") == record.first:
                return None
            return f"the lease commits to no such block of coins for the rounds from {record.first} on"
        next_ = self._tally.decisions + 1
        if record.first > next_ or (event.number == 2 and record.first == next_):
            return None
        return (
            f"round {next_} is next, so the block may serve from round {next_ + 1} on, but begins with {record.first}"
        )

    def begins_after(self, event: Event, record: events.PairRound) -> bool:
        """Whether a round is the one in which a block had to begin, so that it has no coin."""
        return record.draw is None and self._newest == (event.number - 1, record.round + 1)

    def restored(self) -> None:
        """No block from before may serve."""
        for block in self._open:
            block.is_dead = True
        self._open = []

    def _reveal(self, event: Event, number: int, secret: str) -> None:
        block, data = self._blocks.get(number), _from_hex(secret)
        if block is None:
            self._findings.add(event.number, "secret", f"event {number} began no block of coins")
        elif hashlib.sha256(data).hexdigest() != block.commitment or not 16 <= len(data) <= 64:
            text = f"the secret revealed is not the one that event {number} commits to, of 16 to 64 bytes"
            self._findings.add(event.number, "secret", text)
        else:
            for drawn_at, round_, draw in block.coins:
                if draw != coin_of(data, round_):
                    text = f"the secret of its block, revealed in event {event.number}, gives another coin"
                    self._findings.add(drawn_at, "draw", text)
            self._tally.coins_recomputed += len(block.coins)
            self._tally.coins_hidden.pop(number, None)
            block.is_revealed, block.coins = True, []

    def draw(self, event: Event, record: events.PairRound) -> None:
        """The coin of a round, which must be of a block that serves it."""
        block = self._blocks.get(record.coins)
        if (text := self._fault(block, record)) is not None:
            self._findings.add(event.number, "block", f"the coin of round {record.round} {text}")
        if block is not None and not block.is_revealed and record.draw is not None:
            block.coins.append((event.number, record.round, record.draw))
            self._tally.coins_hidden[record.coins] += 1
        self._open = [one for one in self._open if not one.is_revealed and record.round < one.first + BLOCK]
        at_once = sum(one.serves(record.round) for one in self._open)
        self._tally.coin_blocks_at_once = max(self._tally.coin_blocks_at_once, at_once)

    def _fault(self, block: CommittedBlock | None, record: events.PairRound) -> str | None:
        if block is None:
            return f"must follow from a secret that the chain commits to before, but event {record.coins} is no such"
        if block.is_revealed:
            return "is of a block whose secret was known"
        if block.is_dead:
            return "is of a block from before a restore, whose coins may have been seen"
        return None if block.serves(record.round) else f"is not of the block that event {record.coins} began"


def coin_of(secret: bytes, round_: int) -> float:
    """The coin that a secret gives."""
    return uniform(hashlib.blake2b(round_.to_bytes(8), key=secret, digest_size=8).digest())


def seeded_coin(seed: int, round_: int) -> float:
    """The coin that the seed of a simulation gives."""
    return uniform(hashlib.blake2b(f"{seed}:{round_}".encode(), digest_size=8).digest())


def uniform(digest: bytes) -> float:
    """The top 53 bits of 8 bytes, in [0, 1)."""
    return float(int.from_bytes(digest) >> 11) * 2.0**-53


def _from_hex(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""


class CoinFairness:
    """The wealth of every bet so far, on coins of a guard with so many metrics."""

    def __init__(self, metrics: int = 1) -> None:
        self.coins, self.learner, self.expected = 0, 0, 0.0
        self.most = -math.inf  # the largest evidence so far, as the logarithm of the average wealth
        self._sides = np.zeros((2 + metrics, SIDE_RATES.size))
        self._draws = np.zeros((WAVES.size + 1, DRAW_RATES.size))
        self._predictions = [(0, 0.0)] * metrics  # how many there were, and their mean
        self._last_wave, self._luck = 0.0, 0.0
        self._rewards, self._mean = 0, 0.0

    def rewarded(self, reward: float) -> None:
        """A reward that the next coin must not depend on."""
        self._rewards += 1
        self._luck = float(np.sign(reward - self._mean)) if self._rewards > 1 else 0.0
        self._mean += (reward - self._mean) / self._rewards

    def _hints(self, predictions: Sequence[float | None]) -> list[float]:
        """The sign of each prediction beside the mean of those before it; 0 where there is none."""
        hints = [0.0] * len(self._predictions)
        for i, prediction in enumerate(predictions):
            if prediction is not None:
                count, mean = self._predictions[i]
                hints[i] = float(np.sign(prediction - mean)) if count else 0.0
                self._predictions[i] = count + 1, mean + (prediction - mean) / (count + 1)
        return hints

    def toss(self, share: float, draw: float, is_learner: bool, predictions: Sequence[float | None] = ()) -> bool:
        """Take a coin in, and what was predicted before it of each metric; true where it is the first that fair ones
        would not have led to.
        """
        self.coins += 1
        self.learner += is_learner
        self.expected += share
        stakes = np.outer((1.0, self._luck, *self._hints(predictions)), SIDE_RATES)
        self._sides += stakes * is_learner - np.log1p(share * np.expm1(stakes))
        waves = np.cos(WAVES * draw)
        self._draws += np.log1p(np.outer(np.append(waves, waves[0] * self._last_wave), DRAW_RATES))
        self._last_wave = float(waves[0])
        return self._is_news()

    def _is_news(self) -> bool:
        every: Vector = np.concatenate((self._sides.ravel(), self._draws.ravel()))
        top = float(every.max())
        evidence = top + math.log(float(np.exp(every - top).mean()))
        is_news = evidence >= LIMIT > self.most
        self.most = max(self.most, evidence)
        return is_news
