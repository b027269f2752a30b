"""The state of an experiment at a head of its chain: events in, state out, the same bits in every process.

The process that decides advances its state as it writes; all others, and a recovery, advance it by `apply`.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
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
from surefoot.experiment.counts import Counts
from surefoot.experiment.kinds import kind_of
from surefoot.experiment.sealing import find_reference, round_number
from surefoot.experiment.status import estimates
from surefoot.experiment.waiting import UnconfirmedRounds, Windows
from surefoot.journal import Event, Head, View
from surefoot.linear.actions import Catalogue
from surefoot.policies.base_policy import BasePolicy
from surefoot.policies.by_name import first_policy
from surefoot.policies.watched_policy import WatchedPolicy
from surefoot.rounds import decode, events
from surefoot.rounds.events import METRIC, Created, HandIn, Lease, LeaseEnded, Mode, ModeName
from surefoot.rounds.format import unpack
from surefoot.safety.alarm import Alarm
from surefoot.sharing import LeasedGuard, LeasedLUCB

MOST_CATALOGUES = 4  # kept in memory; older ones are read from the journal again


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

    def __init__(self, created: Created, policy: BasePolicy, head: Head, time: float) -> None:
        self.created, self.policy, self.head, self.time = created, policy, head, time
        self.kind = kind_of(created)
        self.mode: ModeName = created.mode
        self.windows = None if created.reward_window is None else Windows(created.reward_window)
        self.unconfirmed = UnconfirmedRounds(created.confirm_within, policy)
        self.counts = Counts()
        self.open_ids: dict[int, str] = {}  # decisions without a reward, by round; windows keep their own
        self.answer: events.Acknowledged | None = None  # to the alarm that was answered last
        self.snapshots: list[tuple[int, str]] = []  # event number and attachment, the newest two
        self.catalogues: OrderedDict[str, Catalogue] = OrderedDict()
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
        act = APPLY.get(event.kind)
        if act is None:
            raise JournalSchemaError(
                f"Event {event.number} of {view.name!r} is of an unknown kind, {event.kind!r}. "
                "A newer surefoot has written it: update this one."
            )
        try:
            act(self, event, view)
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

    def memory_of(self, record: events.RowsRound) -> dict[str, Any]:
        """What a linear policy has to know of a round beside request and answer, to recall it."""
        memory: dict[str, Any] = {"draw": record.draw} if isinstance(self.policy, WatchedPolicy) else {}
        if self.shard is not None:
            # The proposal that was refused where the shard's own rewards made it: it claims no bound.
            is_tried = not record.is_held and float(record.certificate.optimism) == math.inf
            memory["tried"] = record.certificate.proposal if is_tried else None
        return memory

    def decided(self, record: Any, time: float, rows: Any = None) -> None:
        """Count a round that the policy has decided; of rows those that were offered, where a shard hands it in."""
        ref = record.decision_id
        if record.is_fallback and self.kind.learns_in_order:
            # Clients report such rounds in an order of their own, which may follow the rewards.
            self.policy.exclude(record.round)
        self.counts.decided(record)
        if record.source == "learner":
            self.unconfirmed.begin(ref, record.round, time)
        if self.shard is not None:
            self.shard.since.append(self.kind.handed(record, time, rows))
        if self.windows is not None:
            self.windows.begin(ref, record.round, time)
            return
        self.open_ids[record.round] = ref
        for closed in self.kind.closed_by(self.policy, record.round):
            self.open_ids.pop(closed, None)

    def open_unit(self, unit: str) -> str | None:
        """The decision that opened a unit's round; None where it has none, or that is over."""
        known = self.policy.units.find(unit)  # type: ignore[attr-defined]
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
        values = {name: float(value) for name, value in record.values.items()}
        waiting = None if self.windows is None else self.windows.find(record.decision_id)
        # An open window knows its round; otherwise it costs a lookup in the journal.
        number = waiting.round if waiting is not None else round_()
        if waiting is not None:
            waiting.values = {**(waiting.values or {}), **values}
            # The alarm must not wait until the window closes.
            self.kind.examine(self.policy, number, values)
        elif self.windows is None:
            self.counts.total_reward += self.kind.settle(self.policy, number, values)
            if not self.policy.settlement.awaits(number):  # a unit waits for its other visits, a round for all metrics
                self.open_ids.pop(number, None)
        self._check_bounds(number, values)

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
        values = {name: float(value) for name, value in record.values.items()}
        waiting = None if self.windows is None else self.windows.find(record.decision_id)
        if waiting is not None:
            waiting.values = {**(waiting.values or {}), **values}
        else:
            self.counts.total_reward += self.kind.replace(self.policy, number, values)
        self.kind.examine(self.policy, number, values)
        self._check_bounds(number, values)

    def settled(self, record: events.Settled) -> None:
        """Learn what came in windows that closed; where nothing did, the default, or the worst."""
        for window in record.windows:
            waiting = None if self.windows is None else self.windows.close(window)
            if waiting is None:
                raise JournalCorruptedError(f"Decision {window.decision_id!r} is not the oldest whose window is open.")
            self.counts.total_reward += self.kind.settle(self.policy, window.round, waiting.values, is_closed=True)
            self.counts.defaults += window.is_missing

    def abandoned(self, record: events.Abandoned, number: int) -> None:
        """Settle a decision without its reward."""
        self.counts.abandoned += 1
        self.policy.abandon(number)
        self.open_ids.pop(number, None)
        if self.windows is not None:
            self.windows.abandon(record.decision_id)

    def may_move(self, number: int) -> bool:
        """Whether a round can be moved to what was really played."""
        return self.shard is None or self.kind.stays_put or self.shard.holds(number)

    def voided(self, record: events.Voided, decision: Event, view: View, time: float) -> None:
        """Move a round to what was really played; a guard's stays where its coin put it."""
        if self.kind.stays_put:
            self.counts.voided += 1
            return
        made: Any = decode(decision, self.kind.round)
        within = self.created.confirm_within
        if within is not None and time > decision.time + within:
            self._voided_late(record.decision_id, made.round, time - decision.time, within)
            return
        self.kind.move(self, made, record, view)
        self.unconfirmed.confirm([record.decision_id])  # not before the policy took it: a refusal must change nothing
        is_learner = record.action != made.request.baseline
        self.counts.moved(was_learner=made.source == "learner", is_learner=is_learner)
        if self.shard is not None:
            place = made.round - self.shard.since[0].number
            row = [float(one) for one in self.kind.rows(self, made.request, view)[record.action]]
            moved = msgspec.structs.replace(self.shard.since[place], played=row, is_learner=is_learner)
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
        earned, baseline = estimates(self.policy)
        self.policy.acknowledge(record.response)
        self.answer = record
        if record.response != "stay":
            self.unconfirmed.clear()
            self.counts.restarted(self.policy.rounds, record.response, earned, baseline)

    def went_over(self, record: Mode) -> None:
        """Go over to a mode."""
        self.mode = record.mode
        if self.shard is not None:
            self.shard.went_over(record)

    def leased(self, lease: Lease, data: bytes | None) -> None:
        """Go on under a lease; without what it knew, which was lost, only the baseline plays."""
        assert self.shard is not None
        self.shard.lease, self.shard.due, self.shard.is_whole = lease, None, data is not None
        if data is not None:
            self.leased_policy.renew(lease, unpack(data, dict[str, Any]), self.shard.since)

    def lease_ended(self, record: LeaseEnded) -> HandIn:
        """From now on only the baseline plays; what was done under the lease is to be handed in."""
        shard = self.shard
        if shard is None or shard.lease is None or record.lease != shard.lease.number:
            raise JournalCorruptedError(f"Lease {record.lease} ended, but the shard has another one.")
        if record.alarm is not None:
            # A replay may be without the set that it was found by, which is removed with its lease.
            kind: Any = record.alarm[0]
            self.policy.recall_alarm(Alarm(kind, *record.alarm[1:]))
        shard.due = self.leased_policy.hand_in(
            shard.lease, shard.since, token=shard.token, through=self.time, untimed=record.untimed
        )
        self.leased_policy.end_lease()
        shard.since = []
        due: HandIn = shard.due
        return due

    @property
    def leased_policy(self) -> LeasedLUCB | LeasedGuard:
        """The policy of a shard, which plays the learner under a lease only."""
        assert isinstance(self.policy, LeasedLUCB | LeasedGuard)
        return self.policy

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


def _round(state: State, event: Event, view: View) -> None:
    record: Any = decode(event, state.kind.round)
    state.kind.recall(state, record, view)
    rows = None if state.shard is None else state.kind.rows(state, record.request, view)
    state.decided(record, event.time, rows)


def _visit(state: State, event: Event, view: View) -> None:
    # Its coin fell with its round, so the guard has nothing to recall.
    state.counts.visits += 1


def _reward(state: State, event: Event, view: View) -> None:
    record = decode(event, events.Reward)
    state.rewarded(record, event.time, lambda: _number_of(state, record.decision_id, view))


def _number_of(state: State, ref: str, view: View) -> int:
    return round_number(_decision_of(state, ref, view))


def _decision_of(state: State, ref: str, view: View) -> Event:
    event = find_reference(state.created, view, ref)
    if event is None:
        raise JournalCorruptedError(f"The journal must hold decision {ref!r}, but does not.")
    return event


def _abandoned(state: State, event: Event, view: View) -> None:
    record = decode(event, events.Abandoned)
    state.abandoned(record, _number_of(state, record.decision_id, view))


def _voided(state: State, event: Event, view: View) -> None:
    record = decode(event, events.Voided)
    state.voided(record, _decision_of(state, record.decision_id, view), view, event.time)


def _corrected(state: State, event: Event, view: View) -> None:
    record = decode(event, events.Corrected)
    state.corrected(record, _number_of(state, record.decision_id, view))


def _leased(state: State, event: Event, view: View) -> None:
    lease = decode(event, Lease)
    state.leased(lease, view.attachment(lease.digest))


def _ended(state: State, event: Event, view: View) -> None:
    # Its own time, as the live process had it.
    state.time = max(state.time, event.time)
    state.lease_ended(decode(event, LeaseEnded))


APPLY: dict[str, Callable[[State, Event, View], None]] = {
    events.CATALOGUE: lambda state, event, _: state.remember(Catalogue(decode(event, events.CatalogueRows).rows)),
    events.ROUND: _round,
    events.VISIT: _visit,
    events.REWARD: _reward,
    events.SETTLED: lambda state, event, _: state.settled(decode(event, events.Settled)),
    events.ABANDONED: _abandoned,
    events.VOIDED: _voided,
    events.CORRECTED: _corrected,
    events.CONFIRMED: lambda state, event, _: state.unconfirmed.confirm(decode(event, events.Confirmed).decision_ids),
    events.OVERDUE: lambda state, event, _: state.unconfirmed.charge(decode(event, events.Overdue).decisions),
    events.MODE: lambda state, event, _: state.went_over(decode(event, Mode)),
    events.ACKNOWLEDGED: lambda state, event, _: state.acknowledged(decode(event, events.Acknowledged)),
    events.ERASED: lambda state, event, _: None,  # a state knows references alone
    events.COINS: lambda state, event, _: None,  # each round holds its own
    events.SNAPSHOT: lambda state, event, _: state.snapshotted(decode(event, events.Snapshot), event.number),
    events.LEASED: _leased,
    events.LEASE_ENDED: _ended,
}
