"""Rounds of SafeLUCB at an edge that were not played as decided: moved, under the lease that they count in."""

import math
from typing import Any

from surefoot.arrays import LARGEST
from surefoot.edge.base_edge import BaseEdge
from surefoot.edge.edge_entries import VoidedEntry
from surefoot.edge.edge_journal import EdgeJournal
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError
from surefoot.experiment.void import read_played


class EdgeVoids(BaseEdge[EdgeJournal]):
    """An edge of SafeLUCB, but for its decisions."""

    _kind, _opens = "floor", EdgeJournal

    def void(self, decision_id: str, action: str | int | None = None) -> bool:
        """Say that something else was played than was decided, before its reward is known.

        From then on the round counts as it was played. That is possible under the lease that it was decided under. A
        round that was handed in stands, for others have been leased what it earned: abandon it. Valid only if nothing
        has influenced this call that the round's reward, or the reward of a round decided after it, can have
        influenced.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        action : str or int, optional
            Name or row of what was played; by default the baseline.

        Returns
        -------
        bool
            False where nothing is to be moved: it was played as decided, or this was said before.

        Raises
        ------
        DecisionError
            If there is no such decision, or it was handed in.
        DecisionSettledError
            If its reward has come, or its window has closed.
        DecisionConflictError
            If something else was said before.
        InputError
            If the action was not offered.
        JournalError
            If the log cannot be written, as of `reward`.
        """
        with self._lock:
            round_, now = self._round_of(decision_id), self._now()
            if round_ is None:
                raise DecisionError(f"A decision must exist to be voided, but none has the id {decision_id!r:.80}.")
            before = self._journal.rounds.voided.get(round_)
            if before is not None:
                if before.is_meant_by(action):
                    return False
                raise DecisionConflictError(f"A decision is voided once, but {decision_id!r} was before, otherwise.")
            return self._void(decision_id, round_, action, now)

    def _void(self, decision_id: str, round_: int, action: str | int | None, now: float) -> bool:
        decided, played = self._journal.decided(round_), None
        if decided is not None:
            played = read_played(action, decided.baseline, decided.names, decided.actions)
            if played == decided.action:
                return False
        if self._journal.rounds.settled_as(round_, now) is not None:
            raise DecisionSettledError(
                f"A decision must be without a reward to be voided, but {decision_id!r} is settled: its reward has "
                "come or its window has closed. Moving it now could choose the data by their values."
            )
        if decided is None or played is None or not self._journal.is_leased(round_):
            if decided is None and action is None and not self._journal.shard.policy.settlement.find(round_)[1]:
                return False  # it was the baseline's
            raise DecisionError(
                f"A round must be voided under the lease that it was decided under, but {decision_id!r} was handed in. "
                "It counts as decided. Abandon it, or its reward is learned for an action that was not played. Void "
                "rounds sooner, or let leases last longer (`every` and `seconds` of the edge)."
            )
        self._journal.void(decided, VoidedEntry(round_, now, played))
        return True

    def _read_reward(self, value: Any) -> float:
        return float(value)

    def _is_within(self, reward: float) -> bool:
        return math.isfinite(reward) and abs(reward) <= LARGEST
