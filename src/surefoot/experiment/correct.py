"""The verb `correct`: a reward that was measured wrongly is replaced, as long as nothing was learned from it.

What was learned stands: confidence sets, and decisions made since, rest on it. Then a fork that is told the right
reward begins anew with it (`surefoot.experiment.fork`, `corrections`).
"""

import math

from surefoot import records
from surefoot.arrays import LARGEST
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError, SurefootError
from surefoot.experiment.sealing import find_decision, reference
from surefoot.experiment.state import decode, round_of
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import Event
from surefoot.policies import Guard


def correct(turn: UnitOfWork, decision_id: str, value: float, reason: str, by: str) -> bool | SurefootError:
    """Replace the reward of a decision; false where it has that value already."""
    if isinstance(turn.state.policy, Guard):
        return InputError(
            "A guard's rewards cannot be corrected: its bank counts them when they come. Create a new experiment."
        )
    if not (math.isfinite(value) and abs(value) <= LARGEST):
        return InputError(f"`value` must be finite, and at most {LARGEST:g}, but got {value!r}.")
    decision = find_decision(turn.state.created, turn.transaction, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be corrected, but none has the id {decision_id!r:.80}.")
    ref = reference(decision)
    accepted, before = turn.transaction.find(f"r:{ref}"), turn.transaction.find(f"x:{ref}")
    if accepted is None or accepted.kind != records.REWARD:
        return DecisionError(f"A reward must have come to be corrected, but {decision_id!r:.80} has none: send it.")
    now = decode(accepted, records.RewardRecord).value if before is None else decode(before, records.Corrected).value
    if float(now) == value:
        return False
    if before is not None:
        return DecisionConflictError(
            f"A reward is corrected once, but that of {decision_id!r:.80} was corrected to {now} before."
        )
    if not _is_unlearned(turn, ref, decision):
        return DecisionSettledError(
            f"A reward must not have been learned to be corrected, but that of {decision_id!r:.80} was: what rests on "
            "it cannot be taken back. Fork the experiment, with the right one among its `corrections`, to begin anew."
        )
    if turn.state.hands_in and turn.state.windows is None:
        return DecisionSettledError(
            f"A shard's reward must be in an open window to be corrected, but that of {decision_id!r:.80} has none: it "
            "is handed in as it came, and is learned where the shards meet. Declare a `reward_window` if rewards may "
            "have to be corrected."
        )
    record = records.Corrected(decision_id=ref, value=value, reason=reason, by=by)
    turn.write(records.CORRECTED, record, f"x:{ref}")
    turn.state.corrected(record, round_of(decision))
    return True


def _is_unlearned(turn: UnitOfWork, ref: str, decision: Event) -> bool:
    """Whether the reward waits: for its window to close, or for an earlier round."""
    windows = turn.state.windows
    if windows is None:
        return round_of(decision) in turn.state.policy.settlement.rewards
    waiting = windows.find(ref)
    # A window that is due may still be open: one transaction closes so many at most.
    return waiting is not None and waiting.closes > turn.now
