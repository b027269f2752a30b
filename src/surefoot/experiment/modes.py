"""Modes: who may play.

shadow   before the learner's first action: the baseline is played, and the gate says what it would have allowed
guarded  the learner plays where the gate allows it
paused   the learner is stopped: the baseline is played, as in shadow

In every mode rewards are learned, and every round counts in the ledger. An experiment that has left shadow does not go
back there: it is paused.
"""

from surefoot import records
from surefoot.errors import ModeError
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.records import ModeName

MODES: tuple[ModeName, ...] = ("shadow", "guarded", "paused")
ALLOWED: dict[ModeName, tuple[ModeName, ...]] = {
    "shadow": ("guarded", "paused"),
    "guarded": ("paused",),
    "paused": ("guarded",),
}


def refused_mode(before: ModeName, mode: ModeName) -> ModeError:
    """Why an experiment cannot go over to a mode."""
    return ModeError(
        f"An experiment goes from {before!r} to {' or '.join(map(repr, ALLOWED[before]))}, but got {mode!r}."
    )


def change_mode(turn: UnitOfWork, mode: ModeName, reason: str, by: str) -> ModeName | ModeError:
    """Change the mode, and return the one before; the same mode again changes nothing."""
    before = turn.state.mode
    if mode != before and mode not in ALLOWED[before]:
        return refused_mode(before, mode)
    if mode != before:
        record = records.Mode(mode=mode, reason=reason, by=by)
        turn.write(records.MODE, record)
        turn.state.went_over(record)
    return before
