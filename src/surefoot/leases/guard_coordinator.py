"""The coordinator of a guard's shards: one bank over all rounds handed in, leased out in amounts that add up."""

import math
from typing import Any

from surefoot.arrays import finite
from surefoot.core.native_guard import allowed, available
from surefoot.errors import InputError
from surefoot.leases.guard_lease import GuardHandIn, GuardLease, check_guard, leased_state
from surefoot.leases.merged_policy import MergedPolicy
from surefoot.policies import Guard
from surefoot.policies.guard_settings import read_rewards

AT_MOST = 0.8  # of the bank, in equal shares by pace; the rest is for whoever joins
CUSHION = 1e-9  # kept back of every bank, for what sums round away
ROUNDING = 1e-9  # of a share

Amounts = tuple[float, ...]


class GuardCoordinator(MergedPolicy[Guard, GuardHandIn]):
    """Shares the bank of one guard among shards that decide by themselves.

    A shard may spend its lease, each round at its worst; a share that costs nothing at its worst is free everywhere.
    Rounds that are handed in are charged to the bank and, in the order of decisions over all shards, earn what their
    rewards prove.

    Parameters
    ----------
    guard : Guard
        A new one, with the promise "mean" and without a seed, windows or units.
    skew : float
        Seconds by which the clocks of two shards may differ, as of `Coordinator`.

    Raises
    ------
    ConfigError
        If the guard's promise cannot be shared.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.leases import GuardShard
    >>> coordinator = GuardCoordinator(surefoot.Guard(alpha=0.1, delta=0.05, reserve=10.0), skew=0.5)
    >>> berlin = GuardShard(coordinator.join("berlin", now=0.0))
    >>> [round(amount, 6) for amount in berlin.lease.amounts]
    [8.0]
    >>> decision = berlin.decide(baseline="old", proposal="new", moment=1.0)
    >>> berlin.observe(1, 0.7)
    >>> berlin.renew(coordinator.take(berlin.hand_in(2.0), now=2.0))
    >>> coordinator.policy.rounds
    1
    """

    def __init__(self, guard: Guard, *, skew: float) -> None:
        check_guard(guard)
        if guard.rounds:
            raise InputError(f"`guard` must be new, but this one has decided {guard.rounds} rounds.")
        super().__init__(guard, skew=skew)
        self._leases: dict[str, Amounts] = {}  # what is not handed in
        self._costs: dict[tuple[str, int], Amounts] = {}  # of rounds beyond the watermark, not charged yet

    @property
    def pot(self) -> Amounts:
        """What each bank holds beyond the rounds that wait to be merged; leases add up to this at most."""
        return tuple(
            available(settings, bank) - math.fsum(costs[i] for costs in self._costs.values())
            for i, (settings, bank) in enumerate(self._banks())
        )

    @property
    def leased(self) -> Amounts:
        """The sum of all leases that have not been handed in."""
        return tuple(math.fsum(one[i] for one in self._leases.values()) for i in range(len(self.policy.metrics)))

    def _banks(self) -> list[tuple[Any, Any]]:
        return list(zip(self.policy.step_settings.metrics, self.policy.bank_records, strict=True))

    def join(self, shard: str, *, now: float) -> GuardLease:
        """Let a shard in, with a first lease.

        Parameters
        ----------
        shard : str
            A name that no shard has had.
        now : float
            The coordinator's clock, in seconds.

        Returns
        -------
        GuardLease
            Its first lease.

        Raises
        ------
        InputError
            If the name is taken.
        """
        self.admit(shard, now=now)
        return self._grant(shard)

    def take(self, given: GuardHandIn, *, now: float, sent: float | None = None) -> GuardLease:
        """Take in what a shard did, and lease to it anew.

        Parameters
        ----------
        given : GuardHandIn
            What `GuardShard.hand_in` returned.
        now : float
            The coordinator's clock, in seconds.
        sent : float, optional
            The shard's clock now, where it handed in before and says it again.

        Returns
        -------
        GuardLease
            The shard's next lease.

        Raises
        ------
        InputError
            If it was handed in before, or spends more than the lease; an AssumptionError if the clocks disagree.
        """
        self._take_in(given, now, sent, leaves=False)
        return self._grant(given.shard)

    def leave(self, given: GuardHandIn, *, now: float, sent: float | None = None) -> None:
        """Take in what a shard did last; it has no lease any more, and holds nothing back.

        Parameters
        ----------
        given, now, sent
            As in `take`.
        """
        self._take_in(given, now, sent, leaves=True)

    def _take_in(self, given: GuardHandIn, now: float, sent: float | None, *, leaves: bool) -> None:
        if not isinstance(given, GuardHandIn):
            raise InputError(
                f"What is handed in must be a GuardHandIn, but got {given!r:.80}. `GuardShard.hand_in` makes one."
            )
        clock = given.through if sent is None else finite("sent", sent, hint="It is the shard's clock.")
        member = self.members.check(given, finite("now", now, hint="It is the coordinator's clock."), clock)
        costs = self._check_spent(given)
        if any(number > member.rounds + len(given.rounds) for number, _ in given.rewards):
            raise InputError(f"Rewards must be of rounds that were handed in, but some of {given.shard!r} are not.")
        for _, reward in given.rewards:
            if reward is not None:
                read_rewards(reward, self.policy.metrics)
        self._costs |= {
            (given.shard, made.number): cost
            for made, cost in zip(given.rounds, costs, strict=True)
            if made.moment >= self.watermark
        }
        self._leases.pop(given.shard, None)
        self._receive(given, leaves=leaves)

    def _check_spent(self, given: GuardHandIn) -> list[Amounts]:
        """What each round costs at its worst; raises where a share was more than what was left of the lease."""
        told = GuardLease(given.shard, 0, self._leases[given.shard], 0.0, self._state(self._leases[given.shard]))
        spent, found = told.guard(), list[Amounts]()
        promises = spent.step_settings.metrics
        for made in given.rounds:
            before = spent.bank_records
            if made.share > min(map(allowed, promises, before)) + ROUNDING:
                raise InputError(
                    f"A shard must stay within its lease, but round {made.number} of {given.shard!r} has a share of "
                    f"{made.share!r}, which costs more than is left. Nothing was taken in."
                )
            made.recall(spent)
            charged = zip(before, spent.bank_records, strict=True)
            found.append(tuple(old.carried - new.carried for old, new in charged))
        return found

    def _count(self, name: str, made: Any) -> None:
        self._costs.pop((name, made.number), None)
        super()._count(name, made)

    def _state(self, amounts: Amounts) -> dict[str, Any]:
        return leased_state(self.policy, amounts)

    def _grant(self, shard: str) -> GuardLease:
        member = self.members.find(shard)
        present = [other.pace for other in self.members.all.values() if not other.is_away]
        share = AT_MOST * member.pace / math.fsum(present) if member.pace > 0 else 0.0
        free = (whole - out - CUSHION for whole, out in zip(self.pot, self.leased, strict=True))
        amounts = tuple(max(0.0, min(left, share * whole)) for left, whole in zip(free, self.pot, strict=True))
        member.lease += 1
        member.is_away, member.is_leased = False, True
        self._leases[shard] = amounts
        return GuardLease(shard, member.lease, amounts, member.through, self._state(amounts))
