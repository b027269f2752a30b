"""A shard: decides by itself under a lease, and hands in what it did."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, finite, real_array
from surefoot.errors import DecisionError, InputError
from surefoot.leases.lease import HandIn, Lease, LeasedRound
from surefoot.policies import Decision, SafeLUCB


class Shard:
    """One server's part of an experiment whose floor is shared.

    Proofs rest on the lease's frozen set alone. Rewards that came here, and that the coordinator has not merged yet,
    steer what is proposed: a second model learns them at once, on top of that set.

    Parameters
    ----------
    lease : Lease
        What `Coordinator.join` granted.
    rounds : int
        Rounds that the shard had decided before, where it continues.

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

    def __init__(self, lease: Lease, *, rounds: int = 0) -> None:
        self._rounds = rounds
        self._lease, self._policy, self._steering = lease, lease.policy(), lease.policy()
        self._moment = lease.since
        self._is_handed_in = False
        self._since: list[LeasedRound] = []  # rounds since the lease, or since what was handed in last
        self._open: dict[int, tuple[float, bytes, bool]] = {}
        self._rewards: list[tuple[int, float | None]] = []
        # Moment, features, reward and who played, of rewards that may not be merged yet.
        self._local: list[tuple[float, bytes, float, bool]] = []

    @property
    def lease(self) -> Lease:
        """What it may risk."""
        return self._lease

    @property
    def policy(self) -> SafeLUCB:
        """The policy that judges its proposals: the frozen set, and the rounds since the lease."""
        return self._policy

    @property
    def rounds(self) -> int:
        """Rounds decided so far, over all its leases."""
        return self._rounds

    def is_due(self, every: int) -> bool:
        """Whether to renew the lease now: after so many rounds, and sooner while the shard has decided few.

        Parameters
        ----------
        every : int
            The most rounds under one lease.

        Returns
        -------
        bool
            Whether it is time.
        """
        return self._policy.rounds >= min(every, max(1, self._rounds // 2))

    def decide(
        self,
        features: ArrayLike,
        *,
        baseline: int,
        baseline_reward: Any = None,
        moment: float,
        hold: bool = False,
    ) -> Decision:
        """Choose an action; after a hand-in, the baseline's until the lease is renewed.

        Parameters
        ----------
        features : array_like of shape (actions, dim)
            One row per action.
        baseline : int
            Row of the action you would play today.
        baseline_reward : float or (low, high), optional
            Mean reward of the baseline in this round.
        moment : float
            The shard's clock, in seconds; later than at its round before.
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
        if not finite("moment", moment, hint="It is the time of the decision.") > self._moment:
            raise InputError(
                f"`moment` must be later than the round before, at {self._moment!r}, but got {moment!r}. "
                "Decisions are merged by their moments: use a clock that never goes back."
            )
        if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
            raise InputError(f"`baseline` must be one row where shards share a floor, but got {baseline!r}.")
        rows = real_array("features", features, ndim=2)
        told = {"baseline": int(baseline), "baseline_reward": baseline_reward}
        if hold or self._is_handed_in or self._policy.alarm is not None or not self._local:
            decision = self._policy.decide(rows, **told, hold=hold or self._is_handed_in)
        else:
            decision = self._policy.consider(rows, **told, proposal=self._proposal(rows))
        self._book(decision, rows[int(baseline)].copy(), baseline_reward, moment)
        return decision

    def _proposal(self, rows: Matrix) -> int:
        core = self._steering.core
        proposal, _ = core.propose(rows, core.optimism)
        return max(0, int(proposal))  # a row that breaks a rule is refused by the policy

    def _book(self, decision: Decision, displaced: Vector, baseline_reward: Any, moment: float) -> None:
        self._rounds += 1
        is_learner = decision.source == "learner"
        known = tuple(baseline_reward) if isinstance(baseline_reward, (list, np.ndarray)) else baseline_reward
        self._since.append(LeasedRound(self._rounds, moment, decision.features, displaced, is_learner, known))
        self._open[self._rounds] = (moment, decision._features, is_learner)
        self._moment = moment

    def observe(self, number: int, reward: float) -> None:
        """Take the reward of a round: it is handed in, and steers what is proposed here until it is merged.

        Parameters
        ----------
        number : int
            The round's number in this shard.
        reward : float
            What it brought.

        Raises
        ------
        DecisionError
            If the round was never decided, or is settled.
        InputError
            If the reward is not a finite number.
        """
        value = finite("reward", reward, hint="Leave the decision open until its reward is known.")
        moment, features, is_learner = self._settle(number)
        self._rewards.append((number, value))
        self._local.append((moment, features, value, is_learner))
        self._steering.core.learn(features, value, is_learner)

    def abandon(self, number: int) -> None:
        """Settle a round without its reward (`Policy.abandon`).

        Parameters
        ----------
        number : int
            The round's number in this shard.

        Raises
        ------
        DecisionError
            If the round was never decided, or is settled.
        """
        self._settle(number)
        self._rewards.append((number, None))

    def _settle(self, number: int) -> tuple[float, bytes, bool]:
        if number not in self._open:
            raise DecisionError(
                f"A round must be open to be settled, but {number!r} of shard {self._lease.shard!r} was never decided "
                "here, or is settled."
            )
        return self._open.pop(number)

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
        if self._is_handed_in or not moment >= self._moment:
            raise InputError(
                "A lease is handed in once, by a clock that never goes back: renew it first, or give a moment of at "
                f"least {self._moment!r}, not {moment!r}."
            )
        memory, alarm = self._policy.core.memory, self._policy.alarm
        given = HandIn(
            shard=self._lease.shard,
            lease=self._lease.number,
            rounds=tuple(self._since),
            rewards=tuple(self._rewards),
            question=memory.proved_question,
            level=max(memory.proved, -self._lease.amount),
            through=moment,
            alarm=alarm,
        )
        self._is_handed_in, self._moment = True, moment
        self._since, self._rewards = [], []
        return given

    def renew(self, lease: Lease) -> None:
        """Go on under a new lease; rounds of the baseline that were played meanwhile count in it.

        Parameters
        ----------
        lease : Lease
            What `Coordinator.take` granted.

        Raises
        ------
        InputError
            If it is not the next lease of this shard, or the last one was not handed in.
        """
        if not self._is_handed_in or lease.shard != self._lease.shard or lease.number != self._lease.number + 1:
            raise InputError(
                f"Lease {self._lease.number} of shard {self._lease.shard!r} must be handed in and be followed by the "
                f"next, but got lease {lease.number} of {lease.shard!r}."
            )
        policy, steering = lease.policy(), lease.policy()
        for made in self._since:
            made.recall(policy)
        self._local = [entry for entry in self._local if entry[0] > lease.merged]
        for _, features, reward, is_learner in self._local:
            steering.core.learn(features, reward, is_learner)
        self._lease, self._policy, self._steering, self._is_handed_in = lease, policy, steering, False
