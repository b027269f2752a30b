"""How a round of an edge ends: by its reward, without one, or as something else than was decided."""

import math

from surefoot.arrays import LARGEST
from surefoot.client.models import Receipt
from surefoot.edge.edge_entries import Rewarded, VoidedEntry
from surefoot.edge.edge_renewal import EdgeRenewal
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError
from surefoot.experiment.void import read_played


class EdgeSettling(EdgeRenewal):
    """What callers report of rounds; each report is in the log before it counts."""

    def reward(self, decision_id: str, value: float) -> Receipt:
        """Take the reward of a decision: it is handed in with the next lease, and steers what is proposed here.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        value : float
            What it brought.

        Returns
        -------
        Receipt
            Accepted and queued, or refused: "unknown", "conflict" where it is settled or another value came before,
            "too_late" where its window has closed, by this edge's clock, "out_of_range".

        Raises
        ------
        JournalFullError
            If the log cannot be written; the reward is not kept.
        JournalUnavailableError
            If the edge was closed, or belongs to the process that this one was forked from.
        """
        reward = float(value)
        with self._lock:
            round_ = self._round_of(decision_id)
            if round_ is None:
                return Receipt(decision_id, reward, "unknown")
            rounds, now = self._journal.rounds, self._now()
            settled = rounds.settled_as(round_, now)
            if settled == "rewarded" and rounds.reward_of(round_) == reward:
                return Receipt(decision_id, reward, is_repeat=True, is_queued=True)
            if settled is not None:
                return Receipt(decision_id, reward, "too_late" if settled == "too_late" else "conflict")
            if not (math.isfinite(reward) and abs(reward) <= LARGEST):
                return Receipt(decision_id, reward, "out_of_range")
            self._journal.settle(Rewarded(round_, now, reward))
        return Receipt(decision_id, reward, is_queued=True)

    def abandon(self, decision_id: str) -> None:
        """Settle a decision without its reward (`Policy.abandon` says when that is valid).

        Parameters
        ----------
        decision_id : str
            The decision's id.

        Raises
        ------
        DecisionError
            If there is no such decision, or it is settled.
        JournalError
            If the log cannot be written, as of `reward`.
        """
        with self._lock:
            round_, now = self._round_of(decision_id), self._now()
            if round_ is None or self._journal.rounds.settled_as(round_, now) is not None:
                raise DecisionError(f"A decision must be open to be abandoned, but {decision_id!r:.80} is not.")
            self._journal.settle(Rewarded(round_, now, None))

    def void(self, decision_id: str, action: str | int | None = None) -> bool:
        """Say that something else was played than was decided, before its reward is known.

        From then on the round counts as it was played. That is possible under the lease that it was decided under. A
        round that was handed in stands, for others have been leased what it earned: its reward is not learned then.

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
            self._journal.settle(Rewarded(round_, now, None))
            raise DecisionError(
                f"A round must be voided under the lease that it was decided under, but {decision_id!r} was handed in. "
                "It counts as decided, and its reward is not learned."
            )
        self._journal.void(decided, VoidedEntry(round_, now, played))
        return True

    def _round_of(self, decision_id: str) -> int | None:
        own = self._journal.rounds.own.find(decision_id)
        if own is not None:
            return own.round
        shard, _, number = str(decision_id).rpartition(":")
        is_known = shard == self.shard and number.isascii() and number.isdigit()
        return int(number) if is_known and 0 < int(number) <= self._journal.shard.rounds else None
