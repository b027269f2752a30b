"""What an experiment does in a transaction: decide, take rewards, and take the words of callers and operators.

Each verb looks up what is known, lets the policy have its say, writes, and only then answers. An error is returned, not
raised, where the rest of the transaction still counts.

Why a reward is refused:

unknown       no decision has this id
conflict      another value was accepted before
too_late      its window has closed, in seconds or in rounds; what was learned then stands
abandoned     the decision was settled without its reward
out_of_range  not finite, too large to compute with, or outside of the bounds that a guard's promise rests on

A linear reward outside of the declared bounds is *accepted* and raises the alarm: refusing it would select the data by
their values. Refusals are recorded, but a flood of them must not fill the disk: beyond `MOST_RECORDED` in an hour for
one reason they are only counted, and the next one that is recorded holds the count.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from surefoot.errors import (
    AlarmError,
    DecisionConflictError,
    DecisionError,
    DecisionSettledError,
    InputError,
    ModeError,
    SurefootError,
)
from surefoot.experiment.kinds import Ask
from surefoot.experiment.sealing import (
    find_decision,
    find_rewards,
    find_voided,
    new_reference,
    reference,
    round_number,
    seal_voided,
    stranger,
)
from surefoot.experiment.snapshots import freeze
from surefoot.experiment.state import Refusals, State
from surefoot.journal import Event, Transaction, View
from surefoot.journal.private_text import PrivateText
from surefoot.linear.actions import Catalogue
from surefoot.rounds import Answer, Receipt, Record, decode, encode, events, number
from surefoot.rounds.answers import EventHead
from surefoot.rounds.events import Abandoned, Acknowledged, Corrected, ModeName, Reason, Response, Reward, Voided
from surefoot.safety.alarm import RESPONSES
from surefoot.sharing.hub import NEXT_MODES, refused_mode
from surefoot.version import VERSION

MOST_RECORDED = 100  # refusals for one reason in an hour
MOST_SETTLED = 1000  # windows closed in one transaction, which must be quick; the rest follow in the next
MOST_ERASED = 1000  # texts erased in one transaction
MOST_AT_ONCE = 1000  # rounds in one event
PENDING_PER_EVENT = 4  # at most so many pending decisions are written again per event
FALLBACK = "The caller did not hear of it in time, and played the baseline."


class Turn:
    """What a verb works with inside a transaction; `now` never runs backwards, whatever the clock does."""

    def __init__(
        self, transaction: Transaction, state: State, clock: float, unrecorded: dict[Reason, int], coins: Any
    ) -> None:
        self.transaction, self.state, self.now = transaction, state, max(clock, state.time)
        self.coins = coins  # of a guard, what they follow from (`Coins`)
        self.forecast: dict[str, float] | None = None  # of the guard's round that is decided
        self.unrecorded = unrecorded  # refusals that were only counted; the count is lost with the process

    def write(self, kind: str, record: Record, key: str | None = None, private: PrivateText | None = None) -> Event:
        """Append an event; the caller brings the state to it."""
        return self.append(kind, encode(record), key, private)

    def append(self, kind: str, payload: bytes, key: str | None = None, private: PrivateText | None = None) -> Event:
        """The same of a record that was encoded before."""
        event = self.transaction.append(kind, payload, time=self.now, key=key, private=private)
        self.state.reached(self.transaction.head, event.time)
        return event

    def close_windows(self) -> int:
        """Learn what is due; returns the number of windows that closed."""
        windows = self.state.windows
        due = [] if windows is None else windows.due(self.now, MOST_SETTLED)
        if due:
            record = events.Settled(windows=due)
            self.state.settled(record, self.now)
            self.write(events.SETTLED, record)
        return len(due)

    def charge_overdue(self) -> None:
        """Count at its worst what was not confirmed in time."""
        due = self.state.unconfirmed.due(self.now)
        for at in range(0, len(due), MOST_AT_ONCE):
            record = events.Overdue(decisions=due[at : at + MOST_AT_ONCE])
            self.write(events.OVERDUE, record)
            self.state.unconfirmed.charge(record.decisions)

    def is_snapshot_due(self, every: int) -> bool:
        """Whether the newest snapshot is so many events old; with many pending decisions it may be older.

        A snapshot holds every pending decision, and all callers wait while it is taken.
        """
        since = self.state.head.number - self.state.newest_snapshot
        return since >= every and since >= len(self.state.policy.settlement) // PENDING_PER_EVENT

    def snapshot(self) -> None:
        """Attach the state to the chain, and remove the snapshot before the last."""
        state = self.state
        # The head before the snapshot's own event: the state is of that moment.
        of, hash_ = state.head
        previous = state.newest_snapshot
        if len(state.snapshots) == 2:
            self.transaction.detach(state.snapshots[0][1])
        digest = self.transaction.attach(freeze(state))
        record = events.Snapshot(digest=digest, number=of, hash=hash_, previous=previous, software=VERSION)
        event = self.write(events.SNAPSHOT, record)
        state.snapshotted(record, event.number)


def decide(turn: Turn, ask: Ask) -> Answer | SurefootError:
    """Look up the id, ask the policy, write, and only then answer."""
    state, kind = turn.state, turn.state.kind
    if ask.confirms:
        confirm(turn, ask.confirms)
    # Before anything else: a retry gets what was decided, whatever holds by now.
    event = turn.transaction.find(ask.key)
    if event is not None:
        return _again(turn, event, ask)
    try:
        request, private = kind.seal(ask, turn.transaction)
        record, event = decide_new(turn, ask, request, private)
    except SurefootError as error:  # the policy has changed nothing
        return error
    is_learner = record.certificate is not None and record.source == "learner"
    within = state.created.confirm_within if is_learner else None
    return kind.answer(record, ask, voided=None, time=event.time, head=state.head, confirm_within=within)


def decide_new(
    turn: Turn, ask: Ask, request: Any, private: PrivateText | None, ref: str | None = None
) -> tuple[Any, Event]:
    """Decide a request as the chain holds it, and write the round, under a reference that is given or made."""
    state, kind = turn.state, turn.state.kind
    hold = ask.is_fallback or state.holds(turn.now)
    decision = kind.decide(turn, ask, request, hold=hold)
    # Only now: a request that is refused leaves nothing in the journal.
    if ask.catalogue is not None:
        register(turn, ask.catalogue)
    if ref is None:
        ref = ask.decision_id if private is None else new_reference(turn.transaction, private)
    record, payload = kind.write(turn, decision, ask, request, ref, hold=hold)
    is_visit = record.certificate is None
    key = None if state.created.is_sealed else ask.key
    event = turn.append(events.VISIT if is_visit else events.ROUND, payload, key, private)
    if is_visit:
        state.counts.visits += 1
    else:
        state.decided(record, event.time, ask.rows if ask.catalogue is None else ask.catalogue.rows)
    return record, event


def _again(turn: Turn, event: Event, ask: Ask) -> Answer | SurefootError:
    state = turn.state
    record = state.kind.opened(event, turn.transaction)
    if not state.kind.same(record.request, ask):
        return DecisionConflictError(
            f"A decision_id must stand for one request, but {ask.decision_id!r} was asked before with other actions, "
            "features, baseline or context. Use a new id for a new request."
        )
    if ask.is_fallback:
        moved = _fall_back(turn, ask.decision_id, record.round, ask.by)
        if isinstance(moved, SurefootError):
            return moved
    ref = reference(event)
    within = state.created.confirm_within if state.unconfirmed.awaits(ref) else None
    return state.kind.answer(
        record, None, voided=find_voided(turn.transaction, ref), time=event.time, head=event.head, is_repeat=True,
        confirm_within=within,
    )  # fmt: skip


def register(turn: Turn, catalogue: Catalogue) -> None:
    """Write a catalogue down before the first decision that refers to it."""
    key = f"c:{catalogue.digest}"
    if catalogue.digest not in turn.state.catalogues and turn.transaction.find(key) is None:
        rows = events.CatalogueRows(digest=catalogue.digest, rows=catalogue.rows.tolist())
        turn.write(events.CATALOGUE, rows, key)
    turn.state.remember(catalogue)


def _fall_back(turn: Turn, decision_id: str, round_: int, by: str) -> bool | SurefootError:
    """A caller did not hear of a decision in time, and played the baseline."""
    moved = void(turn, decision_id, None, FALLBACK, by)
    if isinstance(moved, SurefootError) and not turn.state.may_move(round_):
        # It stands as decided; but its reward would be learned for a row that was not played.
        moved = abandon(turn, decision_id, FALLBACK, by)
    return moved


def reward(turn: Turn, decision_id: str, values: dict[str, float], value: Any) -> Receipt:
    """Accept or refuse the rewards of a decision; `value` is how they were sent."""
    state, view = turn.state, turn.transaction
    created, windows, decision, ref = state.created, state.windows, None, decision_id
    waiting = None if windows is None or created.is_sealed else windows.find(ref)
    if waiting is None:
        decision = find_decision(created, view, decision_id)
        if decision is None:
            return _refuse(turn, decision_id, values, value, "unknown")
        ref = reference(decision)
        waiting = None if windows is None else windows.find(ref)
    # Asked before the window: who repeats an accepted reward has only lost the receipt.
    parts, new = 0, values
    if waiting is None or waiting.values is not None:
        accepted = find_rewards(view, ref)
        if accepted and accepted[-1].kind == events.ABANDONED:
            return _refuse(turn, decision_id, values, value, "abandoned", ref)
        known = _known(accepted)
        new = {name: one for name, one in values.items() if name not in known}
        if len(new) < len(values):
            # A window holds the corrected value, but a caller's retry may still say the first one.
            corrected = view.find(f"x:{ref}")
            right = known if corrected is None else known | decode(corrected, Corrected).values
            versions = ((accepted[-1], known), (corrected or accepted[-1], right))
            same = [
                event for event, then in versions if all(then.get(name, one) == one for name, one in values.items())
            ]
            if not same:
                return _refuse(turn, decision_id, values, value, "conflict", ref)
            if not new:
                return Receipt(decision_id=decision_id, value=value, is_repeat=True, head=EventHead(*same[0].head))
        parts = len(accepted)
    if windows is not None:
        # One that is due may still be open: one transaction closes so many at most.
        is_late = waiting is None or waiting.closes <= turn.now
    else:
        assert decision is not None
        of = round_number(decision)
        is_late = not state.policy.settlement.awaits(of)
        if parts and not is_late and not state.kind.takes_parts(state.policy, of):
            return _refuse(turn, decision_id, values, value, "conflict", ref)
    if is_late:
        return _refuse(turn, decision_id, values, value, "too_late", ref)
    if not state.kind.accepts(state.policy, values):
        return _refuse(turn, decision_id, values, value, "out_of_range", ref)
    record = Reward(decision_id=ref, values=dict(new))
    event = turn.write(events.REWARD, record, events.reward_key(ref, parts))
    state.rewarded(record, event.time, lambda: 0 if decision is None else round_number(decision))
    return Receipt(decision_id=decision_id, value=value, head=EventHead(*event.head))


def _known(accepted: list[Event]) -> dict[str, float]:
    """The rewards that were accepted, by metric."""
    return {name: float(one) for event in accepted for name, one in decode(event, Reward).values.items()}


def _refuse(
    turn: Turn, decision_id: str, values: dict[str, float], value: Any, reason: Reason, ref: str | None = None
) -> Receipt:
    """Record a refusal under the decision's reference, or only count it if there were too many."""
    entry = turn.state.counts.refusals.get(reason, Refusals())
    if entry.recorded_in(turn.now) >= MOST_RECORDED:
        turn.unrecorded[reason] = turn.unrecorded.get(reason, 0) + 1
        return Receipt(decision_id=decision_id, value=value, refused=reason, is_recorded=False)
    record = Reward(
        decision_id=stranger(turn.state.created, decision_id) if ref is None else ref,
        values={name: number(one) for name, one in values.items()},
        refused=reason,
        unrecorded=turn.unrecorded.pop(reason, 0),
    )
    event = turn.write(events.REWARD, record)
    turn.state.counts.rewarded(record, event.time)
    return Receipt(decision_id=decision_id, value=value, refused=reason, head=EventHead(*event.head))


def abandon(turn: Turn, decision_id: str, reason: str, by: str) -> bool | DecisionError:
    """Settle a decision without its reward, or without the metrics that are still missing; false if it was before."""
    state = turn.state
    decision = find_decision(state.created, turn.transaction, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be abandoned, but none has the id {decision_id!r:.80}.")
    ref = reference(decision)
    accepted, of = find_rewards(turn.transaction, ref), round_number(decision)
    if accepted and accepted[-1].kind == events.ABANDONED:
        return False
    if (accepted and of not in state.policy.settlement.parts) or not _is_open(turn, ref, decision):
        return DecisionSettledError(
            f"A decision must be without a reward to be abandoned, but {decision_id!r} is settled: its reward has come "
            "or its window has closed. Dropping a known reward would select the data by their values."
        )
    record = Abandoned(decision_id=ref, reason=reason, by=by)
    event = turn.write(events.ABANDONED, record, events.reward_key(ref, len(accepted)))
    state.abandoned(record, of, event.time)
    return True


def _is_open(turn: Turn, ref: str, decision: Event) -> bool:
    """Whether nothing of the decision is learned, and its window is open."""
    windows = turn.state.windows
    # A window that is due may still be open: one transaction closes so many at most.
    waiting = None if windows is None else windows.find(ref)
    if windows is not None and (waiting is None or waiting.closes <= turn.now):
        return False
    return bool(turn.state.policy.settlement.awaits(round_number(decision)))


def correct(turn: Turn, decision_id: str, values: dict[str, float], reason: str, by: str) -> bool | SurefootError:
    """Replace rewards that were measured wrongly, as long as nothing was learned from them; false where they are so.

    What was learned stands: confidence sets, banks, and decisions made since, rest on it. A fork of a linear policy
    can learn the right one instead (`surefoot.experiment.fork`, `corrections`).
    """
    state, view = turn.state, turn.transaction
    if not state.kind.accepts(state.policy, values):
        return InputError(f"`value` must be finite, and within what was declared, but got {values!r:.80}.")
    decision = find_decision(state.created, view, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be corrected, but none has the id {decision_id!r:.80}.")
    ref = reference(decision)
    accepted, before = find_rewards(view, ref), view.find(f"x:{ref}")
    known = {} if not accepted or accepted[-1].kind != events.REWARD else _known(accepted)
    missing = [name for name in values if name not in known]
    if missing:
        return DecisionError(
            f"A reward must have come to be corrected, but {decision_id!r:.80} has no {', '.join(missing)}: send it."
        )
    if before is not None:
        known |= {name: float(one) for name, one in decode(before, Corrected).values.items()}
    if all(known[name] == one for name, one in values.items()):
        return False
    if before is not None:
        return DecisionConflictError(
            f"A reward is corrected once, but that of {decision_id!r:.80} was corrected to {known} before."
        )
    windows, of = state.windows, round_number(decision)
    waiting = None if windows is None else windows.find(ref)
    if windows is None:
        settlement = state.policy.settlement
        is_unlearned = of in settlement.rewards or of in settlement.parts
    else:
        is_unlearned = waiting is not None and waiting.closes > turn.now
    if not is_unlearned:
        return DecisionSettledError(
            f"A reward must not have been learned to be corrected, but that of {decision_id!r:.80} was: what rests on "
            "it cannot be taken back. Fork the experiment, with the right one among its `corrections`."
        )
    if state.shard is not None and windows is None:
        return DecisionSettledError(
            f"A shard's reward must be in an open window to be corrected, but that of {decision_id!r:.80} has none: it "
            "is handed in as it came, and is learned where the shards meet. Declare a `reward_window` if rewards may "
            "have to be corrected."
        )
    plain: dict[str, Any] = dict(values)
    record = Corrected(decision_id=ref, values=plain, reason=reason, by=by)
    turn.write(events.CORRECTED, record, f"x:{ref}")
    state.corrected(record, of)
    return True


def void(turn: Turn, decision_id: str, action: Any, reason: str, by: str) -> bool | SurefootError:
    """Take a caller's word for what was really played (None: the baseline); false where nothing is to be moved.

    Allowed until a reward of the round has come: whoever knows it could choose by its value which rounds count. A round
    of a linear policy or of plain arms is moved in the ledger. A guard's keeps its coin, its share and its side, since
    its banks compare what was assigned, whatever came of it (intention to treat).
    """
    state, view = turn.state, turn.transaction
    decision = find_decision(state.created, view, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be voided, but none has the id {decision_id!r:.80}.")
    record = state.kind.opened(decision, view)
    try:
        played, is_as_decided = state.kind.played(state, record, action, view)
    except InputError as error:
        return error
    ref = reference(decision)
    before = find_voided(view, ref)
    if before is not None:
        return False if before.action == played else _voided_before(before)
    if is_as_decided:
        return False
    if view.find(f"r:{ref}") is not None or not _is_open(turn, ref, decision):
        return DecisionSettledError(
            f"A decision must be without a reward to be voided, but {decision_id!r} is settled: its reward has come or "
            "its window has closed. Moving it now could choose the data by their values."
        )
    if not state.may_move(record.round):
        return DecisionError(
            f"A round of a shard must be voided under the lease that it was decided under, but {decision_id!r} was "
            "handed in: others have been leased what it earned. It counts as decided. Abandon it, or its reward is "
            "learned for an action that was not played. Void rounds sooner, or let leases last longer."
        )
    private = view.private(decision.number)
    if state.kind.stays_put and private is None and played is not None and state.created.is_sealed:
        return InputError(
            "What was played instead must be the baseline (leave `action` out): the actions of this decision are "
            "erased, and another one would stay in the chain."
        )
    sealed, text = seal_voided(Voided(decision_id=ref, action=played, reason=reason, by=by), private)
    try:
        state.voided(sealed, decision, view, turn.now)
    except InputError as error:  # nothing has changed
        return error
    turn.write(events.VOIDED, sealed, f"v:{ref}", text)
    return True


def _voided_before(before: Voided) -> DecisionConflictError:
    return DecisionConflictError(
        f"A decision is voided once, but {before.decision_id!r} was said before to have played "
        f"{'the baseline' if before.action is None else repr(before.action)[:80]}."
    )


def confirm(turn: Turn, decision_ids: Sequence[str]) -> int:
    """Note which learner rounds were played as decided; those that do not wait for it are passed over."""
    state, waiting = turn.state, turn.state.unconfirmed
    refs = list(decision_ids)
    if state.created.is_sealed:
        decisions = (find_decision(state.created, turn.transaction, one) for one in decision_ids)
        refs = [reference(event) for event in decisions if event is not None]
    played = list(dict.fromkeys(ref for ref in refs if waiting.awaits(ref)))
    if played:
        turn.write(events.CONFIRMED, events.Confirmed(decision_ids=played))
        waiting.confirm(played)
    return len(played)


def change_mode(turn: Turn, mode: ModeName, reason: str, by: str) -> ModeName | ModeError:
    """Change the mode, and return the one before; the same mode again changes nothing."""
    before = turn.state.mode
    if mode != before and mode not in NEXT_MODES[before]:
        return refused_mode(before, mode)
    if mode != before:
        go_over(turn, events.Mode(mode=mode, reason=reason, by=by))
    return before


def take_over(turn: Turn, lost: int, reason: str, by: str) -> None:
    """Go on from a copy of the chain, which lacks at least so many events: a guarded experiment is paused."""
    if turn.state.restored == turn.state.head.number:
        return  # a restore that was cut short
    mode: ModeName = "paused" if turn.state.mode == "guarded" else turn.state.mode
    if lost or mode != turn.state.mode or turn.state.kind.draws:  # whose coins may have been seen
        go_over(turn, events.Mode(mode=mode, reason=reason, by=by, lost=lost))


def acknowledge(turn: Turn, response: Response, reason: str, by: str, alarm_round: int | None) -> SurefootError | None:
    """Apply a person's answer to the alarm and write it down, or return the error that refuses it."""
    if response not in RESPONSES:
        return AlarmError(f"`response` must be one of {', '.join(RESPONSES)}, but got {response!r:.80}.")
    alarm = turn.state.policy.alarm
    meant = alarm_round if alarm_round is not None else 0 if alarm is None else alarm.round
    record = Acknowledged(response=response, reason=reason, by=by, alarm_round=meant)
    # A retry whose first answer got lost: by now the alarm may be off, which is no error.
    if alarm_round is not None and record == turn.state.answer:
        return None
    if alarm is not None and alarm.round != meant:
        return AlarmError(
            f"The alarm that is on was raised after round {alarm.round}, but the answer is for that of round {meant}. "
            "Look at it first: it may be another one."
        )
    try:
        turn.state.acknowledged(record)
    except AlarmError as error:  # nothing has changed
        return error
    turn.write(events.ACKNOWLEDGED, record)
    return None


def erase(
    turn: Turn, decision_ids: Sequence[str], person: str | None, before: float | None, by: str, reason: str
) -> int | SurefootError:
    """Erase private texts, at most `MOST_ERASED`, and write that down; returns how many.

    Gone are the id, the names of actions, the unit and the context of a decision (`surefoot.experiment.sealing`), for
    good. The features, the proof and the reward stay, so that ledger and audit are as they were. The decision is then
    known by its reference alone: a round that still waits for its reward can be settled by that.
    """
    view = turn.transaction
    if not turn.state.created.is_sealed:
        return InputError(
            "Only a sealed experiment can be erased from, but the chain of this one holds ids and contexts itself. "
            "Archive or delete it, and create the next one `sealed`."
        )
    named = set[int]()
    for decision_id in decision_ids:
        decision = find_decision(turn.state.created, view, decision_id)
        if decision is None:
            return DecisionError(f"A decision must exist to be erased, but none has the id {decision_id!r:.80}.")
        voided = view.find(f"v:{reference(decision)}")
        about = (decision, voided) if voided is not None else (decision,)
        named |= {event.number for event in about if view.private(event.number) is not None}
    others = set[int]()
    if person is not None:
        others |= set(view.about(person))
    if before is not None:
        last = _last_before(view, before)
        others |= {of for of, _ in view.privates(0, MOST_ERASED) if of <= last}
    # Those that were named go in any case; the rest, oldest first, may have to wait for the next turn.
    numbers = sorted([*named, *sorted(others - named)[: MOST_ERASED - len(named)]])
    erased = view.erase(numbers)
    if erased:
        turn.state.forget_contexts()
        turn.write(events.ERASED, events.Erased(events=numbers, reason=reason, by=by))
    return erased


def _last_before(view: View, time: float) -> int:
    """Number of the last event before that time; times never run backwards, so that halving finds it."""
    low, high = 0, view.head.number
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if view.page(middle - 1, 1)[0].time < time else (low, middle - 1)
    return low


def end_lease(turn: Turn, *, is_untimed: bool) -> Any:
    """End the lease, unless it has ended; what is to be handed in."""
    state = turn.state
    shard = state.shard
    assert shard is not None
    if shard.due is None:
        assert shard.lease is not None
        alarm = state.policy.alarm
        record = events.LeaseEnded(
            lease=shard.lease.number,
            untimed=is_untimed,
            alarm=None if alarm is None else (alarm.kind, alarm.round, alarm.text),
        )
        turn.write(events.LEASE_ENDED, record)
        state.lease_ended(record)
    return shard.due


def accept_lease(turn: Turn, lease: events.Lease, data: bytes | None, secrets: Sequence[bytes] = ()) -> None:
    """Write a lease down and go on under it, unless another thread has; `secrets` are those of an edge's coins."""
    state = turn.state
    shard = state.shard
    assert shard is not None
    if shard.lease is not None and shard.lease.number >= lease.number:
        return
    for attached in (*secrets, *(() if data is None else (data,))):
        turn.transaction.attach(attached)
    if shard.lease is not None:
        turn.transaction.detach(shard.lease.digest)
    # Its rounds come after what is merged already, also where this server's clock is a little behind.
    turn.now = max(turn.now, lease.since)
    turn.write(events.LEASED, lease)
    state.leased(lease, data)


def pause_here(turn: Turn, mode: events.Mode) -> None:
    """Pause this shard at once, and note that the others are to be told."""
    assert turn.state.shard is not None
    if turn.state.shard.unshared is None:
        go_over(turn, msgspec.structs.replace(mode, shared=0))


def adopt_mode(
    turn: Turn, mode: ModeName, event: int, own: events.Mode | None = None, known: tuple[int, Any] | None = None
) -> None:
    """Go over to the mode of all shards, which that event says; `own` says why, if this shard changed it.

    Answers may overtake each other: an older word never undoes a newer one, and a pause that the others have not heard
    of stays, unless whoever resumes knew of it: `known` is what the shard knew of the mode then.
    """
    shard = turn.state.shard
    assert shard is not None
    if event < shard.shared_mode:
        return
    if shard.unshared is not None:
        if own is None or (mode != "paused" and (shard.shared_mode, shard.unshared) != known):
            return
    elif event == shard.shared_mode:
        return
    # Also where the mode is the same, so that nothing older counts from now on.
    record = own or events.Mode(mode=mode, reason="as where the shards meet")
    go_over(turn, msgspec.structs.replace(record, shared=event))


def go_over(turn: Turn, record: events.Mode) -> None:
    """Write a mode down, and go over to it."""
    event = turn.write(events.MODE, record)
    turn.state.went_over(record, event.number)
