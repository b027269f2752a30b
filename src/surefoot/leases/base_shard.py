"""What every shard in one process has: a lease, a clock that never goes back, and rounds to hand in."""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from surefoot.arrays import count, finite
from surefoot.errors import InputError


class AnyLease(Protocol):
    """What a shard may spend until it hands in."""

    @property
    def shard(self) -> str:
        """Whose it is."""

    @property
    def number(self) -> int:
        """How many it has had, from 1."""

    @property
    def since(self) -> float:
        """The shard's rounds must be decided at this moment or later."""


L = TypeVar("L", bound=AnyLease)
R = TypeVar("R")  # a round


class LeasedPolicy(Protocol):
    """A policy that plays the learner under a lease only."""

    @property
    def rounds(self) -> int:
        """Rounds decided so far."""

    @property
    def is_leased(self) -> bool:
        """Whether the learner may play."""

    def renew(self, lease: Any, since: Sequence[Any] = ()) -> None:
        """Go on under a lease; rounds since the last hand-in count in it."""

    def observe(self, decision: Any, reward: Any) -> None:
        """Take a reward."""

    def abandon(self, decision: Any) -> None:
        """Settle a round without its reward."""

    def take_settled(self) -> list[tuple[int, Any]]:
        """Rewards since this was asked last."""

    def end_lease(self) -> None:
        """Play only the baseline, until the lease is renewed."""


P = TypeVar("P", bound=LeasedPolicy)


class BaseShard(Generic[P, L, R]):
    """One server's part of a promise that is shared."""

    def __init__(self, lease: L, policy: P) -> None:
        self._lease, self._moment, self._policy = lease, lease.since, policy
        self._policy.renew(lease)
        self._since: list[R] = []  # rounds since the last hand-in

    @property
    def lease(self) -> L:
        """What it may risk."""
        return self._lease

    @property
    def moment(self) -> float:
        """Nothing may be decided before."""
        return self._moment

    @property
    def policy(self) -> P:
        """The policy that decides: what the lease knew, and the rounds since."""
        return self._policy

    @property
    def rounds(self) -> int:
        """Rounds decided so far, over all its leases."""
        return self._policy.rounds

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
        count("every", every, hint="every is how many decisions a lease lasts.")
        return len(self._since) >= min(every, max(1, self.rounds // 2))

    def observe(self, number: int, reward: Any) -> None:
        """Take the reward of a round: it is handed in, and proves nothing before that.

        Parameters
        ----------
        number : int
            The round's number in this shard.
        reward : float or mapping
            What it brought.
        """
        self._policy.observe(number, reward)

    def abandon(self, number: int) -> None:
        """Settle a round without its reward (`Policy.abandon`, `Guard.abandon`).

        Parameters
        ----------
        number : int
            The round's number in this shard.
        """
        self._policy.abandon(number)

    def renew(self, lease: L) -> None:
        """Go on under a new lease; rounds of the baseline that were played meanwhile count in it.

        Parameters
        ----------
        lease : Lease or GuardLease
            What `take` of the coordinator granted.

        Raises
        ------
        InputError
            If it is not the next lease of this shard, or the last one was not handed in.
        """
        held = self._lease
        if self._policy.is_leased or (lease.shard, lease.number) != (held.shard, held.number + 1):
            raise InputError(
                f"Lease {held.number} of shard {held.shard!r} must be handed in and be followed by the next, but got "
                f"lease {lease.number} of {lease.shard!r}."
            )
        self._policy.renew(lease, self._since)
        self._lease = lease

    def _decided(self, made: R, moment: float) -> None:
        self._since.append(made)
        self._moment = moment

    def _check_end(self, moment: float) -> None:
        if not self._policy.is_leased:
            raise InputError("A lease is handed in once: renew it first.")
        self._check_moment(moment)

    def _ended(self, moment: float) -> None:
        """Begin anew: what was done under the lease is handed in."""
        self._policy.end_lease()
        self._since, self._moment = [], moment

    def _check_moment(self, moment: float) -> None:
        if not finite("moment", moment, hint="It is the time.") >= self._moment:
            raise InputError(
                f"`moment` must not be before the last one, {self._moment!r}, but got {moment!r}. Rounds are merged by "
                "their moments: use a clock that never goes back."
            )
