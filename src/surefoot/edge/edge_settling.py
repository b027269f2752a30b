"""How a round of an edge ends: by its reward, or without one."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from surefoot.client.models import Receipt
from surefoot.edge.edge_entries import Rewarded
from surefoot.edge.edge_renewal import EdgeRenewal, J
from surefoot.errors import DecisionError


class EdgeSettling(EdgeRenewal[J]):
    """What callers report of rounds; each report is in the log before it counts."""

    def reward(self, decision_id: str, value: float | Mapping[str, float]) -> Receipt:
        """Take the reward of a decision: it is handed in with the next lease, and steers what is proposed here.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        value : float or mapping
            What it brought; of a guard with several metrics a number for each.

        Returns
        -------
        Receipt
            Accepted and queued, or refused: "unknown", "conflict" where it is settled or another value came before,
            "too_late" where its window has closed, by this edge's clock, "out_of_range".

        Raises
        ------
        InputError
            If it is not a number, or not of a metric.
        JournalFullError
            If the log cannot be written; the reward is not kept.
        JournalUnavailableError
            If the edge was closed, or belongs to the process that this one was forked from.
        """
        reward = self._read_reward(value)
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
            if not self._is_within(reward):
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

    @abstractmethod
    def _read_reward(self, value: Any) -> Any:
        """A reward as the log keeps it."""

    @abstractmethod
    def _is_within(self, reward: Any) -> bool:
        """Whether a reward can be taken."""

    def _round_of(self, decision_id: str) -> int | None:
        own = self._journal.rounds.own.find(decision_id)
        if own is not None:
            return int(own.round)
        shard, _, number = str(decision_id).rpartition(":")
        is_known = shard == self.shard and number.isascii() and number.isdigit()
        return int(number) if is_known and 0 < int(number) <= self._journal.shard.rounds else None
