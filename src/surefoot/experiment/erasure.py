"""The verb `erase`: what is about a person goes, what was decided and earned stays.

Gone are the id, the names of actions, the unit and the context of a decision (`surefoot.experiment.sealing`), for good.
The features, the proof and the reward stay, so that ledger and audit are as they were. The decision is then known by
its reference alone: a round that still waits for its reward can be settled by that.
"""

import math
from collections.abc import Iterable, Sequence

from surefoot import records
from surefoot.errors import DecisionError, InputError, SurefootError
from surefoot.experiment.answer import or_raise
from surefoot.experiment.decisions import Decisions
from surefoot.experiment.question import read_ids, read_text
from surefoot.experiment.sealing import find_decision, is_sealed, read_person, reference
from surefoot.experiment.transacted_state import Call
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import View

MOST_ERASED = 1000  # texts that are erased in one transaction, which must be quick; the rest follow in the next


class Erasures(Decisions):
    """An experiment as far as it decides and forgets."""

    def now(self) -> float:
        """The time by the experiment's clock, in seconds since 1970."""
        return self._clock()

    def erase(
        self,
        decision_ids: Sequence[str] = (),
        *,
        person: str | int | None = None,
        before: float | None = None,
        by: str = "",
        reason: str = "",
    ) -> int:
        """Erase what is about people: ids, names, units and contexts. Features, proofs and rewards stay.

        Parameters
        ----------
        decision_ids : sequence of str
            Decisions by their ids.
        person : str or int, optional
            Every decision about a person: of that `unit`, or with it as `person` of the context.
        before : float, optional
            Every decision made before that time, in seconds since 1970.
        by, reason : str
            Who erases, and why; kept in the journal.

        Returns
        -------
        int
            How many texts were erased.

        Raises
        ------
        DecisionError
            If there is no such decision; nothing was erased.
        InputError
            If the experiment is not sealed, nothing or too much is named, or a name is none.
        """
        ids = read_ids("decision_ids", decision_ids)
        person = None if person is None else read_person(person, "`person`")
        if before is not None and not (isinstance(before, int | float) and math.isfinite(before)):
            raise InputError(f"`before` must be a time in seconds since 1970, but got {before!r:.80}.")
        if not ids and person is None and before is None:
            raise InputError(
                "Something must be named to be erased, but got nothing: give `decision_ids`, a `person`, or `before`."
            )
        why, who = read_text("reason", reason), read_text("by", by)
        # All ids in the first transaction, so that an unknown one changes nothing; of the rest so many at a time.
        total = last = or_raise(self._run(Call(lambda turn: erase(turn, ids, person, before, who, why))))
        while last >= MOST_ERASED:
            total += (last := or_raise(self._run(Call(lambda turn: erase(turn, (), person, before, who, why)))))
        self._journal.forget()
        return total


def erase(
    turn: UnitOfWork,
    decision_ids: Sequence[str],
    person: str | None,
    before: float | None,
    by: str,
    reason: str,
) -> int | SurefootError:
    """Erase private texts, at most `MOST_ERASED`, and write that down; returns how many."""
    if not is_sealed(turn.state.created):
        return InputError(
            "Only a sealed experiment can be erased from, but the chain of this one holds ids and contexts itself. "
            "Archive or delete it, and create the next one `sealed`."
        )
    named = _of_ids(turn, decision_ids)
    if isinstance(named, SurefootError):
        return named
    named, found = sorted(set(named)), list[int]()
    if person is not None:
        found += turn.transaction.about(person)
    if before is not None:
        last = _last_before(turn.transaction, before)
        found += [number for number, _ in turn.transaction.privates(0, MOST_ERASED) if number <= last]
    # Those that were named go in any case; the rest, oldest first, may have to wait for the next turn.
    numbers = sorted([*named, *sorted(set(found) - set(named))[: MOST_ERASED - len(set(named))]])
    erased = turn.transaction.erase(numbers)
    if erased:
        turn.write(records.ERASED, records.Erased(events=numbers, reason=reason, by=by))
    return erased


def _of_ids(turn: UnitOfWork, decision_ids: Iterable[str]) -> list[int] | SurefootError:
    """The events of decisions, and of the word that one was not played as decided."""
    found = list[int]()
    for decision_id in decision_ids:
        decision = find_decision(turn.state.created, turn.transaction, decision_id)
        if decision is None:
            return DecisionError(f"A decision must exist to be erased, but none has the id {decision_id!r:.80}.")
        voided = turn.transaction.find(f"v:{reference(decision)}")
        events = (decision, voided) if voided is not None else (decision,)
        found += [event.number for event in events if turn.transaction.private(event.number) is not None]
    return found


def _last_before(view: View, time: float) -> int:
    """Number of the last event before that time; times never run backwards, so that halving finds it."""
    low, high = 0, view.head.number
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if view.page(middle - 1, 1)[0].time < time else (low, middle - 1)
    return low
