"""Where an experiment stands: counts, what was earned by the newest estimate, and what is known of it for certain.

Counts are kept from event to event, so a status costs nothing. Of a linear policy the lift and the intervals are read
off the policy's own confidence set, which contains theta in every round with probability 1 - delta: whatever is summed
up of the ledger, and whenever somebody looks, lies within what the set allows for it.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from surefoot.arrays import Vector
from surefoot.journal import View
from surefoot.linear.ellipsoid import Ball, newest_set
from surefoot.linear.radius import RADII
from surefoot.policies import Guard
from surefoot.policies.arm_policy import PLAYS, SEEN, ArmPolicy, mean_of
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.policy import Policy
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.rounds import decode, events
from surefoot.rounds.events import Lost, ModeName, Reason, Response
from surefoot.safety.guard_certificate import certified
from surefoot.safety.metric import MetricKind, Promise
from surefoot.sharing.hub import NEXT_MODES, HubState
from surefoot.sharing.pots import Pot
from surefoot.values import Value

if TYPE_CHECKING:
    from surefoot.experiment.kinds import Kind
    from surefoot.experiment.state import Counts, State

# nan where it is not known, which JSON writes as null.
Known: TypeAlias = Annotated[float, msgspec.Meta(extra_json_schema={"nullable": True})]
Interval: TypeAlias = tuple[Known, Known]
GUARD_CONFIDENCE = 0.95  # of `core/lift.hpp`
MOST_LOSSES = 200  # that are looked up, the newest
STALLED = 1000  # rounds for which rewards may wait for a missing one before it counts as stalled


def ledger_estimates(policy: LinearPolicy) -> tuple[float, float]:
    """What was earned, and what the baseline would have earned, by the newest estimate; nan if unknown."""
    theta, (earned, baseline) = policy.core.ridge.theta, ledger_sums(policy)
    return earned.at(theta), baseline.at(theta) if policy.needs_baseline else math.nan


class LedgerSum(NamedTuple):
    """A sum of mean rewards: <theta, vector> + constant."""

    vector: Vector
    constant: float

    def at(self, theta: Vector) -> float:
        """Its value for one theta."""
        return float(theta @ self.vector) + self.constant

    def less(self, other: "LedgerSum", share: float) -> "LedgerSum":
        """The sum less a share of another."""
        return LedgerSum(self.vector - share * other.vector, self.constant - share * other.constant)


def ledger_sums(policy: LinearPolicy) -> tuple[LedgerSum, LedgerSum]:
    """What was earned, and what the baseline would have earned; rewards that are known count as they are."""
    ledger, known = policy.ledger, known_rewards(policy)
    if known is not None:
        kept, owed = known
        return LedgerSum(ledger.played, kept), LedgerSum(np.zeros(policy.dim), owed + kept)
    return LedgerSum(ledger.played + ledger.conserved, 0.0), LedgerSum(ledger.displaced + ledger.conserved, 0.0)


def known_rewards(policy: LinearPolicy) -> tuple[float, float] | None:
    """What the baseline earned, and would have earned in the learner's rounds, where both are known."""
    if isinstance(policy, SafeLUCB):
        return policy.known_rewards
    ledger = policy.ledger
    return (ledger.conserved_reward, ledger.displaced_reward) if policy.needs_baseline_reward else None


def arm_estimates(policy: ArmPolicy) -> tuple[float, float]:
    """The same of plain arms, by their means."""
    state: dict[str, Any] = policy.state()
    arms = state["arms"]
    means = [mean_of(arms, i) if arms[SEEN, i] else 0.0 for i in range(arms.shape[1])]
    earned = math.fsum(plays * mean for plays, mean in zip(arms[PLAYS], means, strict=True))
    known, default = policy.settings.get("baseline_reward"), state.get("default", -1)
    if default < 0:
        return earned, math.nan
    return earned, policy.rounds * (means[default] if known is None else known)


class Lift(Value, frozen=True, eq=True):
    """How much more a decision of the learner earned, on average, than the baseline would have.

    Of a guard it is about proposals, played or not, over the rounds in which they had a share.

    Attributes
    ----------
    metric : str
        Of a guard, the metric: its first floor.
    estimate, low, high : float
        In the reward's own unit. Of a guard there is no estimate, but nan: the difference of both sides' means would be
        misled where shares and rewards change over time, and lie outside of the interval, which is not.
    decisions : int
        The learner's decisions so far; those before a restart are not counted, and the interval is not about them.
    confidence : float
        The probability that the interval holds, at all times at once, if what was declared is true.
    kind : {"floor", "ceiling"}
        Of a guard, whether more of its metric is better, or less, as of costs.

    Examples
    --------
    >>> lift = Lift("reward", 0.02, 0.01, 0.03, 400, 0.95)
    >>> lift.is_paying, lift.is_costing
    (True, False)
    """

    metric: str
    estimate: Known
    low: Known
    high: Known
    decisions: int
    confidence: float
    kind: MetricKind = "floor"

    @property
    def is_paying(self) -> bool:
        """Whether the learner does better than the baseline, by the interval."""
        return self.high < 0 if self.kind == "ceiling" else self.low > 0

    @property
    def is_costing(self) -> bool:
        """Whether it does worse, by the interval."""
        return self.low > 0 if self.kind == "ceiling" else self.high < 0


class LiftProof(Value, frozen=True, eq=True):
    """When it was first proved that the learner pays, or does not: since the lift's interval holds at all times.

    Attributes
    ----------
    round : int
        How many rounds were decided by then.
    time : float
        Of the event that proved it.
    lift : Lift
        As it was then.

    Examples
    --------
    >>> LiftProof(400, 1754000000.0, Lift("reward", 0.02, 0.01, 0.03, 390, 0.95)).lift.is_paying
    True
    """

    round: int
    time: float
    lift: Lift


class Earnings(msgspec.Struct, frozen=True):
    """What is known of sums over the ledger of a policy; nan where nothing is.

    reward:  what all decisions have earned
    surplus: by how much that lies above the floor
    """

    reward: Interval = (math.nan, math.nan)
    surplus: Interval = (math.nan, math.nan)


NOTHING = Earnings()


def ledger_earnings(policy: LinearPolicy) -> Earnings:
    """What is known of a policy that is told its baseline; nothing while the alarm is on."""
    if not policy.needs_baseline or policy.alarm is not None:
        return NOTHING
    bounds = LedgerBounds(policy)
    surplus = bounds.less(1.0 - policy.settings["alpha"]) if policy.keeps_floor else NOTHING.surplus
    return Earnings(bounds.less(0.0), surplus)


def ledger_lift(policy: LinearPolicy) -> Lift | None:
    """Of a policy that is told its baseline; None before the learner's first round, and during an alarm."""
    if not policy.needs_baseline or policy.alarm is not None:
        return None
    decisions = int(policy.ledger.learner_rounds)
    if not decisions:
        return None
    earned, baseline = ledger_estimates(policy)
    low, high = LedgerBounds(policy).less(1.0)
    confidence = 1.0 - policy.settings["delta"]
    return Lift("reward", (earned - baseline) / decisions, low / decisions, high / decisions, decisions, confidence)


def guard_lift(guard: Guard, decisions: int) -> Lift | None:
    """Of a guard's first floor, or else of its first metric; None before the learner's first decision.

    What is to save something pays by its first ceiling, if there is one.
    """
    if not decisions:
        return None
    metrics = guard.metrics
    kind = "ceiling" if guard.settings["goal"] == "save" else "floor"
    name = next((name for name, metric in metrics.items() if metric.kind == kind), next(iter(metrics)))
    return Lift(name, math.nan, *guard.lift_intervals[name], decisions, GUARD_CONFIDENCE, metrics[name].kind)


class LedgerBounds:
    """Bounds of what was earned less a share of what the baseline would have earned, over the whole ledger."""

    def __init__(self, policy: LinearPolicy) -> None:
        self._rounds = policy.ledger.learner_rounds, policy.ledger.baseline_rounds
        self._earned, self._baseline = ledger_sums(policy)
        self._is_known = known_rewards(policy) is not None
        self._core, self._ball = policy.core, Ball(policy.settings["theta_bound"])
        self._misfit = float(policy.settings.get("misspecification", 0.0))
        self._unconfirmed = policy.charged if isinstance(policy, SafeLUCB) else 0.0

    def less(self, share: float) -> Interval:
        """What the confidence set and the declared length of theta allow, all rounds at once."""
        vector, constant = self._earned.less(self._baseline, share)
        slack = self._unconfirmed + self._misfit * self._weight(share)
        (mean, spread), (_, reach) = self._support(vector), self._ball.support(vector)
        return max(mean - spread, -reach) + constant - slack, min(mean + spread, reach) + constant + slack

    def _support(self, vector: Vector) -> tuple[float, float]:
        """Of the newest confidence set, where the core has it; what `dual` has there is chosen for one question."""
        core = self._core
        if core.settings.radius == RADII["dual"]:
            return newest_set(core).support(vector)
        mean, spread = core.range(core.ridge.guarded_radius(core.radius), vector)
        return float(mean), float(spread)

    def _weight(self, share: float) -> float:
        """How often a mean counts that may be off by the declared misspecification."""
        learner, baseline = self._rounds
        return learner if self._is_known else learner * (1.0 + share) + baseline * (1.0 - share)


class MetricStatus(Value, frozen=True, eq=True):
    """Where one metric of a guard stands, in its own units.

    Attributes
    ----------
    kind, alpha : str and float
        At least (1 - alpha) of the baseline's is kept ("floor"), or at most (1 + alpha) reached ("ceiling").
    bank : float
        What may be spent; rounds without a reward count at their worst.
    learner_mean, baseline_mean : float
        Means of the rewards that were booked for each side, defaults included and a unit counted once; nan before the
        first.
    lift : float
        By which share the learner's mean lies above the baseline's. Where shares and rewards change over time, that is
        misled: whether it pays is said by the interval.
    lift_low, lift_high : float
        How much more a proposal earned than the baseline would have, on average: 95% at all times at once, over the
        rounds in which it had a share.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05)
    >>> models = surefoot.Experiment.create(surefoot.open_journal("memory:"), "models", guard)
    >>> models.status().guard.metrics["reward"].kind
    'floor'
    """

    kind: MetricKind
    alpha: float
    bank: Known
    learner_mean: Known
    baseline_mean: Known
    lift: Known
    lift_low: Known
    lift_high: Known


class GuardStatus(Value, frozen=True, eq=True):
    """Where a guard stands after the newest event.

    Attributes
    ----------
    promise : {"mean", "played"}
        What the floor is kept by.
    share : float
        The probability with which the next proposal would be played, if the learner were allowed to play.
    allowed : float
        The largest share that is proved to be safe.
    binds : str
        The metric that allows least.
    metrics : dict of str to MetricStatus
        Where each metric stands.
    differing_rounds : int
        Rounds, not held, in which the proposal was another action than the baseline's: the others are the baseline's by
        any coin.
    visits, open_units : int
        Visits of units after their first, and units whose window is open.
    late_rounds : int
        Rounds whose reward is missing while later ones have come: each counts at its worst until it comes.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05)
    >>> models = surefoot.Experiment.create(surefoot.open_journal("memory:"), "models", guard)
    >>> models.status().guard.binds
    'reward'
    """

    promise: Promise
    share: float
    allowed: float
    binds: str
    metrics: dict[str, MetricStatus]
    differing_rounds: int
    visits: int
    open_units: int
    late_rounds: int


def guard_status(guard: Guard, counts: "Counts") -> GuardStatus:
    """The status of a guard."""
    names = tuple(guard.metrics)
    gate = certified(names, guard.step_settings.metrics, guard._books.snapshot, 0.0, False)
    banks, lifts = guard.banks, guard.lift_intervals
    learner, baseline = (guard.booked.means(is_learner=is_learner) for is_learner in (True, False))
    return GuardStatus(
        promise=guard.settings["promise"],
        share=guard.share,
        allowed=gate.allowed,
        binds=gate.binds,
        metrics={
            name: MetricStatus(
                metric.kind,
                metric.alpha,
                banks[name],
                learner[name],
                baseline[name],
                _relative(learner[name], baseline[name]),
                *lifts[name],
            )
            for name, metric in guard.metrics.items()
        },
        differing_rounds=counts.differing_rounds,
        visits=counts.visits,
        open_units=len(guard.units),
        late_rounds=guard.settlement.late,
    )


def _relative(learner: float, baseline: float) -> float:
    """By which share one mean lies above the other; nan where that is not known."""
    return learner / baseline - 1.0 if baseline > 0.0 else math.nan


class Status(msgspec.Struct, frozen=True):
    """Where an experiment stands after its newest event, in numbers that a manager can read.

    Attributes
    ----------
    name, policy, mode : str
        The experiment, its policy, and who may play.
    allowed_modes, description, reward_unit : list, str, and str or dict
        What it can go over to, what it is about, and what rewards are counted in, by metric where metrics have names.
    events, head_hash, time : int, str and float
        Number, hash and time of the newest event.
    rounds, learner_rounds, baseline_rounds : int
        Rounds decided, and by whom.
    held_rounds, fallback_rounds : int
        Rounds that had to be the baseline's whatever the gate said, and those of them that callers played on their own.
    learner_share, allowed_share : float
        Share of rounds that the learner played, and in which the gate let a proposal pass. In shadow nothing is spent
        of what the gate allows, so that it lets many more pass than the learner would have played.
    floor : float
        What must have been earned by now: (1 - alpha) of the baseline's reward, exact if that is known and estimated
        otherwise; nan for a policy without a floor.
    guaranteed : float
        floor + margin; nan while the alarm is on.
    margin : float
        Of the newest learner round, which baseline rounds since can only have raised: the mean rewards add up to at
        least this much more than the floor, with probability 1 - delta and if what was declared is true. nan before the
        first.
    proposed_margin : float
        Of the newest proposal: below 0 it was not allowed.
    worst_margin, worst_round : float and int
        The least margin of all learner rounds, and where that was.
    pending, waiting : int
        Decisions whose reward is not learned yet, and those of them whose reward has come and waits for an earlier one.
    held_up_by, held_up_rounds, is_stalled : str, int and bool
        The decision that rewards wait for, how many rounds ago it was made, and whether that is long.
    rewards, learned, defaults, abandoned : int
        Rewards accepted, learned, learned by default, and decisions settled without one.
    voided : int
        Rounds that were not played as decided; of linear policies they count on the side that was played.
    unconfirmed : int
        Learner rounds that nobody has confirmed in time, which count at their worst (`confirm_within`).
    total_reward : float
        Sum of the rewards received, defaults included.
    estimated_reward, estimated_baseline : float
        What was earned, and what the baseline would have earned, by the newest estimate.
    refused : dict
        Refused rewards by reason.
    is_refuted, alarm, alarm_round, alarm_answer, alarm_responses
        Whether the alarm is on; what happened, after how many rounds; "stay" if it was acknowledged so; possible
        answers.
    restarts, promise_round, debt
        Alarms answered by a restart, the round from which the promise counts, and what must be earned back under it.
    lift : Lift or None
        How much more a decision of the learner earned than the baseline would have, with an interval that holds at all
        times at once; None before its first, while the alarm is on, and for policies that have no such interval.
    proof : LiftProof or None
        When the newest answer to whether it pays was first proved, of the learner since its newest restart; None where
        neither answer was, and for shards.
    reward_interval, surplus_interval : (low, high)
        What was earned, and by how much that lies above the floor: bounds that hold at all times with probability
        1 - delta. nan where there are none.
    guard : GuardStatus or None
        Of a guard: its share, its banks, and the means of both sides. There `floor` is nan, margins are in units of the
        highest reward, and `learned` counts every round that is settled.

    Examples
    --------
    >>> import surefoot
    >>> shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", surefoot.UCB(arms=2))
    >>> shop.status().mode, shop.status().rounds
    ('shadow', 0)
    """

    name: str
    policy: str
    mode: ModeName
    events: int
    time: float
    rounds: int
    learner_rounds: int
    baseline_rounds: int
    held_rounds: int
    fallback_rounds: int
    learner_share: float
    allowed_share: float
    floor: Known
    guaranteed: Known
    margin: Known
    proposed_margin: Known
    worst_margin: Known
    worst_round: int
    pending: int
    waiting: int
    held_up_by: str | None
    held_up_rounds: int
    is_stalled: bool
    rewards: int
    learned: int
    defaults: int
    abandoned: int
    total_reward: Known
    estimated_reward: Known
    estimated_baseline: Known
    refused: dict[Reason, int]
    is_refuted: bool
    alarm: str | None
    alarm_round: int
    alarm_answer: Response | None
    alarm_responses: tuple[Response, ...]
    restarts: int
    promise_round: int
    debt: Known
    voided: int = 0
    head_hash: str = ""
    unconfirmed: int = 0
    guard: GuardStatus | None = None
    lift: Lift | None = None
    proof: LiftProof | None = None
    reward_interval: Interval = NOTHING.reward
    surplus_interval: Interval = NOTHING.surplus
    allowed_modes: tuple[ModeName, ...] = ()
    description: str = ""
    reward_unit: str | dict[str, str] = ""

    @property
    def differing_share(self) -> float:
        """Of a guard, the learner's share of the rounds in which both actions differed; nan where there are none."""
        differing = 0 if self.guard is None else self.guard.differing_rounds
        return self.learner_rounds / differing if differing else math.nan

    def __repr__(self) -> str:
        # Fifty fields would hide the few that matter; `msgspec.structs.asdict` has them all.
        lift = "" if self.lift is None else f", lift={self.lift.low:.4g} to {self.lift.high:.4g}"
        guard = "" if self.guard is None else f", share={self.guard.share:.4g}"
        margin = "" if math.isnan(self.margin) else f", margin={self.margin:.4g}"
        alarm = "" if self.alarm is None else f", alarm={self.alarm!r}"
        return (
            f"Status({self.name!r}, policy={self.policy!r}, mode={self.mode!r}, rounds={self.rounds}, "
            f"learner_share={self.learner_share:.4g}{guard}{lift}{margin}, pending={self.pending}{alarm})"
        )


def status_of(name: str, state: "State") -> Status:
    """The status at the state's head."""
    counts, policy = state.counts, state.policy
    rounds, settlement, alarm = policy.rounds, policy.settlement, policy.alarm
    earned, baseline = state.kind.estimates(policy)
    earned, baseline = earned + counts.carried_reward, baseline + counts.carried_baseline
    known = state.kind.earnings(policy)
    guard, lift = state.kind.standing(policy, counts), state.kind.lift(policy, counts.learner_rounds)
    floor = math.nan if guard is not None else (1 - policy.settings.get("alpha", math.nan)) * baseline
    margin = math.nan if alarm is not None and policy.keeps_floor else counts.newest_margin
    # Of what a promise has carried over a restart there are estimates alone.
    reward, surplus = (NOTHING.reward, NOTHING.surplus) if counts.carried_baseline else (known.reward, known.surplus)
    held_up_rounds = 0 if policy.held_up_by is None else rounds - policy.held_up_by
    return Status(
        name=name,
        policy=state.created.policy,
        mode=state.mode,
        events=state.head.number,
        time=state.time,
        rounds=rounds,
        learner_rounds=counts.learner_rounds,
        baseline_rounds=counts.baseline_rounds,
        held_rounds=counts.held_rounds,
        fallback_rounds=counts.fallback_rounds,
        learner_share=counts.learner_rounds / max(rounds, 1),
        allowed_share=counts.allowed_rounds / max(rounds, 1),
        floor=floor,
        guaranteed=floor + margin,
        margin=margin,
        proposed_margin=counts.proposed_margin,
        worst_margin=counts.worst_margin if counts.worst_round else math.nan,
        worst_round=counts.worst_round,
        pending=len(settlement),
        waiting=settlement.rewards_waiting,
        held_up_by=state.open_ids.get(policy.held_up_by or 0),
        held_up_rounds=held_up_rounds,
        is_stalled=held_up_rounds >= STALLED,
        rewards=counts.rewards,
        # A guard books an abandoned round at its worst, which is settled, too.
        learned=rounds - len(settlement) - (counts.abandoned if guard is None else 0),
        defaults=counts.defaults + settlement.defaults,
        abandoned=counts.abandoned,
        total_reward=_total_reward(state),
        estimated_reward=earned,
        estimated_baseline=baseline,
        refused={reason: entry.total for reason, entry in counts.refusals.items()},
        is_refuted=alarm is not None,
        alarm=None if alarm is None else alarm.text,
        alarm_round=0 if alarm is None else alarm.round,
        alarm_answer=_answer(state),
        alarm_responses=policy.responses,
        restarts=len(counts.restarts),
        promise_round=counts.promise_round,
        debt=float(getattr(policy, "debt", 0.0)),
        voided=counts.voided,
        head_hash=state.head.hash,
        unconfirmed=state.unconfirmed.overdue,
        guard=guard,
        lift=lift,
        proof=counts.proof,
        reward_interval=reward,
        surplus_interval=surplus,
        allowed_modes=NEXT_MODES[state.mode],
        description=state.created.description,
        reward_unit=state.created.reward_unit,
    )


def _total_reward(state: "State") -> float:
    """Sum of the rewards received, defaults included; a guard's are in its own status, by metric."""
    settlement = state.policy.settlement
    if isinstance(settlement.default_reward, tuple):
        return math.nan
    return float(state.counts.total_reward + settlement.defaults * settlement.default_reward)


def _answer(state: "State") -> Response | None:
    """What was answered to the alarm that is on."""
    alarm, answer = state.policy.alarm, state.answer
    return answer.response if alarm is not None and answer is not None and answer.alarm_round == alarm.round else None


class ShardStatus(msgspec.Struct, frozen=True):
    """One shard, as the hub knows it.

    Attributes
    ----------
    name : str
        The shard.
    lease : int
        How many leases it has had.
    amounts : dict
        What it may lose under the present one, by metric.
    rounds, waiting : int
        Rounds handed in so far, and those of them that are not merged, since others have not come as far.
    through : float
        Every round that it decided before is handed in.
    is_away, lost, lost_by
        Whether nobody waits for it: it has left, or somebody said so, with a reason.

    Examples
    --------
    >>> ShardStatus("berlin", 3, {"reward": 2.5}, 40, 0, 1754000000.0, is_away=False).lost is None
    True
    """

    name: str
    lease: int
    amounts: dict[str, float]
    rounds: int
    waiting: int
    through: Known
    is_away: bool
    lost: str | None = None
    lost_by: str = ""


class HubStatus(msgspec.Struct, frozen=True):
    """What is known where shards meet, after the newest event; of a shard that cannot reach it, of that one alone.

    Attributes
    ----------
    name, policy, mode, events, head_hash, time, alarm
        As in `Status`, of the chain where the shards meet.
    rounds, pending : int
        Rounds of all shards, as far as they are merged, and those of them without a reward that is learned.
    shards : int
        How many are there: neither lost nor gone.
    pots, leased : dict
        What may be lost in all, and what is leased of it, by metric; empty where the hub does not answer.
    members : tuple of ShardStatus
        Every shard that has joined.
    lift : Lift or None
        Over the rounds of all shards; a shard's own status is about its newest lease.
    shard, error : str or None
        Of the shard that was asked, its name, and why its lease was not renewed when that was last tried.
    is_shared : bool
        Always true, to tell it from a `Status`.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.experiment import create_shared, read_status
    >>> hub = surefoot.open_journal("memory:")
    >>> create_shared(hub, "models", surefoot.Guard(alpha=0.1, delta=0.05), skew=1.0)
    >>> read_status(hub, "models").shards
    0
    """

    name: str
    policy: str
    mode: ModeName
    events: int
    head_hash: str
    time: float
    rounds: int
    pending: int
    shards: int
    pots: dict[str, float]
    leased: dict[str, float]
    alarm: str | None
    members: tuple[ShardStatus, ...]
    lift: Lift | None = None
    shard: str | None = None
    error: str | None = None
    is_shared: bool = True


def hub_status(name: str, kind: "Kind", state: HubState, view: View) -> HubStatus:
    """The status where shards meet."""
    coordinator = state.coordinator
    pot, policy = coordinator.pot, coordinator.policy
    lost = dict[str, Lost]()
    for event in view.newest_of(events.LOST, MOST_LOSSES):
        record = decode(event, Lost)
        lost.setdefault(record.shard, record)  # the newest word of each comes first
    return HubStatus(
        name=name,
        policy=state.created.policy,
        mode=state.mode.mode,
        events=state.head.number,
        head_hash=state.head.hash,
        time=state.time,
        rounds=policy.rounds,
        pending=len(policy.pending),
        shards=state.present(),
        pots=_by_metric(type(pot), policy, pot.totals()),
        leased=_by_metric(type(pot), policy, coordinator.leased),
        alarm=None if policy.alarm is None else policy.alarm.text,
        members=tuple(
            ShardStatus(
                name=shard,
                lease=member.lease,
                amounts=_by_metric(type(pot), policy, member.amounts),
                rounds=member.rounds,
                waiting=len(member.waiting),
                through=member.through,
                is_away=member.is_away,
                lost=lost[shard].reason if member.is_away and shard in lost else None,
                lost_by=lost[shard].by if member.is_away and shard in lost else "",
            )
            for shard, member in sorted(coordinator.members.all.items())
        ),
        lift=kind.lift(policy, 0),  # a guard's is about the decisions of one process
    )


def own_status(name: str, state: "State") -> HubStatus:
    """What a shard knows by its own chain: the lease that it has, or had last."""
    shard, policy = state.shard, state.policy
    assert shard is not None
    members: tuple[ShardStatus, ...] = ()
    if shard.lease is not None:
        lease = shard.lease
        amounts = _by_metric(state.kind.pot, policy, lease.amounts)
        members = (ShardStatus(shard.shard, lease.number, amounts, lease.merged, 0, lease.since, is_away=False),)
    return HubStatus(
        name=name,
        policy=state.created.policy,
        mode=state.mode,
        events=state.head.number,
        head_hash=state.head.hash,
        time=state.time,
        rounds=0,
        pending=0,
        shards=len(members),
        pots={},
        leased={},
        alarm=None if policy.alarm is None else policy.alarm.text,
        members=members,
    )


def _by_metric(pot: type[Pot], policy: Policy, amounts: Sequence[float]) -> dict[str, float]:
    """Amounts in the units of their metrics; nothing where there is no lease."""
    units = pot.units(policy)
    by_unit = zip(units.items(), amounts or [0.0] * len(units), strict=True)
    return {name: unit * amount for (name, unit), amount in by_unit}
