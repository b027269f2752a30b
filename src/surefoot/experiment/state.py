"""The state of an experiment at a head of its chain: events in, state out, the same bits in every process.

The process that decides advances its state as it writes; all others, and a recovery, advance it by `apply`.

A sale arrives, but a visit without one is never reported. So a reward waits until its window closes and is learned
then, in the order of the decisions; if none came, the default is (docs/mathematics.md, "The order of learning").

A caller that gave up waiting, or died, leaves a round in the ledger that perhaps nobody played. Where an experiment
declares `confirm_within`, a learner round must be confirmed within so many seconds: by the verb (`confirm`), by its
reward, or by the word that something else was played (`void`). One that is not counts at its worst until it is: as much
is charged for it as the declared means allow, so that no later proof rests on what it may have earned.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice, takewhile
from typing import Any

import msgspec

from surefoot.errors import (
    AlarmError,
    ConfigError,
    JournalCorruptedError,
    JournalError,
    JournalSchemaError,
    SurefootError,
)
from surefoot.experiment.kinds import Kind, kind_of
from surefoot.experiment.sealing import find_reference, find_rewards, reference, round_number
from surefoot.experiment.status import LiftProof
from surefoot.journal import Event, Head, View
from surefoot.linear.actions import Catalogue
from surefoot.policies.baseline_forecast import BaselineForecast
from surefoot.policies.by_name import first_policy
from surefoot.policies.policy import Policy
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.rounds import decode, events
from surefoot.rounds.events import (
    METRIC,
    Created,
    HandIn,
    Lease,
    LeaseEnded,
    Mode,
    ModeName,
    Reason,
    Response,
    Reward,
    SettledWindow,
)
from surefoot.rounds.format import unpack
from surefoot.safety.alarm import Alarm

MOST_CATALOGUES = 4  # kept in memory; older ones are read from the journal again
FORECAST_FROM = 1000  # rounds that a forecast is made of when a process begins
FORECAST_BYTES = 2_000_000  # of them, more or less
HOUR = 3600.0


class Refusals(msgspec.Struct):
    """Refusals for one reason: all of them, and those recorded in the newest hour that had any."""

    total: int = 0
    hour: int = 0
    recorded: int = 0

    def recorded_in(self, time: float) -> int:
        """How many were recorded in the hour of this time."""
        return self.recorded if self.hour == time // HOUR else 0


class Counts(msgspec.Struct, forbid_unknown_fields=True):
    """What happened so far, in numbers.

    allowed:   rounds in which the learner might have played, whether it did or not
    floor:     margin and round of the newest learner round; `worst` of the one with the least margin
    proposed:  margin of the newest proposal
    differing: rounds of a guard, not held, in which the proposal was another action than the baseline's
    visits:    of open units, beside rounds
    voided:    rounds that were not played as decided
    restarts:  after which round an alarm was answered, and how
    carried:   estimates of what was earned before a restart under the same promise
    proof:     when the newest answer to whether the learner pays was first proved, since the newest restart
    """

    learner_rounds: int = 0
    baseline_rounds: int = 0
    held_rounds: int = 0
    fallback_rounds: int = 0
    allowed_rounds: int = 0
    differing_rounds: int = 0
    visits: int = 0
    proposed_margin: float = math.nan
    newest_margin: float = math.nan
    newest_round: int = 0
    worst_margin: float = math.inf
    worst_round: int = 0
    rewards: int = 0
    defaults: int = 0
    abandoned: int = 0
    voided: int = 0
    total_reward: float = 0.0
    refusals: dict[Reason, Refusals] = {}
    restarts: list[tuple[int, Response]] = []
    carried_reward: float = 0.0
    carried_baseline: float = 0.0
    proof: LiftProof | None = None

    @property
    def promise_round(self) -> int:
        """The round from which the promise counts."""
        return 1 + max((round_ for round_, response in self.restarts if response == "renew"), default=0)

    @property
    def restart_round(self) -> int:
        """The last round before the newest restart; 0 where there was none."""
        return self.restarts[-1][0] if self.restarts else 0

    def decided(self, record: Any, *, differs: bool) -> None:
        """Count a round; `differs` where a guard's proposal was another action than the baseline's."""
        certificate = record.certificate
        margin = certificate.margin
        self.proposed_margin = margin
        self.allowed_rounds += certificate.is_allowed
        self.differing_rounds += differs and not record.is_held
        self.held_rounds += record.is_held
        self.fallback_rounds += record.is_fallback
        if record.source == "baseline":
            self.baseline_rounds += 1
            return
        self.learner_rounds += 1
        self.newest_margin, self.newest_round = margin, record.round
        if margin < self.worst_margin:
            self.worst_margin, self.worst_round = margin, record.round

    def moved(self, *, was_learner: bool, is_learner: bool) -> None:
        """Count a round that was not played as decided on the side that was played."""
        self.voided += 1
        self.learner_rounds += is_learner - was_learner
        self.baseline_rounds += was_learner - is_learner

    def rewarded(self, record: Reward, time: float) -> None:
        """Count a reward, accepted or refused."""
        if record.refused is None:
            self.rewards += 1
            return
        entry = self.refusals.setdefault(record.refused, Refusals())
        entry.total += 1 + record.unrecorded
        entry.recorded = entry.recorded_in(time) + 1
        entry.hour = int(time // HOUR)

    def restarted(self, round_: int, response: Response, earned: float, baseline: float) -> None:
        """Start again: earlier margins rested on what was contradicted."""
        self.restarts = [*self.restarts, (round_, response)]
        keeps = response == "relearn"
        self.carried_reward = self.carried_reward + earned if keeps else 0.0
        self.carried_baseline = self.carried_baseline + baseline if keeps else 0.0
        self.proposed_margin = self.newest_margin = math.nan
        self.worst_margin, self.worst_round, self.newest_round = math.inf, 0, 0
        self.proof = None


class OpenWindow(msgspec.Struct):
    """A decision whose window is open; `values` are its rewards by metric, once some came."""

    decision_id: str
    round: int
    closes: float
    values: dict[str, float] | None = None


class Windows:
    """The open windows. Times never run backwards, so the order of decisions is the order in which they close."""

    def __init__(self, seconds: float, waiting: Iterable[OpenWindow] = ()) -> None:
        self._seconds = seconds
        # Ordered: a plain dict whose oldest entry is removed again and again takes ever longer to find the next.
        self._open = OrderedDict((entry.decision_id, entry) for entry in waiting)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenWindow]:
        return iter(self._open.values())

    def begin(self, decision_id: str, round_: int, time: float) -> None:
        """Open the window of a decision."""
        self._open[decision_id] = OpenWindow(decision_id, round_, time + self._seconds)

    def find(self, decision_id: str) -> OpenWindow | None:
        """The open window of a decision."""
        return self._open.get(decision_id)

    def due(self, now: float, most: int) -> list[SettledWindow]:
        """The windows that close by `now`, oldest first, at most `most` of them."""
        ripe = islice(takewhile(lambda entry: entry.closes <= now, self._open.values()), most)
        return [
            SettledWindow(decision_id=entry.decision_id, round=entry.round, is_missing=entry.values is None)
            for entry in ripe
        ]

    def close(self, window: SettledWindow) -> OpenWindow | None:
        """Remove the oldest window; None if that is not the one that is meant."""
        oldest = next(iter(self._open.values()), None)
        # Only the oldest may close: in any other order what is learned proves nothing.
        if oldest is None or (oldest.decision_id, oldest.round) != (window.decision_id, window.round):
            return None
        return self._open.pop(oldest.decision_id)

    def abandon(self, decision_id: str) -> None:
        """Remove the window of a decision whose reward will never be learned."""
        del self._open[decision_id]


class UnconfirmedRound(msgspec.Struct):
    """A learner round that was not confirmed yet, and from when on it counts at its worst."""

    decision_id: str
    round: int
    due: float
    is_overdue: bool = False
    is_condemned: bool = False  # it counts at its worst whatever is said of it


class UnconfirmedRounds:
    """The rounds that wait to be confirmed, oldest first; none where nothing was declared."""

    def __init__(self, seconds: float | None, policy: Policy) -> None:
        self._seconds, self._policy = seconds, policy
        self._waiting: OrderedDict[str, UnconfirmedRound] = OrderedDict()
        self._overdue: dict[str, UnconfirmedRound] = {}

    def __iter__(self) -> Iterator[UnconfirmedRound]:
        return iter((*self._overdue.values(), *self._waiting.values()))

    @property
    def overdue(self) -> int:
        """How many count at their worst."""
        return len(self._overdue)

    def restore(self, rounds: Iterable[UnconfirmedRound]) -> None:
        """Go on from a snapshot, in which the policy has charged what is overdue."""
        for one in rounds:
            (self._overdue if one.is_overdue else self._waiting)[one.decision_id] = one

    def begin(self, decision_id: str, round_: int, time: float) -> None:
        """Wait for the word that a learner round was played."""
        if self._seconds is not None:
            self._waiting[decision_id] = UnconfirmedRound(decision_id, round_, time + self._seconds)

    def awaits(self, decision_id: str) -> bool:
        """Whether it was not confirmed yet."""
        late = self._overdue.get(decision_id)
        return decision_id in self._waiting or (late is not None and not late.is_condemned)

    def due(self, now: float) -> list[tuple[str, int]]:
        """The rounds that count at their worst from now on; times never run backwards, so the oldest are due first."""
        if not self._waiting:
            return []
        ripe = list[tuple[str, int]]()
        for one in self._waiting.values():
            if one.due > now:
                break
            ripe.append((one.decision_id, one.round))
        return ripe

    def charge(self, rounds: Iterable[tuple[str, int]]) -> None:
        """Count rounds at their worst."""
        for decision_id, _ in rounds:
            late = self._waiting.pop(decision_id)
            late.is_overdue = True
            self._overdue[decision_id] = late
        self._charge()

    def confirm(self, decision_ids: Iterable[str]) -> None:
        """These were played, or it was said what was played instead."""
        before = len(self._overdue)
        for decision_id in decision_ids:
            self._waiting.pop(decision_id, None)
            late = self._overdue.get(decision_id)
            if late is not None and not late.is_condemned:
                del self._overdue[decision_id]
        if len(self._overdue) != before:
            self._charge()

    def condemn(self, decision_id: str, round_: int) -> None:
        """Count a round at its worst for good."""
        self._waiting.pop(decision_id, None)
        self._overdue[decision_id] = UnconfirmedRound(decision_id, round_, 0.0, is_overdue=True, is_condemned=True)
        self._charge()

    def clear(self) -> None:
        """Wait for nothing more: a restart has charged, or forgotten, all rounds before it."""
        self._waiting.clear()
        self._overdue.clear()

    def _charge(self) -> None:
        assert isinstance(self._policy, SafeLUCB), "only such an experiment is created with `confirm_within`"
        self._policy.charge(len(self._overdue))


class ShardLease:
    """What a shard may spend, and what it has to hand in.

    lease:       the newest one; None before the first
    is_whole:    whether the policy has what the lease knew
    since:       rounds that are not handed in
    due:         what is to be handed in before the next lease
    shared_mode: the event where the shards meet that the mode was taken from
    unshared:    a pause that the others are to be told of
    """

    def __init__(self, shard: str, token: str) -> None:
        self.shard, self.token = shard, token
        self.lease: Lease | None = None
        self.is_whole = True
        self.since: list[Any] = []
        self.due: Any = None
        self.shared_mode = 0
        self.unshared: Mode | None = None

    def went_over(self, record: Mode) -> None:
        """Note where a mode came from."""
        self.unshared = record if record.shared == 0 else None
        self.shared_mode = max(self.shared_mode, record.shared or 0)

    def holds(self, round_: int) -> bool:
        """Whether a round counts in the present lease; once handed in, it stands in the shared ledger as decided."""
        return self.due is None and self.is_whole and bool(self.since) and round_ >= self.since[0].number


class State:
    """An experiment at `head`."""

    def __init__(self, created: Created, policy: Any, head: Head, time: float) -> None:
        self.created, self.policy, self.head, self.time = created, policy, head, time
        self.kind = kind_of(created)
        self.mode: ModeName = created.mode
        self.windows = None if created.reward_window is None else Windows(created.reward_window)
        self.unconfirmed = UnconfirmedRounds(created.confirm_within, policy)
        self.counts = Counts()
        self.open_ids: dict[int, str] = {}  # decisions without a reward, by round; windows keep their own
        self.answer: events.Acknowledged | None = None  # to the alarm that was answered last
        self.restored = 0  # the event that says the chain was restored from a copy, the newest
        self.snapshots: list[tuple[int, str]] = []  # event number and attachment, the newest two
        self.catalogues: OrderedDict[str, Catalogue] = OrderedDict()
        self._forecast: BaselineForecast | None = None
        self.shard: ShardLease | None = None
        if created.skew is not None:
            if created.shard is None or created.token is None:
                raise ConfigError(
                    "This is the ledger that shards share: join it with a journal of the shard's own "
                    "(`Experiment.join`)."
                )
            self.shard = ShardLease(created.shard, created.token)

    def holds(self, now: float) -> bool:
        """Whether only the baseline plays: by the mode or, at an edge, since its lease has expired."""
        lease = None if self.shard is None else self.shard.lease
        is_expired = lease is not None and lease.expires is not None and now >= lease.expires
        return self.mode != "guarded" or is_expired

    @property
    def rounds(self) -> int:
        """Rounds that are counted: the policy's own may be one ahead while a round is being written."""
        return self.counts.learner_rounds + self.counts.baseline_rounds

    def apply(self, event: Event, view: View) -> None:
        """Apply the event that follows the head."""
        if event.previous != self.head.hash:
            raise JournalCorruptedError(f"Event {event.number} of {view.name!r} must follow {self.head}, but does not.")
        if event.kind not in self.kind.records:
            raise JournalSchemaError(
                f"Event {event.number} of {view.name!r} is of an unknown kind, {event.kind!r}. "
                "A newer surefoot has written it: update this one."
            )
        try:
            record: Any = decode(event, self.kind.records[event.kind])
            if event.kind in APPLY:
                APPLY[event.kind](self, record, event, view)
        except JournalError:
            raise
        except SurefootError as error:
            raise JournalCorruptedError(
                f"Event {event.number} ({event.kind}) of {view.name!r} cannot be applied: {error}"
            ) from error
        self.reached(event.head, event.time)

    def reached(self, head: Head, time: float) -> None:
        """Move to this head; time never runs backwards."""
        self.head, self.time = head, max(self.time, time)

    def decided(self, record: Any, time: float, rows: Any = None) -> None:
        """Count a round that the policy has decided; of rows those that were offered, where a shard hands it in."""
        ref = record.decision_id
        if record.is_fallback and self.kind.learns_in_order:
            # Clients report such rounds in an order of their own, which may follow the rewards.
            self.policy.exclude(record.round)
        self.counts.decided(record, differs=self.kind.differs(record.request))
        if record.source == "learner":
            self.unconfirmed.begin(ref, record.round, time)
        if self.shard is not None:
            self.shard.since.append(self.kind.handed(record, time, rows))
        if self.windows is not None:
            self.windows.begin(ref, record.round, time)
            return
        self.open_ids[record.round] = ref
        # Of units: a round without one may still await its reward.
        if self.kind.closes_after is not None and not self.policy.settlement.awaits(
            closed := record.round - self.kind.closes_after
        ):
            self.open_ids.pop(closed, None)
            self._look_for_proof(time)

    def _look_for_proof(self, time: float) -> None:
        """Keep when the lift's interval first says that the learner pays, or does not.

        Not of a shard, whose interval is about its newest lease.
        """
        counts, known = self.counts, self.counts.proof
        lift = self.kind.lift(self.policy, counts.learner_rounds) if self.shard is None else None
        is_proof = lift is not None and (lift.is_paying or lift.is_costing)
        if lift is not None and is_proof and (known is None or known.lift.is_paying != lift.is_paying):
            self.counts.proof = LiftProof(self.rounds, time, lift)

    def forecast(self, view: View) -> BaselineForecast:
        """What a process knows of how the baseline's rewards follow from contexts.

        It is made of the newest rounds as far as they are not erased, and learns on from those that come. What it says
        is recorded with each round, so nothing that is recalled, proved or audited depends on what it is made of.
        """
        if self._forecast is None:
            self._forecast = BaselineForecast(self.policy)
            for event, record in reversed(recent_rounds(self.kind, view) if self._forecast.metrics else []):
                self.await_baseline(record, record.request.context)
                for reward in find_rewards(view, reference(event)):
                    if reward.kind == events.REWARD:
                        self._forecast.rewarded(record.round, _numbers(decode(reward, events.Reward)))
        return self._forecast

    def await_baseline(self, record: events.PairRound, context: dict[str, Any] | None) -> None:
        """Let the forecast, where there is one, await the rewards of a round that the baseline plays."""
        if self._forecast is not None and record.source == "baseline":
            self._forecast.opened(record.round, context)

    def forget_contexts(self) -> None:
        """Make the forecast anew, now that contexts were erased."""
        self._forecast = None

    def open_unit(self, unit: str) -> str | None:
        """The decision that opened a unit's round; None where it has none, or that is over."""
        known = self.policy.units.find(unit)
        return None if known is None else self.open_ids.get(known.round)

    def rewarded(self, record: events.Reward, time: float, round_: Callable[[], int]) -> None:
        """Keep rewards for their window or, without windows, give them to the policy, which learns them in its turn.

        `round_` tells which round they are for. A linear reward outside of the declared bounds raises the alarm:
        refusing it would select the data by their values.
        """
        self.counts.rewarded(record, time)
        if record.refused is not None:
            return
        self.unconfirmed.confirm([record.decision_id])  # whoever has its reward has played it
        values = _numbers(record)
        waiting = None if self.windows is None else self.windows.find(record.decision_id)
        # An open window knows its round; otherwise it costs a lookup in the journal.
        number = waiting.round if waiting is not None else round_()
        if self._forecast is not None:
            self._forecast.rewarded(number, values)
        if waiting is not None:
            waiting.values = {**(waiting.values or {}), **values}
            # The alarm must not wait until the window closes.
            self.kind.examine(self.policy, number, values)
        elif self.windows is None:
            self.counts.total_reward += self.kind.settle(self.policy, number, values)
            if not self.policy.settlement.awaits(number):  # a unit waits for its other visits, a round for all metrics
                self.open_ids.pop(number, None)
        self._check_bounds(number, values)
        self._look_for_proof(time)

    def _check_bounds(self, number: int, values: dict[str, float]) -> None:
        if self.created.reward_bounds is None:
            return
        (low, high), value = self.created.reward_bounds, values[METRIC]
        # What was declared of rounds before a restart has been answered for.
        if not low <= value <= high and number > self.counts.restart_round:
            text = f"A reward of {value:.6g} came in for round {number}, but {low:g} to {high:g} was declared."
            self.policy.report_breach("reward", text)

    def corrected(self, record: events.Corrected, number: int) -> None:
        """Replace rewards that were not learned yet; what the wrong ones have alarmed stays so."""
        values = _numbers(record)
        waiting = None if self.windows is None else self.windows.find(record.decision_id)
        if waiting is not None:
            waiting.values = {**(waiting.values or {}), **values}
        else:
            self.counts.total_reward += self.kind.replace(self.policy, number, values)
        self.kind.examine(self.policy, number, values)
        self._check_bounds(number, values)

    def settled(self, record: events.Settled, time: float) -> None:
        """Learn what came in windows that closed; where nothing did, the default, or the worst."""
        for window in record.windows:
            waiting = None if self.windows is None else self.windows.close(window)
            if waiting is None:
                raise JournalCorruptedError(f"Decision {window.decision_id!r} is not the oldest whose window is open.")
            self.counts.total_reward += self.kind.settle(self.policy, window.round, waiting.values, is_closed=True)
            self.counts.defaults += window.is_missing
        self._look_for_proof(time)

    def abandoned(self, record: events.Abandoned, number: int, time: float) -> None:
        """Settle a decision without its reward."""
        self.counts.abandoned += 1
        self.policy.abandon(number)
        self.open_ids.pop(number, None)
        if self.windows is not None:
            self.windows.abandon(record.decision_id)
        self._look_for_proof(time)

    def may_move(self, number: int) -> bool:
        """Whether a round can be moved to what was really played."""
        return self.shard is None or self.kind.stays_put or self.shard.holds(number)

    def voided(self, record: events.Voided, decision: Event, view: View, time: float) -> None:
        """Move a round to what was really played; a guard's stays where its coin put it."""
        if self.kind.stays_put:
            self.counts.voided += 1
            return
        round_: Any = decode(decision, self.kind.round)
        within = self.created.confirm_within
        if within is not None and time > decision.time + within:
            self._voided_late(record.decision_id, round_.round, time - decision.time, within)
            return
        self.kind.move(self, round_, record, view)
        self.unconfirmed.confirm([record.decision_id])  # not before the policy took it: a refusal must change nothing
        is_learner = record.action != round_.request.baseline
        self.counts.moved(was_learner=round_.source == "learner", is_learner=is_learner)
        if self.shard is not None:
            place = round_.round - self.shard.since[0].number
            rows: Any = self.kind.rows(self, round_.request, view)
            played = rows[record.action].tolist()
            moved = msgspec.structs.replace(self.shard.since[place], played=played, is_learner=is_learner)
            self.shard.since[place] = moved

    def _voided_late(self, ref: str, number: int, seconds: float, within: float) -> None:
        """Count a round at its worst, and raise the alarm: what is said of it may follow from later rewards."""
        self.policy.abandon(number)
        self.open_ids.pop(number, None)
        self.unconfirmed.condemn(ref, number)
        self.counts.voided += 1
        self.policy.report_breach(
            "void",
            f"Round {number} was voided {seconds:.6g} seconds after it was decided, but {within:g} were declared to be "
            "less time than any reward takes: later rewards may have influenced what is said of it.",
        )

    def acknowledged(self, record: events.Acknowledged) -> None:
        """Apply the answer to the alarm."""
        if self.shard is not None:
            raise AlarmError(
                f"The alarm of a shared floor cannot be answered, but got {record.response!r}: a restart would have to "
                "reach all shards at once. Only the baseline plays from now on: start a new experiment."
            )
        # Before the policy forgets what they are made of.
        earned, baseline = self.kind.estimates(self.policy)
        self.policy.acknowledge(record.response)
        self.answer = record
        if record.response != "stay":
            self.unconfirmed.clear()
            self.counts.restarted(self.policy.rounds, record.response, earned, baseline)

    def went_over(self, record: Mode, number: int) -> None:
        """Go over to a mode by an event; of a chain that was restored, pay for what is lost."""
        self.mode = record.mode
        if record.lost is not None:
            self.restored = number
            self.kind.lose(self.policy, record.lost)
        if self.shard is not None:
            self.shard.went_over(record)

    def leased(self, lease: Lease, data: bytes | None) -> None:
        """Go on under a lease; without what it knew, which was lost, only the baseline plays."""
        assert self.shard is not None
        self.shard.lease, self.shard.due, self.shard.is_whole = lease, None, data is not None
        if data is not None:
            self.policy.renew(lease, unpack(data, dict[str, Any]), self.shard.since)

    def lease_ended(self, record: LeaseEnded) -> HandIn:
        """From now on only the baseline plays; what was done under the lease is to be handed in."""
        shard = self.shard
        if shard is None or shard.lease is None or record.lease != shard.lease.number:
            raise JournalCorruptedError(f"Lease {record.lease} ended, but the shard has another one.")
        if record.alarm is not None:
            # A replay may be without the set that it was found by, which is removed with its lease.
            kind: Any = record.alarm[0]
            self.policy.recall_alarm(Alarm(kind, *record.alarm[1:]))
        shard.due = self.policy.hand_in(
            shard.lease, shard.since, token=shard.token, through=self.time, untimed=record.untimed
        )
        self.policy.end_lease()
        shard.since = []
        due: HandIn = shard.due
        return due

    @property
    def newest_snapshot(self) -> int:
        """Number of the newest snapshot's event; 0 if there is none."""
        return self.snapshots[-1][0] if self.snapshots else 0

    def snapshotted(self, record: events.Snapshot, number: int) -> None:
        """Remember where the newest snapshots are."""
        # Two, so that another is left where the newest is damaged.
        self.snapshots = [*self.snapshots[-1:], (number, record.digest)]

    def remember(self, catalogue: Catalogue) -> None:
        """Keep a catalogue in memory."""
        self.catalogues[catalogue.digest] = catalogue
        self.catalogues.move_to_end(catalogue.digest)
        while len(self.catalogues) > MOST_CATALOGUES:
            self.catalogues.popitem(last=False)

    def catalogue(self, digest: str, view: View) -> Catalogue:
        """The catalogue of this digest, read from the journal if it is not in memory."""
        if digest not in self.catalogues:
            event = view.find(f"c:{digest}")
            if event is None:
                raise JournalCorruptedError(f"The journal must hold catalogue {digest}, but does not.")
            self.remember(Catalogue(decode(event, events.CatalogueRows).rows))
        return self.catalogues[digest]


def _numbers(record: events.Reward | events.Corrected) -> dict[str, float]:
    return {name: float(value) for name, value in record.values.items()}


def recent_rounds(kind: Kind, view: View) -> list[tuple[Event, Any]]:
    """The newest rounds, newest first: no more than are read in a moment, and none that cannot be read."""
    rounds, size = list[tuple[Event, Any]](), 0
    for event in view.newest_of(events.ROUND, FORECAST_FROM):
        with suppress(msgspec.MsgspecError, SurefootError):  # whoever asks for it is told of the damage
            rounds.append((event, kind.opened(event, view)))
        private = view.private(event.number)
        size += len(event.payload) + (0 if private is None else len(private.text))
        if size > FORECAST_BYTES:
            break
    return rounds


def first_state(view: View) -> State:
    """The state after the first event."""
    event = next(view.read(limit=1))
    created = decode(event, Created)
    if created.format != events.FORMAT:
        raise JournalSchemaError(
            f"Experiment {view.name!r} has format {created.format}; this surefoot reads {events.FORMAT}."
        )
    policy = first_policy(created.policy, created.settings, policy_id=created.policy_id, history=created.history)
    return State(created, policy, event.head, event.time)


def _round(state: State, record: Any, event: Event, view: View) -> None:
    state.kind.recall(state, record, view)
    rows = None if state.shard is None else state.kind.rows(state, record.request, view)
    state.decided(record, event.time, rows)


def _visit(state: State, record: events.PairRound, event: Event, view: View) -> None:
    # Its coin fell with its round, so the guard has nothing to recall.
    state.counts.visits += 1


def _reward(state: State, record: events.Reward, event: Event, view: View) -> None:
    state.rewarded(record, event.time, lambda: _number_of(state, record.decision_id, view))


def _number_of(state: State, ref: str, view: View) -> int:
    return round_number(_decision_of(state, ref, view))


def _decision_of(state: State, ref: str, view: View) -> Event:
    event = find_reference(state.created, view, ref)
    if event is None:
        raise JournalCorruptedError(f"The journal must hold decision {ref!r}, but does not.")
    return event


def _abandoned(state: State, record: events.Abandoned, event: Event, view: View) -> None:
    state.abandoned(record, _number_of(state, record.decision_id, view), event.time)


def _voided(state: State, record: events.Voided, event: Event, view: View) -> None:
    state.voided(record, _decision_of(state, record.decision_id, view), view, event.time)


def _corrected(state: State, record: events.Corrected, event: Event, view: View) -> None:
    state.corrected(record, _number_of(state, record.decision_id, view))


def _ended(state: State, record: LeaseEnded, event: Event, view: View) -> None:
    # Its own time, as the live process had it.
    state.time = max(state.time, event.time)
    state.lease_ended(record)


# What an event does to a state; one without a line here does nothing.
APPLY: dict[str, Callable[[State, Any, Event, View], None]] = {
    events.CATALOGUE: lambda state, record, event, view: state.remember(Catalogue(record.rows)),
    events.ROUND: _round,
    events.VISIT: _visit,
    events.REWARD: _reward,
    events.SETTLED: lambda state, record, event, view: state.settled(record, event.time),
    events.ABANDONED: _abandoned,
    events.VOIDED: _voided,
    events.CORRECTED: _corrected,
    events.CONFIRMED: lambda state, record, event, view: state.unconfirmed.confirm(record.decision_ids),
    events.OVERDUE: lambda state, record, event, view: state.unconfirmed.charge(record.decisions),
    events.MODE: lambda state, record, event, view: state.went_over(record, event.number),
    events.ACKNOWLEDGED: lambda state, record, event, view: state.acknowledged(record),
    events.ERASED: lambda state, record, event, view: state.forget_contexts(),  # else a state knows references alone
    events.SNAPSHOT: lambda state, record, event, view: state.snapshotted(record, event.number),
    events.LEASED: lambda state, record, event, view: state.leased(record, view.attachment(record.digest)),
    events.LEASE_ENDED: _ended,
}
