"""What every coordinator does, whatever it shares: shards join, hand in, leave, and are leased to, one at a time."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

from surefoot.arrays import finite
from surefoot.errors import InputError
from surefoot.leases.merged_policy import H, MergedPolicy, P
from surefoot.leases.merging import Member

L = TypeVar("L")  # a lease
A = TypeVar("A")  # what it grants
AT_MOST = 0.8  # of the pot, in equal shares by pace; the rest is for whoever joins


class BaseCoordinator(MergedPolicy[P, H], Generic[P, H, L, A]):
    """Leases out of one pot, each handed in before the next; nothing that is refused has changed anything."""

    def join(self, shard: str, *, now: float) -> L:
        """Let a shard in, with a first lease.

        Parameters
        ----------
        shard : str
            A name that no shard has had.
        now : float
            The coordinator's clock, in seconds.

        Returns
        -------
        Lease or GuardLease
            Its first lease.

        Raises
        ------
        InputError
            If the name is taken.
        """
        self.admit(shard, now=now)
        return self.grant(shard)

    def take(self, given: H, *, now: float, sent: float | None = None) -> L:
        """Take in what a shard did, and lease to it anew.

        Parameters
        ----------
        given : HandIn or GuardHandIn
            What `hand_in` of the shard returned.
        now : float
            The coordinator's clock, in seconds.
        sent : float, optional
            The shard's clock now, where it handed in before and says it again.

        Returns
        -------
        Lease or GuardLease
            The shard's next lease.

        Raises
        ------
        InputError
            If it was handed in before, or cannot be true; an AssumptionError if the clocks disagree.
        """
        self.check(given, now=now, sent=sent)
        self.receive(given)
        return self.grant(given.shard)

    def leave(self, given: H, *, now: float, sent: float | None = None) -> None:
        """Take in what a shard did last; it has no lease any more, and holds nothing back.

        Parameters
        ----------
        given, now, sent
            As in `take`.
        """
        self.check(given, now=now, sent=sent)
        self.receive(given, leaves=True)

    def check(self, given: H, *, now: float, sent: float | None = None) -> None:
        """Raise unless a hand-in can be taken in; nothing is changed.

        Parameters
        ----------
        given, now, sent
            As in `take`.

        Raises
        ------
        InputError
            If it was handed in before, or cannot be true; an AssumptionError if the clocks disagree.
        """
        self._check_values(given)
        member = self.members.check(
            given,
            finite("now", now, hint="It is the coordinator's clock."),
            given.through if sent is None else finite("sent", sent, hint="It is the shard's clock."),
        )
        self._check_claims(given, member)
        if any(number > member.rounds + len(given.rounds) for number, _ in given.rewards):
            raise InputError(f"Rewards must be of rounds that were handed in, but some of {given.shard!r} are not.")

    @abstractmethod
    def receive(self, given: H, *, leaves: bool = False) -> None:
        """Take in what a shard did, which was checked; its lease is over.

        Parameters
        ----------
        given : HandIn or GuardHandIn
            What it did.
        leaves : bool
            Whether it leaves.
        """

    def grant(self, shard: str) -> L:
        """Lease to a shard that has none.

        Parameters
        ----------
        shard : str
            Its name.

        Returns
        -------
        Lease or GuardLease
            What is left of the pot for it, and what is known as it stands.

        Raises
        ------
        InputError
            If its last lease was not handed in.
        """
        member = self.members.find(shard)
        if member.is_leased:
            raise InputError(f"Lease {member.lease} of shard {shard!r} must be handed in before it is leased to again.")
        amount = self._amount(member)
        self.granted(shard, amount)
        return self._lease(shard, member, amount)

    def granted(self, shard: str, amount: A) -> None:
        """Count a lease that was granted.

        Parameters
        ----------
        shard : str
            Whose it is.
        amount : float or tuple of float
            How much; of a guard, of each metric.
        """
        member = self.members.find(shard)
        member.lease += 1
        member.is_away, member.is_leased = False, True
        self._charge(member, amount)

    def _part(self, member: Member) -> float:
        """Its share of the pot, by its pace."""
        present = math.fsum(other.pace for other in self.members.all.values() if not other.is_away)
        return AT_MOST * member.pace / present if member.pace > 0 else 0.0

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything the coordinator knows, as plain data and arrays.

        Returns
        -------
        dict
            For `from_state`, which goes on to the bit.
        """

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """A coordinator that goes on where another one was saved.

        Parameters
        ----------
        state : mapping
            What `state` returned.

        Returns
        -------
        Coordinator or GuardCoordinator
            The coordinator.
        """

    @abstractmethod
    def _check_values(self, given: H) -> None:
        """Raise unless every value can be worked with."""

    @abstractmethod
    def _check_claims(self, given: H, member: Member) -> None:
        """Raise unless the shard kept to its lease, by what it says."""

    @abstractmethod
    def _amount(self, member: Member) -> A:
        """How much to lease to a shard now."""

    @abstractmethod
    def _charge(self, member: Member, amount: A) -> None:
        """Note what a shard may lose."""

    @abstractmethod
    def _lease(self, shard: str, member: Member, amount: A) -> L:
        """A lease that was granted."""
