"""The verb `void`: a caller says what it really played, where that is not what was decided.

Allowed until a reward of the round has come: whoever knows it could choose by its value which rounds count. A round of
a linear policy or of plain arms is moved in the ledger. A guard's keeps its coin, its share and its side, since its
banks compare what was assigned, whatever came of it (intention to treat).
"""

from typing import Any

from surefoot import records
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError, SurefootError
from surefoot.experiment.decoding import round_of
from surefoot.experiment.guard_question import read_action
from surefoot.experiment.reward import abandon
from surefoot.experiment.sealing import find_decision, is_sealed, read_decision, read_voided, reference, seal_voided
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import Event, View
from surefoot.records import Asked, DecisionRecord, Visit, Voided

FALLBACK = "The caller did not hear of it in time, and played the baseline."


def find_voided(view: View, ref: str) -> Voided | None:
    """What was really played, where the decision of this reference was voided."""
    found = view.find(f"v:{ref}")
    return None if found is None else read_voided(found, view)


def fall_back(turn: UnitOfWork, decision_id: str, round_: int, by: str) -> bool | SurefootError:
    """A caller did not hear of a decision in time, and played the baseline."""
    moved = void(turn, decision_id, None, FALLBACK, by)
    if isinstance(moved, SurefootError) and not turn.state.may_move(round_):
        # It stands as decided; but its reward would be learned for a row that was not played.
        moved = abandon(turn, decision_id, FALLBACK, by)
    return moved


def void(turn: UnitOfWork, decision_id: str, action: Any, reason: str, by: str) -> bool | SurefootError:
    """Move a round to what was played (None: the baseline); false where nothing is to be moved."""
    decision = find_decision(turn.state.created, turn.transaction, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be voided, but none has the id {decision_id!r:.80}.")
    try:
        made = read_decision(decision, turn.transaction)
        if isinstance(made, DecisionRecord):
            played, is_as_decided = _row(made, _rows(turn, made.asked), action)
        else:
            played, is_as_decided = _side(made, action)
    except InputError as error:
        return error
    ref = reference(decision)
    before = find_voided(turn.transaction, ref)
    if before is not None:
        return False if before.action == played else _conflict(before)
    if is_as_decided:
        return False
    if not _is_open(turn, ref, decision):
        return DecisionSettledError(
            f"A decision must be without a reward to be voided, but {decision_id!r} is settled: its reward has come or "
            "its window has closed. Moving it now could choose the data by their values."
        )
    if not turn.state.may_move(round_of(decision)):
        return DecisionError(
            f"A round of a shard must be voided under the lease that it was decided under, but {decision_id!r} was "
            "handed in: others have been leased what it earned. It counts as decided. Abandon it, or its reward is "
            "learned for an action that was not played. Void rounds sooner, or raise `lease_seconds`."
        )
    record, text = Voided(decision_id=ref, action=played, reason=reason, by=by), None
    if not isinstance(made, DecisionRecord):
        private = turn.transaction.private(decision.number)
        if private is None and played is not None and is_sealed(turn.state.created):
            return InputError(
                "What was played instead must be the baseline (leave `action` out): the actions of this decision are "
                "erased, and another one would stay in the chain."
            )
        record, text = seal_voided(record, private)
    try:
        turn.state.voided(record, decision, turn.transaction, turn.now)
    except InputError as error:  # nothing has changed
        return error
    turn.write(records.VOIDED, record, f"v:{ref}", text)
    return True


def _rows(turn: UnitOfWork, asked: Asked) -> int:
    """How many rows were offered, or arms."""
    if asked.catalogue is not None:
        return len(turn.state.catalogue(asked.catalogue, turn.transaction).rows)
    return int(turn.state.created.settings["arms"]) if asked.features is None else len(asked.features)


def _row(made: DecisionRecord, rows: int, action: Any) -> tuple[int, bool]:
    """The row that was played, and whether that is what was decided."""
    played = read_played(action, made.asked.baseline, made.asked.actions, rows)
    return played, played == made.action


def read_played(action: Any, baseline: int | None, names: list[str] | None, rows: int) -> int:
    """The row that was played, by its number or name; the baseline's if it is left out."""
    played = baseline if action is None else action
    if isinstance(played, str) and names is not None and played in names:
        played = names.index(played)
    if isinstance(played, bool) or not isinstance(played, int) or not 0 <= played < rows:
        offered = "a row that was offered" if names is None else f"a row, or one of {names!r:.80}"
        offered += f" (0 <= action < {rows})"
        raise InputError(
            f"`action` must be {offered}, but got {played!r:.80}. It is what was played; left out, the baseline."
        )
    return played


def _side(visit: Visit, action: Any) -> tuple[Any, bool]:
    """The action that was played, None for the baseline, and whether that is what was decided."""
    played = visit.asked.baseline if action is None else read_action("action", action)
    return None if played == visit.asked.baseline else played, played == visit.action


def _is_open(turn: UnitOfWork, ref: str, decision: Event) -> bool:
    """Whether no reward of the decision has come, nor anything in its place."""
    if turn.transaction.find(f"r:{ref}") is not None:
        return False
    windows = turn.state.windows
    # A window that is due may still be open: one transaction closes so many at most.
    waiting = None if windows is None else windows.find(ref)
    if windows is not None and (waiting is None or waiting.closes <= turn.now):
        return False
    return turn.state.policy.settlement.awaits(round_of(decision))


def _conflict(before: Voided) -> DecisionConflictError:
    return DecisionConflictError(
        f"A decision is voided once, but {before.decision_id!r} was said before to have played "
        f"{'the baseline' if before.action is None else repr(before.action)[:80]}."
    )
