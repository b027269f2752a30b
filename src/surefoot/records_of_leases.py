"""What shards that share a floor hand in, and what they are leased, as events hold it."""

from surefoot.record_format import Number, Record
from surefoot.records_of_proofs import ProofRecord


class Joined(Record):
    """A shard was let in, with the journal of this token; its rounds are decided at `since` or later.

    by: of an edge, who had it let in
    """

    shard: str
    since: float
    token: str
    by: str = ""


class LeaseRecord(Record):
    """What a shard may lose under its lease of this number.

    since:        its rounds are decided at this moment or later
    watermark:    up to which moment the rounds of all shards were merged
    merged:       how many of its own were among them
    observations: how many rewards the frozen set has learned
    digest:       attachment with the policy that the shard decides by
    """

    shard: str
    number: int
    amount: float
    since: float
    watermark: Number
    merged: int
    observations: int
    digest: str


class HandedRound(Record, array_like=True):
    """A round: written as [number, moment, played, displaced, is_learner, baseline_reward]."""

    number: int
    moment: float
    played: list[float]
    displaced: list[float]
    is_learner: bool
    baseline_reward: float | list[float] | None = None


class HandedIn(Record):
    """What a shard did under a lease.

    token:    of the journal that it is from
    rewards:  those that came since the last hand-in, by the number of their round; None where it was abandoned
    question: what the rounds add up to; <theta, question> is at least `level` by the shard's last certificate
    through:  every round that it decided before this moment is among those handed in
    alarm:    kind and text of an alarm of the shard
    leaves:   it takes no other lease
    untimed:  the shard's clock was wrong: its rounds count, and are not learned, for their order is not known
    moved:    what rounds that were not played as decided may have brought the level below minus the lease
    proof:    that <theta, Q> is at least its value, Q the question of all rounds handed in, these included
    proved:   what may be relied on from now on: the same, rounded down; leases add up to this and a reserve at most
    refuted:  the data contradict what was declared: nothing is proved any more, and nothing is leased
    """

    shard: str
    token: str
    lease: int
    rounds: list[HandedRound]
    rewards: list[tuple[int, float | None]]
    question: list[float]
    level: float
    through: float
    alarm: tuple[str, str] | None = None
    leaves: bool = False
    untimed: bool = False
    proof: ProofRecord | None = None
    proved: float | None = None
    refuted: bool = False
    moved: float = 0.0


class BankLease(Record):
    """What the rounds of a guard's shard may cost at worst under its lease of this number.

    amounts: for each metric, in units of its highest reward
    entered: how many rounds the banks have taken in
    digest:  attachment with the guard that the shard decides by
    coins:   of an edge, the SHA-256 of the secret that its coins follow from; the secret stands where the lease ends
    The others are those of `LeaseRecord`.
    """

    shard: str
    number: int
    amounts: list[float]
    since: float
    watermark: Number
    merged: int
    entered: int
    digest: str
    coins: str | None = None


class HandedCoin(Record, array_like=True):
    """A guard's round: written as [number, moment, share, draw, is_learner, teaches, prediction]."""

    number: int
    moment: float
    share: float
    draw: float | None
    is_learner: bool
    teaches: bool
    prediction: float | dict[str, float] | None = None


class BankHandedIn(Record):
    """What a guard's shard did under a lease; rewards are by metric, the others are those of `HandedIn`."""

    shard: str
    token: str
    lease: int
    rounds: list[HandedCoin]
    rewards: list[tuple[int, dict[str, float] | None]]
    through: float
    leaves: bool = False
    untimed: bool = False


class LeaseEnded(Record):
    """The shard's rounds under this lease are complete; `untimed` if its clock was wrong then or on the way.

    coins: of an edge of a guard, the secret that the coins of these rounds followed from, in hexadecimal digits
    alarm: kind, round and text of an alarm that is on; the set that it was found by is not kept
    """

    lease: int
    untimed: bool = False
    coins: str | None = None
    alarm: tuple[str, int, str] | None = None


class Lost(Record):
    """A shard that nobody waits for any more, by whose word and why."""

    shard: str
    reason: str
    by: str = ""


def edge_chain(name: str, shard: str) -> str:
    """Where the chain of an edge is kept: beside that of the experiment, where the shards meet."""
    return f"{name}@{shard}"
