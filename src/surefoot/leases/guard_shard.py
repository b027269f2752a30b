"""A guard's shard in one process: its coins, its clock, and what it has to hand in."""

from collections.abc import Mapping
from typing import Any

from surefoot.arrays import finite
from surefoot.errors import DecisionError, InputError
from surefoot.leases.guard_lease import GuardHandIn, GuardLease, GuardRound
from surefoot.leases.hand_in_checks import check_next
from surefoot.policies.guard_decision import GuardDecision
from surefoot.policies.guard_settings import is_same, read_rewards


class GuardShard:
    """One server's part of a guard whose bank is shared.

    Parameters
    ----------
    lease : GuardLease
        What `GuardCoordinator.join` granted.
    seed : int, optional
        For simulations: coins that can be repeated; another one for each shard.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.leases import GuardCoordinator
    >>> coordinator = GuardCoordinator(surefoot.Guard(alpha=0.1, delta=0.05), skew=0.5)
    >>> shard = GuardShard(coordinator.join("berlin", now=0.0))
    >>> round(shard.decide(baseline="old", proposal="new", moment=1.0).share, 9)  # what is free: the bank is empty
    0.1
    """

    def __init__(self, lease: GuardLease, *, seed: int | None = None) -> None:
        self._lease, self._moment, self._seed = lease, lease.since, seed
        self._guard, self._is_leased = lease.guard(seed=seed), True
        self._since: list[GuardRound] = []
        self._open: set[int] = set()
        self._settled: list[tuple[int, Any]] = []

    @property
    def lease(self) -> GuardLease:
        """What it may spend."""
        return self._lease

    @property
    def rounds(self) -> int:
        """Rounds decided so far, over all its leases."""
        return self._guard.rounds

    @property
    def share(self) -> float:
        """The probability with which the next proposal would be played."""
        return self._guard.share if self._is_leased else 0.0

    def decide(
        self,
        *,
        baseline: Any,
        proposal: Any,
        prediction: float | Mapping[str, float] | None = None,
        moment: float,
        hold: bool = False,
    ) -> GuardDecision:
        """Draw the coin, and say which action to play; after a hand-in the baseline, until the lease is renewed.

        Parameters
        ----------
        baseline, proposal, prediction, hold
            As in `Guard.decide`.
        moment : float
            The shard's clock, in seconds; not before its round before.

        Returns
        -------
        GuardDecision
            The action, its propensity and the certificate.

        Raises
        ------
        InputError
            If the prediction is invalid, or the clock went back.
        """
        self._check_moment(moment)
        is_held = hold or not self._is_leased
        made = self._guard.decide(baseline=baseline, proposal=proposal, prediction=prediction, hold=is_held)
        teaches, is_learner = not is_same(baseline, proposal), made.source == "learner"
        self._since.append(GuardRound(made.round, moment, made.share, made.draw, is_learner, teaches, prediction))
        self._open.add(made.round)
        self._moment = moment
        return made

    def observe(self, number: int, reward: Any) -> None:
        """Take the reward of a round: it is handed in, and earns nothing before that.

        Parameters
        ----------
        number : int
            The round's number in this shard.
        reward : float or mapping
            As in `Guard.observe`.

        Raises
        ------
        DecisionError
            If the round is not open.
        AssumptionError
            If the reward lies outside of its bounds.
        """
        read_rewards(reward, self._guard.metrics)
        self._settle(number, reward)

    def abandon(self, number: int) -> None:
        """Settle a round without its reward: it counts at its worst.

        Parameters
        ----------
        number : int
            The round's number in this shard.
        """
        self._settle(number, None)

    def _settle(self, number: int, reward: Any) -> None:
        if number not in self._open:
            raise DecisionError(f"A round must be open to be settled, but {number!r} is not.")
        self._open.discard(number)
        self._settled.append((number, reward))

    def hand_in(self, moment: float) -> GuardHandIn:
        """What was done under the lease. From now on only the baseline plays, until `renew`.

        Parameters
        ----------
        moment : float
            The shard's clock.

        Returns
        -------
        GuardHandIn
            For `GuardCoordinator.take`.

        Raises
        ------
        InputError
            If it was handed in before, or the clock went back.
        """
        if not self._is_leased:
            raise InputError("A lease is handed in once: renew it first.")
        self._check_moment(moment)
        given = GuardHandIn(self._lease.shard, self._lease.number, tuple(self._since), tuple(self._settled), moment)
        self._since, self._settled, self._is_leased, self._moment = [], [], False, moment
        return given

    def renew(self, lease: GuardLease) -> None:
        """Go on under a new lease; rounds of the baseline that were played meanwhile count in it.

        Parameters
        ----------
        lease : GuardLease
            What `GuardCoordinator.take` granted.

        Raises
        ------
        InputError
            If it is not the next lease of this shard, or the last one was not handed in.
        """
        check_next(self._lease, is_leased=self._is_leased, lease=lease)
        self._guard, self._is_leased = lease.guard(rounds=self.rounds, seed=self._seed), True
        self._lease = lease

    def _check_moment(self, moment: float) -> None:
        if not finite("moment", moment, hint="It is the time.") >= self._moment:
            raise InputError(
                f"`moment` must not be before the last one, {self._moment!r}, but got {moment!r}. Rounds are merged by "
                "their moments: use a clock that never goes back."
            )
