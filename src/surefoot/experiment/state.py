"""The state of an experiment at a head of its chain: events in, state out, the same bits in every process.

The process that decides advances its state as it writes; all others, and a recovery, advance it by `apply`.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot import records
from surefoot.errors import InputError, JournalCorruptedError, JournalError, JournalSchemaError, SurefootError
from surefoot.experiment.attribution_windows import windows_of
from surefoot.experiment.counts import ExperimentCounts, GuardCounts
from surefoot.experiment.decoding import decode as decode
from surefoot.experiment.decoding import find_reference
from surefoot.experiment.decoding import round_of as round_of
from surefoot.experiment.estimates import estimates
from surefoot.experiment.new_decision import AnyRound
from surefoot.experiment.policy_by_name import new_policy as new_policy
from surefoot.experiment.unconfirmed_rounds import UnconfirmedRounds
from surefoot.journal import Event, Head, View
from surefoot.linear.actions import Catalogue
from surefoot.policies import Guard, Policy
from surefoot.policies.base_policy import BasePolicy
from surefoot.policies.watched_policy import WatchedPolicy
from surefoot.records import FORMAT, SEALED, Created, ModeName

MOST_CATALOGUES = 4  # kept in memory; older ones are read from the journal again


class State:
    """An experiment at `head`."""

    hands_in = False  # rewards, before their turn comes: to where shards meet

    def __init__(self, created: Created, policy: BasePolicy, head: Head, time: float) -> None:
        self.created, self.policy, self.head, self.time = created, policy, head, time
        # Asked in every round, where isinstance is slow: policies are abstract classes.
        self._is_linear, self._is_guard = isinstance(policy, Policy), isinstance(policy, Guard)
        self.mode: ModeName = created.mode
        self.windows = windows_of(created)
        self.unconfirmed = UnconfirmedRounds(created.confirm_within, policy)
        self.tally = GuardCounts() if isinstance(policy, Guard) else ExperimentCounts()
        self.open_ids: dict[int, str] = {}  # decisions without a reward, by round; windows keep their own
        self.answer: records.Acknowledged | None = None  # to the alarm that was answered last
        self.snapshots: list[tuple[int, str]] = []  # event number and attachment, the newest two
        self.catalogues: OrderedDict[str, Catalogue] = OrderedDict()

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

    @property
    def linear(self) -> Policy:
        """The policy of an experiment over features or arms."""
        if not self._is_linear:
            raise InputError("A guard decides between a `baseline` and a `proposal`, but features were given.")
        return self.policy  # type: ignore[return-value]

    @property
    def guard(self) -> Guard:
        """The guard of an experiment that has one."""
        if not isinstance(self.policy, Guard):
            raise InputError(f"Only a guard takes a `proposal`, but the policy is {self.created.policy}.")
        return self.policy

    def told_of(self, record: records.DecisionRecord) -> dict[str, Any]:
        """What the policy has to know of a round beside the question and the answer, to recall it."""
        return {"draw": record.draw} if isinstance(self.policy, WatchedPolicy) else {}

    def decided(self, record: AnyRound, time: float, ref: str | None = None) -> None:
        """Count a round that the policy has decided; `ref` is its id in the chain, where the record has another."""
        ref = record.decision_id if ref is None else ref
        if record.is_fallback and not self._is_guard:
            # Clients report such rounds in an order of their own, which may follow the rewards.
            self.policy.exclude(record.round)
        self.tally.decided(record)
        if record.source == "learner":
            self.unconfirmed.begin(ref, record.round, time)
        if self.windows is not None:
            self.windows.begin(ref, record.round, time)
            return
        self.open_ids[record.round] = ref
        expires = self.policy.settlement.settle_after
        if expires is not None:
            self.open_ids.pop(record.round - expires, None)
        if self._is_guard and self.guard.units.window is not None:
            closed = record.round - self.guard.units.window
            # Only units close by their window; a round without one may still await its reward.
            if not self.policy.settlement.awaits(closed):
                self.open_ids.pop(closed, None)

    def rewarded(self, record: records.RewardRecord, time: float, round_: Callable[[], int]) -> None:
        """Keep a reward for its window or, without windows, give it to the policy, which learns it in its turn.

        `round_` tells which round it is for. A reward outside of the declared bounds raises the alarm: refusing it
        would select the data by their values.
        """
        self.tally.rewarded(record, time)
        if record.refused is not None:
            return
        self.unconfirmed.confirm([record.decision_id])  # whoever has its reward has played it
        value = float(record.value)
        waiting = None if self.windows is None else self.windows.find(record.decision_id)
        # An open window knows its round; otherwise it costs a lookup in the journal.
        decided = waiting.round if waiting is not None else round_()
        if waiting is not None:
            waiting.value = value
            # The alarm must not wait until the window closes.
            self.policy.examine(decided, value)
        elif self.windows is None:
            self.policy.observe(decided, value)
            self.open_ids.pop(decided, None)
            self.tally.took_in(value)
        self._check_bounds(decided, value)

    def _check_bounds(self, decided: int, value: float) -> None:
        low, high = self.created.reward_bounds or (-math.inf, math.inf)
        # What was declared of rounds before a restart has been answered for.
        if not low <= value <= high and decided > self.tally.restart_round:
            text = f"A reward of {value:.6g} came in for round {decided}, but {low:g} to {high:g} was declared."
            self.policy.report_breach("reward", text)

    def corrected(self, record: records.Corrected, round_: int) -> None:
        """Replace a reward that was not learned yet; what the wrong one has alarmed stays so."""
        value = float(record.value)
        waiting = None if self.windows is None else self.windows.find(record.decision_id)
        if waiting is not None:
            waiting.value = value
        else:
            settlement = self.policy.settlement
            self.tally.took_in(value - float(settlement.rewards[round_]))  # type: ignore[arg-type]
            settlement.rewards[round_] = value
        self.policy.examine(round_, value)
        self._check_bounds(round_, value)

    def went_over(self, record: records.Mode) -> None:
        """Go over to a mode."""
        self.mode = record.mode

    def visited(self, record: records.Visit) -> None:
        """Count another visit of a unit; its round goes on."""
        assert isinstance(self.tally, GuardCounts)
        self.tally.visits += 1

    def metrics_rewarded(self, record: records.MetricReward, time: float, decided: Callable[[], int]) -> None:
        """Keep a guard's reward for its window or give it to the guard; `decided` tells which round it is for."""
        self.tally.rewarded(record, time)
        if record.refused is not None:
            return
        values = {name: float(value) for name, value in record.values.items()}
        waiting = None if self.windows is None else self.windows.find(record.decision_id)
        if waiting is not None:
            waiting.value = values
        elif self.windows is None:
            round_ = decided()
            self.guard.observe(round_, values)
            # A unit stays open for rewards of its other visits.
            if not self.guard.units.holds(round_):
                self.open_ids.pop(round_, None)

    def settled(self, record: records.Settled) -> None:
        """Book the rewards of a guard's windows that closed; what is missing counts as its default, or at its worst."""
        for window in record.windows:
            waiting = None if self.windows is None else self.windows.find(window.decision_id)
            if self.windows is None or waiting is None or not self.windows.close(window):
                raise JournalCorruptedError(f"Decision {window.decision_id!r} is not the oldest whose window is open.")
            self.guard.observe(window.round, waiting.value or {})
            self.tally.defaults += window.is_missing

    def abandoned(self, record: records.Abandoned, round_: int) -> None:
        """Settle a decision without its reward."""
        self.tally.abandoned += 1
        self.policy.abandon(round_)
        self.open_ids.pop(round_, None)
        if self.windows is not None:
            self.windows.abandon(record.decision_id)

    def may_move(self, round_: int) -> bool:
        """Whether a round can be moved to what was really played."""
        return True

    def voided(self, record: records.Voided, decision: Event, view: View, time: float) -> None:
        """Move a round to what was really played; a guard's stays where its coin put it."""
        if decision.kind != records.DECISION:
            self.tally.voided += 1
            return
        made = decode(decision, records.DecisionRecord)
        within = self.created.confirm_within
        if within is not None and time > decision.time + within:
            self._voided_late(record.decision_id, made.round, time - decision.time, within)
            return
        asked = made.asked
        self.linear.void(
            made.round,
            _features(self, asked, view),
            baseline=asked.baseline,
            baseline_reward=asked.baseline_reward,
            action=made.action,
            source=made.source,
            played=record.action,
        )
        self.unconfirmed.confirm([record.decision_id])  # not before the policy took it: a refusal must change nothing
        self.tally.moved(was_learner=made.source == "learner", is_learner=record.action != asked.baseline)

    def _voided_late(self, ref: str, round_: int, seconds: float, within: float) -> None:
        """Count a round at its worst, and raise the alarm: what is said of it may follow from later rewards."""
        self.policy.abandon(round_)
        self.open_ids.pop(round_, None)
        self.unconfirmed.condemn(ref, round_)
        self.tally.voided += 1
        self.policy.report_breach(
            "void",
            f"Round {round_} was voided {seconds:.6g} seconds after it was decided, but {within:g} were declared to be "
            "less time than any reward takes: later rewards may have influenced what is said of it.",
        )

    def acknowledged(self, record: records.Acknowledged) -> None:
        """Apply the answer to the alarm."""
        # Before the policy forgets what they are made of.
        earned, baseline = estimates(self.policy)
        self.policy.acknowledge(record.response)
        self.answer = record
        if record.response != "stay":
            self.unconfirmed.clear()
            self.tally.restarted(self.policy.rounds, record.response, earned, baseline)

    def closed(self, record: records.Closed) -> None:
        """Learn the rewards of windows that closed."""
        for learned in record.learned:
            if self.windows is None or not self.windows.close(learned):
                raise JournalCorruptedError(f"Decision {learned.decision_id!r} is not the oldest whose window is open.")
            self.policy.observe(learned.round, learned.value)
            self.tally.closed(learned)

    @property
    def newest_snapshot(self) -> int:
        """Number of the newest snapshot's event; 0 if there is none."""
        return self.snapshots[-1][0] if self.snapshots else 0

    def snapshotted(self, record: records.Snapshot, number: int) -> None:
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
            self.remember(Catalogue(decode(event, records.CatalogueRecord).rows))
        return self.catalogues[digest]


KINDS: dict[int, Callable[[Created, Any, Head, float], State]] = {FORMAT: State, SEALED: State}  # by format


def _recall(state: State, event: Event, view: View) -> None:
    record = decode(event, records.DecisionRecord)
    again = state.linear.recall(
        _features(state, record.asked, view),
        baseline=record.asked.baseline,
        baseline_reward=record.asked.baseline_reward,
        action=record.action,
        source=record.source,
        **state.told_of(record),
    )
    if again.round != record.round:
        raise JournalCorruptedError(f"Round {again.round} must come next, but got round {record.round}.")
    state.decided(record, event.time)


def _guarded(state: State, event: Event, view: View) -> None:
    record = decode(event, records.Guarded)
    asked = record.asked
    again = state.guard.recall(
        baseline=asked.baseline,
        proposal=asked.proposal,
        share=record.share,
        draw=math.nan if record.draw is None else record.draw,
        source=record.source,
        unit=asked.unit,
        prediction=asked.prediction,
        hold=record.is_held,
    )
    if again.round != record.round:
        raise JournalCorruptedError(f"Round {again.round} must come next, but got round {record.round}.")
    state.decided(record, event.time)


def _visit(state: State, event: Event, view: View) -> None:
    # Its coin fell with its round, so the guard has nothing to recall.
    state.visited(decode(event, records.Visit))


def _metric_reward(state: State, event: Event, view: View) -> None:
    record = decode(event, records.MetricReward)
    state.metrics_rewarded(record, event.time, lambda: _round_of(state, record.decision_id, view))


def _settled(state: State, event: Event, view: View) -> None:
    state.settled(decode(event, records.Settled))


def _features(state: State, asked: records.Asked, view: View) -> Any:
    if asked.catalogue is not None:
        return state.catalogue(asked.catalogue, view)
    return None if asked.features is None else np.array(asked.features, dtype=np.float64)


def _reward(state: State, event: Event, view: View) -> None:
    record = decode(event, records.RewardRecord)
    state.rewarded(record, event.time, lambda: _round_of(state, record.decision_id, view))


def _round_of(state: State, decision_id: str, view: View) -> int:
    return round_of(_decision_of(state, decision_id, view))


def _decision_of(state: State, decision_id: str, view: View) -> Event:
    found = find_reference(state.created, view, decision_id)
    if found is None:
        raise JournalCorruptedError(f"The journal must hold decision {decision_id!r}, but does not.")
    return found


def _closed(state: State, event: Event, view: View) -> None:
    state.closed(decode(event, records.Closed))


def _mode(state: State, event: Event, view: View) -> None:
    state.went_over(decode(event, records.Mode))


def _abandoned(state: State, event: Event, view: View) -> None:
    record = decode(event, records.Abandoned)
    state.abandoned(record, _round_of(state, record.decision_id, view))


def _voided(state: State, event: Event, view: View) -> None:
    record = decode(event, records.Voided)
    state.voided(record, _decision_of(state, record.decision_id, view), view, event.time)


def _corrected(state: State, event: Event, view: View) -> None:
    record = decode(event, records.Corrected)
    state.corrected(record, _round_of(state, record.decision_id, view))


def _snapshot(state: State, event: Event, view: View) -> None:
    state.snapshotted(decode(event, records.Snapshot), event.number)


def _erased(state: State, event: Event, view: View) -> None:
    # A state knows references alone.
    decode(event, records.Erased)


def _catalogue(state: State, event: Event, view: View) -> None:
    state.remember(Catalogue(decode(event, records.CatalogueRecord).rows))


APPLY: dict[str, Callable[[State, Event, View], None]] = {
    records.CATALOGUE: _catalogue,
    records.DECISION: _recall,
    records.REWARD: _reward,
    records.CLOSED: _closed,
    records.MODE: _mode,
    records.ABANDONED: _abandoned,
    records.VOIDED: _voided,
    records.CORRECTED: _corrected,
    records.CONFIRMED: lambda state, event, _: state.unconfirmed.confirm(decode(event, records.Confirmed).decision_ids),
    records.OVERDUE: lambda state, event, _: state.unconfirmed.charge(decode(event, records.Overdue).decisions),
    records.ACKNOWLEDGED: lambda state, event, _: state.acknowledged(decode(event, records.Acknowledged)),
    records.ERASED: _erased,
    records.SNAPSHOT: _snapshot,
    records.GUARDED: _guarded,
    records.VISIT: _visit,
    records.METRIC_REWARD: _metric_reward,
    records.SETTLED: _settled,
}
