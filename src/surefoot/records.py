"""What the events of an experiment hold: one struct for each kind, written as canonical JSON.

kind       key              holds
created    -                `Created`: every setting of the experiment, and its history; always event 1
catalogue  c:<digest>       `Catalogue`: rows that decisions refer to by their digest, written before the first of them
decision   d:<decision_id>  `Decision`: one round; rounds are numbered from 1 in the order of their events
reward     r:<decision_id>  `Reward`, accepted; there is one at most for each decision
reward     -                `Reward`, refused, with its reason; it changes nothing
abandoned  r:<decision_id>  `Abandoned`: the decision's reward will never be learned
voided     v:<decision_id>  `Voided`: the round was not played as decided, said before any reward of it had come
corrected  x:<decision_id>  `Corrected`: the reward that counts in place of the accepted one, which was not learned yet
confirmed  -                `Confirmed`: learner rounds that were played as decided
overdue    -                `Overdue`: learner rounds that nobody has confirmed in time, which count at their worst
closed     -                `Closed`: windows that have closed, oldest decision first, and what was learned
mode       -                `Mode`: from now on the experiment is in this mode
acknowledged  -             `Acknowledged`: the alarm was answered
erased     -                `Erased`: private texts of earlier events that are gone
snapshot   -                `Snapshot`: the state at a head, as an attachment; it only ever saves time

Of a guard, whose coin chooses between two actions of any kind:

guarded        d:<decision_id>  `Guarded`: one round, with its coin; numbered as decisions are
visit          d:<decision_id>  `Visit`: another visit of an open unit, which keeps its side and its round
metric_reward  r:<decision_id>  `MetricReward`, accepted; without a key where it was refused
settled        -                `Settled`: windows that have closed, oldest decision first

Of shards that share one floor, in the journal where they meet (`Created.format` 3):

joined       j:<shard>           `Joined`: a shard was let in
handed_in    h:<shard>:<lease>   `HandedIn`: what it did under a lease, and what is proved of all rounds since
leased       l:<shard>:<number>  `LeaseRecord`: what it may lose from now on
lost         -                   `Lost`: nobody waits for it any more
mode         -                   `Mode`, of all shards: each goes over to it with its next lease at the latest

(of a guard's `bank_handed_in`, `BankHandedIn`, and `bank_leased`, `BankLease`, under the same keys)

and in the journal of each shard, beside its decisions and rewards:

leased       -                   the same, once the shard has it (of a guard's `bank_leased`)
lease_ended  -                   `LeaseEnded`: from now on the baseline plays, until the next lease

What the policy has learned: the rows of `created.history`; then rewards in the order of their decisions, each as soon
as every earlier round that teaches is settled. A round is settled by its accepted reward (with a window, by its entry
in a `closed`), by `abandoned`, or by the default once `settle_after` more rounds were decided. Whether a round teaches
is settled when it is decided: CLUCB skips the baseline's, SafeLUCB those of a baseline that has never changed and whose
mean is known exactly. With a `holdout` these wait for their turn too, and are bet on, though no set learns them. The
k-th confidence set is made of the first k that it learns. After an alarm that was answered by "relearn" or "renew" a
new set begins, and no round decided before teaches any more. A round that was voided counts as played from its `voided`
on, for the ledger and for what its reward teaches; of a guard it changes nothing but what was played.

What a guard's banks hold: every round that teaches, in the order of the decisions, each as soon as every earlier one is
settled: by its accepted reward (with a window, by its entry in a `settled`; of a unit, by the sum of its visits' own
once `unit_window` more rounds were decided), by `abandoned` at its worst, or once `settle_after` more rounds were
decided. A metric without a reward counts as its default where one was declared, and at its worst otherwise. A round
whose two actions are equal teaches nothing.

In a sealed experiment (`Created.format` 2) a decision's id is its event's number and the commitment to its private
text, which is kept beside the chain; every event calls it by that, and its own has no key
(`surefoot.experiment.sealing`).

Numbers are written with as many digits as it takes to read them back to the bit. JSON has no infinities: where one may
occur the type is `Number`, which writes them as the strings "inf", "-inf" and "nan". A field that is missing has its
default.
"""

import math
from typing import Any, Literal, TypeAlias

from surefoot.record_format import Number as Number
from surefoot.record_format import Record as Record
from surefoot.record_format import encode as encode
from surefoot.record_format import encode_finite as encode_finite
from surefoot.record_format import number as number
from surefoot.records_of_leases import BankHandedIn as BankHandedIn
from surefoot.records_of_leases import BankLease as BankLease
from surefoot.records_of_leases import HandedCoin as HandedCoin
from surefoot.records_of_leases import HandedIn as HandedIn
from surefoot.records_of_leases import HandedRound as HandedRound
from surefoot.records_of_leases import Joined as Joined
from surefoot.records_of_leases import LeaseEnded as LeaseEnded
from surefoot.records_of_leases import LeaseRecord as LeaseRecord
from surefoot.records_of_leases import Lost as Lost
from surefoot.records_of_operators import Abandoned as Abandoned
from surefoot.records_of_operators import Acknowledged as Acknowledged
from surefoot.records_of_operators import Confirmed as Confirmed
from surefoot.records_of_operators import Corrected as Corrected
from surefoot.records_of_operators import Erased as Erased
from surefoot.records_of_operators import Forked as Forked
from surefoot.records_of_operators import Mode as Mode
from surefoot.records_of_operators import ModeName as ModeName
from surefoot.records_of_operators import Overdue as Overdue
from surefoot.records_of_operators import OverdueRound as OverdueRound
from surefoot.records_of_operators import Response as Response
from surefoot.records_of_operators import Voided as Voided
from surefoot.records_of_proofs import BallRecord as BallRecord
from surefoot.records_of_proofs import EllipsoidRecord as EllipsoidRecord
from surefoot.records_of_proofs import Fact as Fact
from surefoot.records_of_proofs import LinearRecord as LinearRecord
from surefoot.records_of_proofs import PieceRecord as PieceRecord
from surefoot.records_of_proofs import ProofRecord as ProofRecord

CREATED, CATALOGUE, DECISION = "created", "catalogue", "decision"
REWARD, CLOSED, MODE, SNAPSHOT = "reward", "closed", "mode", "snapshot"
CONFIRMED, OVERDUE, CORRECTED = "confirmed", "overdue", "corrected"
ABANDONED, VOIDED, ACKNOWLEDGED, ERASED = "abandoned", "voided", "acknowledged", "erased"
GUARDED, VISIT, METRIC_REWARD, SETTLED = "guarded", "visit", "metric_reward", "settled"
JOINED, LEASED, HANDED_IN, LOST, LEASE_ENDED = "joined", "leased", "handed_in", "lost", "lease_ended"
BANK_LEASED, BANK_HANDED_IN = "bank_leased", "bank_handed_in"

Source: TypeAlias = Literal["learner", "baseline"]
Reason: TypeAlias = Literal["out_of_range", "too_late", "unknown", "conflict", "abandoned"]
FORMAT, SEALED = 1, 2  # of experiments; sealed ones keep what is about people beside the chain
SHARDED = 3  # of one whose floor is shared by shards, and of each of these


class History(Record):
    """Logged rows of the baseline and their rewards, learned before the first decision (`Policy.warm_start`)."""

    features: list[list[float]]
    rewards: list[float]


class Created(Record):
    """The settings of an experiment; they never change.

    reward_window:  seconds after which a decision's reward is learned; None learns it when all before it are settled
    default_reward: what is learned where no reward came within the window
    reward_bounds:  rewards lie within [low, high]; one that does not raises the alarm
    software:       version of surefoot that made the experiment
    history:        rewards of the baseline from before, learned before the first decision
    configuration:  the experiment.toml that it was made by, by which contexts become rows
    by:             who created it
    origin:         the experiment that it was forked from, whose settled rounds are in `history`
    confirm_within: seconds within which a learner round must be confirmed, or else counts at its worst
    skew:           seconds by which clocks of shards may differ, where they share a floor
    shard:          in the journal of a shard, its name
    token:          by which the hub knows this journal from another of the same shard's name
    hub:            hash of the first event where the shards meet
    feature_names:  what the features of a row, or the arms, are called
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
    description: str = ""
    configuration: str | None = None
    confirm_within: float | None = None
    by: str = ""
    origin: Forked | None = None
    skew: float | None = None
    shard: str | None = None
    token: str | None = None
    hub: str | None = None
    feature_names: list[str] | None = None


class CatalogueRecord(Record):
    """Rows that stay the same from round to round; `digest` is `surefoot.Catalogue.digest`."""

    digest: str
    rows: list[list[float]]


class Asked(Record):
    """What the caller asked: asking again with the same decision_id must bring the same.

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


class CertificateRecord(Record):
    """What the gate saw: see `surefoot.Certificate`. The learner was allowed exactly where guaranteed >= required."""

    guaranteed: Number
    required: Number
    proposal: int
    optimism: Number
    proof: ProofRecord
    method: str = "rows"
    gap: float = 0.0

    @property
    def margin(self) -> float:
        """guaranteed - required; inf where nothing is required."""
        required = float(self.required)
        return math.inf if required == -math.inf else float(self.guaranteed) - required


class DecisionRecord(Record):
    """One round.

    action:      the row that is to be played
    mode:        the experiment's mode at that moment
    is_held:     the baseline was to be played whatever the gate said: in shadow and paused mode, and in fallbacks
    is_fallback: the caller had played the baseline on its own, while the experiment could not be reached
    draw:        the coin of a holdout where the learner was allowed to play: below `holdout` it is the baseline's
    """

    decision_id: str
    round: int
    mode: ModeName
    asked: Asked
    action: int
    source: Source
    certificate: CertificateRecord
    is_held: bool = False
    is_fallback: bool = False
    draw: float | None = None


class RewardRecord(Record):
    """A reward that came in. `refused` is None where it was accepted.

    unrecorded: refusals for the same reason that came before this one and were only counted, for there were too many
    """

    decision_id: str
    value: Number
    refused: Reason | None = None
    unrecorded: int = 0


class AskedGuard(Record):
    """What the caller asked of a guard: asking again with the same decision_id must bring the same.

    baseline, proposal: the action of today and the one that is to be let in, any JSON value but null
    unit:               whom the reward belongs to, if that is more than this visit
    prediction:         of the baseline's reward in this round; for several metrics by name
    context:            anything the caller wants kept beside the decision; no guard looks at it
    """

    baseline: Any
    proposal: Any
    unit: str | None = None
    prediction: float | dict[str, float] | None = None
    context: dict[str, Any] | None = None


class Bank(Record):
    """What a metric's bank held before the round, in units of its highest reward: see `surefoot.safety.BankProof`."""

    metric: str
    log_wealth: list[float]
    bound: float
    owed: float
    carried: float
    cost: float
    coins: float = 0.0


class GuardCertificateRecord(Record):
    """Which share was allowed and by whom it was limited; one bank for each metric."""

    allowed: float
    binds: str
    banks: list[Bank]

    @property
    def margin(self) -> float:
        """What is left in the bank that binds if the round is at its worst."""
        # `carried` was written as all that the bank can pay, so the bound is in it.
        return min(bank.carried - bank.cost for bank in self.banks)


class Visit(Record):
    """Another visit of an open unit: the side that its coin chose in `round`, with the actions of now.

    share, draw: as they were in that round
    is_held:     the baseline was to be played whatever the coin said, then
    """

    decision_id: str
    round: int
    mode: ModeName
    asked: AskedGuard
    source: Source
    share: float
    draw: float | None = None
    is_held: bool = False
    is_fallback: bool = False

    @property
    def action(self) -> Any:
        """What is to be played."""
        return self.asked.proposal if self.source == "learner" else self.asked.baseline


class Guarded(Visit, kw_only=True):
    """One round of a guard.

    share: the probability with which the proposal was to be played
    draw:  the coin, uniform in [0, 1): the proposal is played where it lies below `share`; None where none was drawn
    """

    certificate: GuardCertificateRecord


class MetricReward(Record):
    """The rewards of a guard's decision by metric. `refused` is None where they were accepted; see `Reward`."""

    decision_id: str
    values: dict[str, Number]
    refused: Reason | None = None
    unrecorded: int = 0


class SettledWindow(Record, array_like=True):
    """A guard's window that closed: written as [decision_id, round, is_missing]."""

    decision_id: str
    round: int
    is_missing: bool


class Settled(Record):
    """Windows of a guard that have closed, in the order of their decisions."""

    windows: list[SettledWindow]


class Learned(Record, array_like=True):
    """A window that closed: written as [decision_id, round, value, is_default]."""

    decision_id: str
    round: int
    value: float
    is_default: bool


class Closed(Record):
    """Windows that have closed, in the order of their decisions."""

    learned: list[Learned]


class Snapshot(Record):
    """Attachment `digest` is the state after event `number`; `previous` is the number of the snapshot event before.

    software: version of surefoot that wrote it
    """

    digest: str
    number: int
    hash: str
    previous: int = 0
    software: str = ""


RECORDS: dict[str, type[Record]] = {
    CREATED: Created,
    CATALOGUE: CatalogueRecord,
    DECISION: DecisionRecord,
    REWARD: RewardRecord,
    CLOSED: Closed,
    MODE: Mode,
    ABANDONED: Abandoned,
    VOIDED: Voided,
    CORRECTED: Corrected,
    CONFIRMED: Confirmed,
    OVERDUE: Overdue,
    ACKNOWLEDGED: Acknowledged,
    ERASED: Erased,
    SNAPSHOT: Snapshot,
    GUARDED: Guarded,
    VISIT: Visit,
    METRIC_REWARD: MetricReward,
    SETTLED: Settled,
    JOINED: Joined,
    LEASED: LeaseRecord,
    HANDED_IN: HandedIn,
    BANK_LEASED: BankLease,
    BANK_HANDED_IN: BankHandedIn,
    LOST: Lost,
    LEASE_ENDED: LeaseEnded,
}
