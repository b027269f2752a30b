"""The contract of a policy over features: decide, recall, and what it inherits from every policy."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Vector, finite, finite_array
from surefoot.errors import InputError
from surefoot.policies.base_policy import BasePolicy, Round
from surefoot.policies.decision import Decision as Decision
from surefoot.policies.decision import Source as Source
from surefoot.policies.decision import check_recalled, round_of
from surefoot.policies.orders import ALARMED, FREE, HOLD
from surefoot.policies.saved_state import refill as refill
from surefoot.policies.settlement import read_settlement
from surefoot.safety.certificate import Certificate, unproved


class Policy(BasePolicy):
    """A policy that chooses among actions with features, or plain arms.

    `decide` counts the round in the ledger at once; `observe` may follow at any time and in any order. Rewards are
    learned in the order of the decisions: one that comes early waits until every earlier round is settled, by its
    reward, by `abandon` or, with `settle_after=n`, by `default_reward` n rounds later. Until then a round is pending:
    in the ledger, not in the confidence set. A call that raises has changed nothing. Same calls, same bits.
    """

    def __init__(
        self, settings: Mapping[str, Any], *, settle_after: int | None = None, default_reward: float | None = None
    ) -> None:
        told = dict(settings)
        if settle_after is not None:
            told |= {"settle_after": settle_after, "default_reward": default_reward}
        super().__init__(told, read_settlement(settle_after, default_reward))
        self._adds_to_record = False  # whether more is kept of an open round than its features

    @abstractmethod
    def decide(
        self,
        features: ArrayLike,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an action for this round.

        Parameters
        ----------
        features : array_like of shape (actions, dim)
            One row per action.
        baseline : int, optional
            Row of the action you would play today. Policies that keep a floor need it.
        baseline_reward : float or (low, high), optional
            Mean reward of the baseline in this round, where the policy takes it.
        hold : bool
            Play the baseline whatever the gate says; the certificate tells what it would have allowed.

        Returns
        -------
        Decision
            The action to play, with its certificate.

        Raises
        ------
        InputError
            If features or baseline break a rule; AssumptionError if they contradict what was declared.
        """

    def recall(
        self,
        features: ArrayLike,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        action: int,
        source: Source,
    ) -> Decision:
        """Count a round again as it was decided before, to restore a policy from a journal.

        The round counts as played whatever the gate says today, so a newer version never rewrites the past.

        Parameters
        ----------
        features, baseline, baseline_reward
            As in `decide`.
        action : int
            The row that was played.
        source : {"learner", "baseline"}
            Who played it.

        Returns
        -------
        Decision
            The decision, with the number of its round.

        Raises
        ------
        InputError
            If `source` or `action` is invalid, or a baseline round played another row than the baseline's.
        """
        check_recalled(action, source, baseline)
        return self._recall(features, baseline, baseline_reward, int(action) if source == "learner" else None)

    def void(
        self,
        decision: Round,
        features: Any = None,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        action: int,
        source: Source,
        played: int,
    ) -> None:
        """Move a round without a reward to what was really played, so that ledger and later proofs are about that.

        Its reward, when it comes, is learned as that of the row that was played. Decisions made meanwhile stand. Valid
        only if nothing has influenced this call that the round's reward, or the reward of a round decided after it, can
        have influenced.

        Parameters
        ----------
        decision : Decision or int
            The decision or the number of its round.
        features, baseline, baseline_reward
            As they were given to `decide`.
        action : int
            The row that was decided.
        source : {"learner", "baseline"}
            Who decided it.
        played : int
            The row that was played instead.

        Raises
        ------
        DecisionError
            If the decision is another policy's, was never made, or is settled.
        InputError
            If the round cannot have been decided, or played, like this.
        """
        round_ = round_of(decision, self._id)
        self._settlement.check_open(round_, self._rounds, "voided")
        check_recalled(action, source, baseline)
        check_recalled(played, "learner", baseline)
        if self._settlement.find(round_)[1] != (source == "learner"):
            other = "baseline" if source == "learner" else "learner"
            raise InputError(f"Round {round_} was decided by the {other}, but `source` is {source!r}.")
        row = self._rebook(round_, features, baseline, baseline_reward, (int(action), source == "learner"), int(played))
        is_learner = played != baseline
        self._settlement.played(round_, self._record_of_played(row, round_), is_learner)

    def _rebook(
        self,
        round_: int,
        features: Any,
        baseline: int | None,
        baseline_reward: Any,
        decided: tuple[int, bool],
        played: int,
    ) -> bytes:
        """Move a round, decided as (row, whether the learner's), in the ledger; returns what is kept of `played`.

        A policy without a ledger has nothing to move: a copy of it tells what it would have kept.
        """
        again = type(self).from_state(self.state())
        source: Source = "baseline" if played == baseline else "learner"
        again.recall(features, baseline=baseline, baseline_reward=baseline_reward, action=played, source=source)
        return again._settlement.find(again._rounds)[0]

    def _check_decided(self, round_: int, row: Vector) -> None:
        """Raise if an open round was not decided with these features: another one would be taken out of the ledger."""
        kept = self._settlement.find(round_)[0]
        if not kept.startswith(row.tobytes()):
            raise InputError(
                f"`features` and `action` must be those of round {round_}, but its features were others. "
                "Give what was given to `decide`."
            )

    def learn_logged(self, features: ArrayLike, reward: float) -> None:
        """Learn a row that somebody else played, such as a row of a log; it counts in no ledger.

        Parameters
        ----------
        features : array_like of shape (dim,)
            The row that was played.
        reward : float
            What it brought.

        Raises
        ------
        InputError
            If the row or the reward is not finite, or the row has another length.
        """
        row = finite_array("features", features, ndim=1)
        if row.size != self._feature_size():
            raise InputError(f"`features` must have {self._feature_size()} entries, but got {row.size}.")
        value = finite("reward", reward, hint="Leave out a row whose reward is not known.")
        self._learn_row(row.copy(), value)

    @abstractmethod
    def _learn(self, features: Vector, reward: Any, is_learner: bool) -> None:
        """Learn the reward of one decided round."""

    def _learn_record(self, record: bytes, reward: Any, is_learner: bool) -> None:
        self._learn(np.frombuffer(record).copy(), reward, is_learner)

    def _learn_row(self, features: Vector, reward: float) -> None:
        self._learn(features, reward, True)

    @abstractmethod
    def _recall(self, features: Any, baseline: Any, baseline_reward: Any, action: int | None) -> Decision:
        """Count a round in which the learner played that row or, if it is None, the baseline its own."""

    def _order(self, hold: bool) -> int:
        """The order that a call of `decide` gives to the compiled step."""
        if hold:
            return HOLD
        return ALARMED if self._alarm is not None and self.keeps_floor else FREE

    def _record_of(self, features: bytes, is_learner: bool) -> bytes:
        """What is kept of an open round, for its reward."""
        return features

    def _record_of_played(self, features: bytes, round_: int) -> bytes:
        """The same of a round that was played otherwise than decided."""
        return features

    def _unproved(self, row: int, features: Vector, *, proposal: int, is_held: bool = False) -> Decision:
        """End `decide` or `_recall` of a policy that keeps no floor, and so has nothing to prove.

        `is_held` says that the baseline plays; `proposal` is the row that the learner would have played.
        """
        return self._decided(row, not is_held, features, partial(unproved, features.size, proposal, is_held))

    def _decided(
        self, row: int, is_learner: bool, features: bytes | Vector, certify: Callable[..., Certificate]
    ) -> Decision:
        """Count the round; `features` are those of what is played."""
        record = features if isinstance(features, bytes) else np.asarray(features, dtype=np.float64).tobytes()
        return self._counted(row, is_learner, record, certify, self._teaches(is_learner))

    def _counted(
        self,
        row: int,
        is_learner: bool,
        features: bytes,
        certify: Callable[..., Certificate],
        teaches: bool,
        evidence: tuple[Any, ...] = (),
    ) -> Decision:
        """The same where it is known whether the reward is learned.

        The certificate is `certify(*evidence)`, when somebody asks for it.
        """
        self._rounds = round_ = self._rounds + 1
        record = self._record_of(features, is_learner) if self._adds_to_record else features
        settlement = self._settlement
        settlement.decided(round_, record, is_learner, teaches)
        if settlement.settle_after is not None:
            self._learn_due()
        return Decision(round_, "learner" if is_learner else "baseline", features, self._id, row, certify, evidence)
