"""Decisions in a turn: a round is decided once for each id, and callers say afterwards what was played."""

from collections.abc import Sequence
from typing import Any

from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError, SurefootError
from surefoot.experiment.kinds import Ask
from surefoot.experiment.rewards import abandon, is_open
from surefoot.experiment.sealing import find_decision, find_voided, new_reference, reference, seal_voided
from surefoot.experiment.turn import Turn
from surefoot.journal import Event
from surefoot.journal.private_text import PrivateText
from surefoot.linear.actions import Catalogue
from surefoot.rounds import Answer, events
from surefoot.rounds.events import Voided

FALLBACK = "The caller did not hear of it in time, and played the baseline."


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
    if view.find(f"r:{ref}") is not None or not is_open(turn, ref, decision):
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
