"""A shard in one process: its policy, its clock, and what it has to hand in."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from surefoot.leases.base_shard import BaseShard
from surefoot.leases.lease import HandIn, Lease, LeasedRound, plain_round, read_round
from surefoot.leases.leased_lucb import LeasedLUCB
from surefoot.linear.actions import Catalogue
from surefoot.policies import Decision
from surefoot.policies.decision import Source


class Shard(BaseShard[LeasedLUCB, Lease, LeasedRound]):
    """One server's part of an experiment whose floor is shared.

    Parameters
    ----------
    lease : Lease
        What `Coordinator.join` granted.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.leases import Coordinator
    >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    >>> coordinator = Coordinator(policy, skew=0.5)
    >>> shard = Shard(coordinator.join("berlin", now=0.0))
    >>> decision = shard.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0, moment=1.0)
    >>> decision.source
    'baseline'
    >>> shard.observe(1, 1.0)
    >>> shard.renew(coordinator.take(shard.hand_in(2.0), now=2.0))
    >>> shard.rounds, coordinator.policy.rounds
    (1, 1)
    """

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease, LeasedLUCB(**lease.policy().settings))

    def state(self) -> dict[str, Any]:
        """Everything the shard knows, as plain data and arrays.

        Returns
        -------
        dict
            For `from_state`, which goes on to the bit.
        """
        return {
            "lease": [getattr(self._lease, name) for name in Lease.__struct_fields__],
            "policy": self._policy.state(),
            "moment": self._moment,
            "since": [plain_round(made) for made in self._since],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """A shard that goes on where another one was saved.

        Parameters
        ----------
        state : mapping
            What `state` returned.

        Returns
        -------
        Shard
            The shard.
        """
        shard = cls.__new__(cls)
        shard._lease, shard._moment = Lease(*state["lease"]), float(state["moment"])
        shard._policy = LeasedLUCB.from_state(state["policy"])
        shard._since = [read_round(made) for made in state["since"]]
        return shard

    def decide(
        self,
        features: ArrayLike | Catalogue,
        *,
        baseline: int,
        baseline_reward: Any = None,
        moment: float,
        hold: bool = False,
    ) -> Decision:
        """Choose an action; after a hand-in, the baseline's until the lease is renewed.

        Parameters
        ----------
        features : array_like of shape (actions, dim), or Catalogue
            One row per action.
        baseline : int
            Row of the action you would play today.
        baseline_reward : float or (low, high), optional
            Mean reward of the baseline in this round.
        moment : float
            The shard's clock, in seconds; not before its round before.
        hold : bool
            Play the baseline whatever the gate says.

        Returns
        -------
        Decision
            The action to play, with its certificate.

        Raises
        ------
        InputError
            If the question breaks a rule, or the clock went back.
        """
        self._check_moment(moment)
        decision = self._policy.decide(features, baseline=baseline, baseline_reward=baseline_reward, hold=hold)
        rows = features.rows if isinstance(features, Catalogue) else np.asarray(features, dtype=np.float64)
        displaced = rows[baseline].copy()
        known = tuple(baseline_reward) if isinstance(baseline_reward, (list, np.ndarray)) else baseline_reward
        is_learner = decision.source == "learner"
        made = LeasedRound(decision.round, moment, decision.features, displaced, is_learner, known)
        self._decided(made, moment)
        return decision

    def void(
        self,
        number: int,
        features: ArrayLike | Catalogue,
        *,
        baseline: int,
        baseline_reward: Any = None,
        action: int,
        source: Source,
        played: int,
    ) -> None:
        """Move a round of the present lease to what was really played (`Policy.void` says when that is valid).

        Parameters
        ----------
        number : int
            The round's number in this shard.
        features, baseline, baseline_reward
            As they were given to `decide`.
        action, source, played : int, str and int
            The row that was decided, by whom, and the row that was played instead.

        Raises
        ------
        DecisionError
            If the round was handed in, or is settled.
        InputError
            If it cannot have been decided, or played, like this.
        """
        rows = features.rows if isinstance(features, Catalogue) else np.asarray(features, dtype=np.float64)
        told: dict[str, Any] = {"baseline": baseline, "baseline_reward": baseline_reward, "action": action}
        self._policy.void(number, rows, **told, source=source, played=played)
        place = number - self._since[0].number
        made = self._since[place]
        self._since[place] = msgspec.structs.replace(made, played=rows[played].copy(), is_learner=played != baseline)

    def hand_in(self, moment: float) -> HandIn:
        """What was done under the lease. From now on only the baseline plays, until `renew`.

        Parameters
        ----------
        moment : float
            The shard's clock.

        Returns
        -------
        HandIn
            For `Coordinator.take`.

        Raises
        ------
        InputError
            If it was handed in before, or the clock went back.
        """
        self._check_end(moment)
        question, level = self._policy.proved(self._lease.amount)
        given = HandIn(
            shard=self._lease.shard,
            lease=self._lease.number,
            rounds=tuple(self._since),
            rewards=tuple(self._policy.take_settled()),
            question=question,
            level=level,
            through=moment,
            alarm=self._policy.alarm,
            moved=self._policy.moved,
        )
        self._ended(moment)
        return given
