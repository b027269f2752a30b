"""What the events of an experiment hold: one struct for each kind, written as canonical JSON.

kind       key              holds
created    -                `Created`: every setting of the experiment, and its history; always event 1
catalogue  c:<digest>       `CatalogueRows`: rows that rounds refer to by their digest, written before the first of them
round      d:<decision_id>  `Round`, a `RowsRound` or a `PairRound`; numbered from 1 in the order of their events
visit      d:<decision_id>  `PairRound` without a certificate: another visit of an open unit, which keeps its side
coins      -                `CoinBlock`: of a guard, what coins from here on follow from, hidden until later
reward     r:<decision_id>  `Reward`, accepted; further metrics of the same decision under r2:, r3:, ...
reward     -                `Reward`, refused, with its reason; it changes nothing
settled    -                `Settled`: windows that have closed, oldest decision first
abandoned  r:<decision_id>  `Abandoned`: no reward of the decision will be learned, or none after those that came (r2:)
voided     v:<decision_id>  `Voided`: the round was not played as decided, said before any reward of it had come
corrected  x:<decision_id>  `Corrected`: the reward that counts in place of the accepted one, which was not learned yet
confirmed  -                `Confirmed`: learner rounds that were played as decided
overdue    -                `Overdue`: learner rounds that nobody has confirmed in time, which count at their worst
mode       -                `Mode`: from now on the experiment is in this mode
acknowledged  -             `Acknowledged`: the alarm was answered
erased     -                `Erased`: private texts of earlier events that are gone
snapshot   -                `Snapshot`: the state at a head, as an attachment; it only ever saves time

Of shards that share one promise, in the journal where they meet:

joined     j:<shard>           `Joined`: a shard was let in
handed_in  h:<shard>:<lease>   `HandIn`: what it did under a lease, and what is proved of all rounds since
leased     l:<shard>:<number>  `Lease`: what it may lose from now on
lost       -                   `Lost`: nobody waits for it any more
mode       -                   `Mode`, of all shards: each goes over to it with its next lease at the latest

and in the journal of each shard, beside its rounds and rewards:

leased       -                 the same, once the shard has it
lease_ended  -                 `LeaseEnded`: from now on the baseline plays, until the next lease

What a linear policy has learned: the rows of `created.history`; then rewards in the order of their decisions, each as
soon as every earlier round that teaches is settled. A round is settled by its accepted reward (with a window, by its
entry in a `settled`: the reward that came, or the default), by `abandoned`, or by the default once `settle_after` more
rounds were decided. Whether a round teaches is fixed when it is decided: CLUCB skips the baseline's, SafeLUCB those of
a baseline that has never changed and whose mean is known exactly; a round that was booked (`is_fallback`) teaches
nothing. With a `holdout` the skipped ones wait for their turn too, and are bet on, though no set learns them. The k-th
confidence set is made of the first k that it learns. After an alarm that was answered by "relearn" or "renew" a new set
begins, and no round decided before teaches any more. A round that was voided counts as played from its `voided` on, for
the ledger and for what its reward teaches; where that came more than `confirm_within` seconds after the decision, it
counts as decided, at its worst and without its reward, and the alarm is on. Of a guard a void changes nothing but what
was played.

What a guard's banks hold: every round whose actions differ, in the order of the decisions, each as soon as every
earlier one is settled: by its accepted rewards (all metrics, or those without a default; with a window, by its entry
in a `settled`; of a unit, by the sum of its visits' own once `unit_window` more rounds were decided), by `abandoned`
(what came counts), or once `settle_after` more rounds were decided. A metric without a reward counts as its default
where one was declared, and at its worst otherwise; of a round that was abandoned, always at its worst. And as soon as
eight rounds are settled and wait for one with a share that is not, that one enters at its worst, which its own entry
replaces once it is settled. A round without a share makes no other wait.

A guard's coins come in blocks, each for `BLOCK` rounds from one that comes after the next (of event 2: after the
creation). Before them the chain holds the SHA-256 of a secret; the secret itself once the block is over. The coin of a
round, which names its block's event, is `surefoot.policies.coin.coin_of` the secret and the number of the round. The
round with which a block had to begin has none, and its proposal no share. After a restore (a `Mode` with `lost`) no
block from before serves. At an edge a secret is its hub's, and its hash stands in the lease: that of rounds 0 to 999,
1000 to 1999, and so on, whichever lease they are decided under.
In a sealed experiment a decision's id is its event's number and the commitment to its private text, which is kept
beside the chain; every event calls it by that, and its own has no key (`surefoot.experiment.sealing`).

Numbers are written with as many digits as it takes to read them back to the bit. JSON has no infinities: where one may
occur the type is `Number`, which writes them as the strings "inf", "-inf" and "nan". A field that is missing has its
default.
"""

import math
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from surefoot.rounds.format import Number, Record

CREATED, CATALOGUE, ROUND, VISIT, COINS = "created", "catalogue", "round", "visit", "coins"
REWARD, SETTLED, ABANDONED, VOIDED, CORRECTED = "reward", "settled", "abandoned", "voided", "corrected"
CONFIRMED, OVERDUE, MODE, ACKNOWLEDGED = "confirmed", "overdue", "mode", "acknowledged"
ERASED, SNAPSHOT = "erased", "snapshot"
JOINED, LEASED, HANDED_IN, LOST, LEASE_ENDED = "joined", "leased", "handed_in", "lost", "lease_ended"

Source: TypeAlias = Literal["learner", "baseline"]
Reason: TypeAlias = Literal["out_of_range", "too_late", "unknown", "conflict", "abandoned"]
ModeName: TypeAlias = Literal["shadow", "guarded", "paused"]
Response: TypeAlias = Literal["stay", "relearn", "renew"]
FORMAT = 1  # of experiments
METRIC = "reward"  # the name of the metric where there is but one
BLOCK = 1000  # rounds whose coins follow from one secret


class History(Record):
    """Logged rows of the baseline and their rewards, learned before the first round (`Policy.warm_start`)."""

    features: list[list[float]]
    rewards: list[float]


class Forked(Record):
    """Where an experiment's history came from: another one, at that head, with so many of its rounds; and why.

    is_encoded:  whether rows were made anew, by another feature map
    corrections: rewards that had been learned wrongly: which of the carried rounds, counted from 0, and the right one
    """

    experiment: str
    number: int
    hash: str
    rounds: int
    is_encoded: bool = False
    reason: str = ""
    corrections: tuple[tuple[int, float], ...] = ()


class Created(Record):
    """The settings of an experiment; they never change.

    reward_window:  seconds after which a decision's reward is learned; None learns it when all before it are settled
    default_reward: what is learned where no reward came within the window
    reward_bounds:  rewards lie within [low, high]; one that does not raises the alarm
    software:       version of surefoot that made the experiment
    history:        rewards of the baseline from before, learned before the first decision
    actions:        of a guard, the baseline and the proposal of requests that name neither: those of a flag
    configuration:  the experiment.toml that it was made by, by which contexts become rows
    by:             who created it
    origin:         the experiment that it was forked from, whose settled rounds are in `history`
    confirm_within: seconds within which a learner round must be confirmed, or else counts at its worst
    feature_names:  what the features of a row, or the arms, are called
    reward_unit:    what rewards are counted in: a plural such as "clicks", or a currency by its code, such as "EUR";
                    by metric where metrics have names
    is_sealed:      what is about people is kept beside the chain
    skew:           where shards share the promise, seconds by which their clocks may differ
    shard:          in the journal of a shard, its name
    token:          by which the hub knows this journal from another of the same shard's name
    hub:            hash of the first event where the shards meet
    """

    format: int
    policy: str
    policy_id: str
    settings: dict[str, Any]
    mode: ModeName
    software: str
    reward_window: float | None = None
    default_reward: float | None = None
    reward_bounds: tuple[float, float] | None = None
    history: History | None = None
    actions: tuple[Any, Any] | None = None
    description: str = ""
    configuration: str | None = None
    confirm_within: float | None = None
    by: str = ""
    origin: Forked | None = None
    feature_names: list[str] | None = None
    reward_unit: str | dict[str, str] = ""
    is_sealed: bool = False
    skew: float | None = None
    shard: str | None = None
    token: str | None = None
    hub: str | None = None

    @property
    def is_hub(self) -> bool:
        """Whether it is the ledger that shards share; the chain of each shard is another one."""
        return self.skew is not None and self.shard is None


class CatalogueRows(Record):
    """Rows that stay the same from round to round; `digest` is `surefoot.Catalogue.digest`."""

    digest: str
    rows: list[list[float]]


class EllipsoidRecord(Record, tag_field="kind", tag="ellipsoid"):
    """||theta - center||_V <= radius, after the first `observations` rewards that the policy learned.

    The radius holds what rounding may have done. `whitener` is given where the set is not the one of the policy's own
    ridge (radius "dual"): whitener^T whitener = V_a^-1 with V_a = sum x x^T + a I for some a > 0.
    """

    observations: int
    radius: float
    center: list[float] | None = None
    whitener: list[list[float]] | None = None


class BallRecord(Record, tag_field="kind", tag="ball"):
    """||theta|| <= radius."""

    radius: float


class LinearRecord(Record, tag_field="kind", tag="linear"):
    """<theta, normal> >= level; `name` says why, and `point` where the likelihood set is touched."""

    name: str
    normal: list[float]
    level: Number
    point: list[float] | None = None


FactRecord: TypeAlias = EllipsoidRecord | BallRecord | LinearRecord


class PieceRecord(Record):
    """A part of the question, and the lower bound that the fact gives for it."""

    fact: FactRecord
    vector: list[float]
    bound: Number


class ProofRecord(Record):
    """That <theta, question> >= value: the pieces add up to the question, the bounds to the value."""

    question: list[float]
    value: Number
    pieces: list[PieceRecord]


class GateCertificate(Record):
    """What the gate saw: see `surefoot.Certificate`. The learner was allowed exactly where guaranteed >= required.

    proof: always there in the journal; None in a copy that was made for an answer
    """

    guaranteed: Number
    required: Number
    proposal: int
    optimism: Number
    proof: ProofRecord | None = None
    method: str = "rows"
    gap: float = 0.0

    @property
    def margin(self) -> float:
        """guaranteed - required; inf where nothing is required."""
        required = float(self.required)
        return math.inf if required == -math.inf else float(self.guaranteed) - required

    @property
    def is_allowed(self) -> bool:
        """Whether the learner might play."""
        return float(self.guaranteed) >= float(self.required)


class BankRecord(Record):
    """What a metric's bank held before the round, in units of its highest reward: see `surefoot.safety.BankProof`."""

    metric: str
    log_wealth: list[float]
    bound: float
    owed: float
    carried: float
    cost: float
    coins: float = 0.0


class BankCertificate(Record):
    """Which share was allowed and by whom it was limited; one bank for each metric."""

    allowed: float
    binds: str
    banks: list[BankRecord]

    @property
    def margin(self) -> float:
        """What is left in the bank that binds if the round is at its worst."""
        # `carried` was written as all that the bank can pay, so the bound is in it.
        return min([bank.carried - bank.cost for bank in self.banks])

    @property
    def is_allowed(self) -> bool:
        """Whether the learner might play."""
        return self.allowed > 0.0


class RowsRequest(Record):
    """What a caller asks of a policy over rows or arms: asking again with the same decision_id must bring the same.

    features:        one row per action; or
    catalogue:       the digest of a catalogue; neither for policies over plain arms
    actions:         the caller's own name of each row
    baseline:        the row that is played today; policies that keep no floor may do without
    baseline_reward: its mean reward if known, as a number or as (low, high)
    context:         anything the caller wants kept beside the decision; no policy looks at it
    """

    features: list[list[float]] | None = None
    catalogue: str | None = None
    actions: list[str] | None = None
    baseline: int | None = None
    baseline_reward: float | list[float] | None = None
    context: dict[str, Any] | None = None


class PairRequest(Record):
    """What a caller asks of a guard: asking again with the same decision_id must bring the same.

    baseline, proposal: the action of today and the one that is to be let in, any JSON value but null
    unit:               whom the reward belongs to, if that is more than this visit
    prediction:         of the baseline's reward in this round; for several metrics by name
    context:            anything the caller wants kept beside the decision; it may serve a `forecast`, and else nothing
    """

    baseline: Any
    proposal: Any
    unit: str | None = None
    prediction: float | dict[str, float] | None = None
    context: dict[str, Any] | None = None


class Round(Record, tag_field="kind"):
    """What every round has, whatever it was decided over.

    mode:        the experiment's mode at that moment
    is_held:     the baseline was to be played whatever was allowed: in shadow and paused mode, and in fallbacks
    is_fallback: the caller had played the baseline on its own, while the experiment could not be reached
    draw:        the coin, uniform in [0, 1): of a guard the proposal is played where it lies below `share`, of a
                 holdout the baseline where it lies below that; None where none was drawn
    """

    decision_id: str
    round: int
    mode: ModeName
    source: Source
    is_held: bool = False
    is_fallback: bool = False
    draw: float | None = None


class RowsRound(Round, kw_only=True, tag="rows"):
    """A round over rows or arms; `action` is the row that is to be played."""

    request: RowsRequest
    action: int
    certificate: GateCertificate


class PairRound(Round, kw_only=True, tag="pair"):
    """A round of a guard; `share` is the probability with which the proposal was to be played.

    Another visit of an open unit has no certificate: its share and coin are as they were in that round, unless the
    baseline was to be held. `coins` is the event that began the block of its coin; 0 where none was drawn, the guard
    has a seed, or the coin fell with an earlier visit. `forecast` is what the experiment itself predicted of the
    baseline's rewards, by metric, from contexts before, where the caller did not; whoever recalls the round takes it
    from here, for contexts may be erased.
    """

    request: PairRequest
    share: float
    certificate: BankCertificate | None = None
    coins: int = 0
    forecast: dict[str, float] | None = None

    @property
    def prediction(self) -> float | dict[str, float] | None:
        """What the bets on the baseline's rewards are centred at; None where that is their mean."""
        return self.forecast if self.request.prediction is None else self.request.prediction

    @property
    def action(self) -> Any:
        """What is to be played."""
        return self.request.proposal if self.source == "learner" else self.request.baseline


class CoinBlock(Record):
    """A block of a guard's coins begins; `commitment` is the SHA-256 of the secret that they follow from.

    first:    the first of the `BLOCK` rounds that it serves
    revealed: blocks that are over: the number of the event that began each, and its secret in hexadecimal digits
    """

    commitment: str | None = None
    first: int = 0
    revealed: list[tuple[int, str]] = msgspec.field(default_factory=list)


class Reward(Record):
    """Rewards of a decision by metric. `refused` is None where they were accepted.

    unrecorded: refusals for the same reason that came before this one and were only counted, for there were too many
    """

    decision_id: str
    values: dict[str, Number]
    refused: Reason | None = None
    unrecorded: int = 0


class SettledWindow(Record, array_like=True):
    """A window that closed: written as [decision_id, round, is_missing]; what came stands in the rewards before it."""

    decision_id: str
    round: int
    is_missing: bool


class Settled(Record):
    """Windows that have closed, in the order of their decisions."""

    windows: list[SettledWindow]


class Abandoned(Record):
    """A decision whose reward will never be learned, why (nothing that its reward can have influenced), and by whom."""

    decision_id: str
    reason: str = ""
    by: str = ""


class Voided(Record):
    """What was really played in a round, by whose word and why.

    action: the row, the baseline's among them; of a guard the action itself (sealed: its commitment), None for the
            baseline
    """

    decision_id: str
    action: Any = None
    reason: str = ""
    by: str = ""


class Corrected(Record):
    """Rewards of a decision as they should have been sent, why, and by whom: said before anything was learned."""

    decision_id: str
    values: dict[str, Number]
    reason: str = ""
    by: str = ""


class Confirmed(Record):
    """Learner rounds that were played as decided, by their callers' word."""

    decision_ids: list[str]


class Overdue(Record):
    """Learner rounds that count at their worst from now on, until they are confirmed, rewarded or voided in time.

    decisions: the id and the round of each
    """

    decisions: list[tuple[str, int]]


class Mode(Record):
    """The experiment's mode from now on, why it was changed, and by whom.

    shared: in the chain of a shard, the number of the event where the shards meet that says so; 0 while that is to come
    lost:   of a chain that was restored from a copy, how many events are known to be lost; a guard's banks pay for as
            many rounds at their worst
    """

    mode: ModeName
    reason: str = ""
    by: str = ""
    shared: int | None = None
    lost: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Acknowledged(Record):
    """The answer to the alarm that was raised after so many rounds (`surefoot.safety.alarm`), why, and by whom."""

    response: Response
    reason: str = ""
    by: str = ""
    alarm_round: int = 0


class Erased(Record):
    """Events whose private text was erased, by whose word and why; whom they were about is not said."""

    events: list[int]
    reason: str = ""
    by: str = ""


class Snapshot(Record):
    """Attachment `digest` is the state after event `number`; `previous` is the number of the snapshot event before.

    software: version of surefoot that wrote it
    """

    digest: str
    number: int
    hash: str
    previous: int = 0
    software: str = ""


class Joined(Record):
    """A shard was let in, with the journal of this token; its rounds are decided at `since` or later.

    by: of an edge, who had it let in
    """

    shard: str
    since: float
    token: str
    by: str = ""


class Lease(Record):
    """What a shard's rounds may cost at worst under its lease of this number.

    amounts:   of a linear policy how far its rounds may lie below their own floor; of a guard for each metric, in units
               of its highest reward
    since:     its rounds are decided at this moment or later
    watermark: up to which moment the rounds of all shards were merged
    merged:    how many of its own were among them
    learned:   how many rounds the frozen set has learned, or the frozen banks have taken in
    digest:    attachment with the policy that the shard decides by
    expires:   of an edge, from which moment on only the baseline plays
    coins:     of an edge of a guard, the SHA-256 of the secrets of its next blocks of coins
    block:     the number of the first of them
    event_bytes: of an edge, the most that an event may take, which has to be sent
    proof:     of an edge, by which its hub knows a lease that it granted
    """

    shard: str
    number: int
    amounts: list[float]
    since: float
    watermark: Number
    merged: int
    learned: int
    digest: str
    expires: float | None = None
    coins: list[str] | None = None
    block: int = 0
    event_bytes: int | None = None
    proof: str | None = None


class RowsHanded(Record, array_like=True):
    """A round of a linear policy: written as [number, moment, is_learner, played, displaced, baseline_reward]."""

    number: int
    moment: float
    is_learner: bool
    played: list[float]
    displaced: list[float]
    baseline_reward: float | list[float] | None = None


class PairHanded(Record, array_like=True):
    """A round of a guard: written as [number, moment, is_learner, share, draw, teaches, prediction]."""

    number: int
    moment: float
    is_learner: bool
    share: float
    draw: float | None
    teaches: bool
    prediction: float | dict[str, float] | None = None


class HandIn(Record):
    """What a shard did under a lease.

    token:   of the journal that it is from
    rewards: those that came since the last hand-in, by the number of their round; None where it was abandoned, or of a
             metric that had not come then
    through: every round that it decided before this moment is among those handed in
    alarm:   kind and text of an alarm of the shard
    leaves:  it takes no other lease
    untimed: the shard's clock was wrong: its rounds count, and are not learned, for their order is not known
    """

    shard: str
    token: str
    lease: int
    rewards: list[tuple[int, dict[str, float | None] | None]]
    through: float
    alarm: tuple[str, str] | None = None
    leaves: bool = False
    untimed: bool = False


class RowsHandIn(HandIn, kw_only=True):
    """Of a linear policy, with what is proved of the rounds, and after merging of all rounds.

    question: what the rounds add up to; <theta, question> is at least `level` by the shard's last certificate
    moved:    what rounds that were not played as decided may have brought the level below minus the lease
    proof:    that <theta, Q> is at least its value, Q the question of all rounds handed in, these included
    proved:   what may be relied on from now on: the same, rounded down; leases add up to this and a reserve at most
    refuted:  the data contradict what was declared: nothing is proved any more, and nothing is leased
    """

    rounds: list[RowsHanded]
    question: list[float]
    level: float
    moved: float = 0.0
    proof: ProofRecord | None = None
    proved: float | None = None
    refuted: bool = False


class PairHandIn(HandIn, kw_only=True):
    """Of a guard."""

    rounds: list[PairHanded]


class LeaseEnded(Record):
    """The shard's rounds under this lease are complete; `untimed` if its clock was wrong then or on the way.

    alarm: kind, round and text of an alarm that is on; the set that it was found by is not kept
    """

    lease: int
    untimed: bool = False
    alarm: tuple[str, int, str] | None = None


class Lost(Record):
    """A shard that nobody waits for any more, by whose word and why."""

    shard: str
    reason: str
    by: str = ""


# What each kind of event holds: in every experiment, in one over rows or arms, and in that of a guard.
SHARED: dict[str, type[Record]] = {
    CREATED: Created, REWARD: Reward, SETTLED: Settled, ABANDONED: Abandoned, VOIDED: Voided, CORRECTED: Corrected,
    CONFIRMED: Confirmed, OVERDUE: Overdue, MODE: Mode, ACKNOWLEDGED: Acknowledged, ERASED: Erased, SNAPSHOT: Snapshot,
    JOINED: Joined, LEASED: Lease, LOST: Lost, LEASE_ENDED: LeaseEnded,
}  # fmt: skip
ROWS_RECORDS: dict[str, type[Record]] = {**SHARED, CATALOGUE: CatalogueRows, ROUND: RowsRound, HANDED_IN: RowsHandIn}
PAIR_RECORDS: dict[str, type[Record]] = {
    **SHARED,
    ROUND: PairRound,
    VISIT: PairRound,
    COINS: CoinBlock,
    HANDED_IN: PairHandIn,
}
# What is said and moves no ledger: the hub of an edge takes it as it was said, and an audit checks its form alone.
WORDS = frozenset((ERASED,))


def reward_key(ref: str, parts: int) -> str:
    """What the next reward of a decision is found by, after so many parts.

    >>> reward_key("visit-1", 0), reward_key("visit-1", 1)
    ('r:visit-1', 'r2:visit-1')
    """
    return f"r{parts + 1 if parts else ''}:{ref}"


def edge_chain(name: str, shard: str) -> str:
    """Where the chain of an edge is kept: beside that of the experiment, where the shards meet."""
    return f"{name}@{shard}"
