"""The coordinator of a guard's shards: one bank over all rounds handed in, leased out in amounts that add up."""

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from surefoot.core.native import GuardBooks, available
from surefoot.errors import InputError
from surefoot.leases.base_coordinator import BaseCoordinator
from surefoot.leases.guard_lease import GuardHandIn, GuardLease, GuardRound, check_guard, leased_state
from surefoot.leases.merging import Member
from surefoot.policies import Guard
from surefoot.policies.guard_settings import check_coin, read_prediction, read_rewards

CUSHION = 1e-9  # kept back of every bank, for what sums round away
ROUNDING = 1e-12  # of what a lease holds: a shard subtracts its rounds from it one by one

Amounts = tuple[float, ...]


class GuardCoordinator(BaseCoordinator[Guard, GuardHandIn, GuardLease, Amounts]):
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
        # What rounds that are handed in and not charged yet will be settled by, as their lease fixed it.
        self._plans: dict[tuple[str, int], bytes] = {}

    @property
    def pot(self) -> Amounts:
        """What each bank holds beyond the rounds that wait to be merged; leases add up to this at most."""
        waiting = [_costs(plan) for plan in self._plans.values()]
        return tuple(
            available(settings, bank) - math.fsum(costs[i] for costs in waiting)
            for i, (settings, bank) in enumerate(self._banks())
        )

    @property
    def leased(self) -> Amounts:
        """The sum of all leases that have not been handed in."""
        amounts = [member.amounts for member in self.members.all.values() if member.amounts]
        return tuple(math.fsum(one[i] for one in amounts) for i in range(len(self.policy.metrics)))

    def _banks(self) -> list[tuple[Any, Any]]:
        return list(zip(self.policy.step_settings.metrics, self.policy.bank_records, strict=True))

    def state(self) -> dict[str, Any]:
        """See `BaseCoordinator.state`."""
        return {**self._merged_state(), "plans": [[*key, plan] for key, plan in self._plans.items()]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """See `BaseCoordinator.from_state`."""
        policy = Guard.from_state(state["policy"])
        found = cls(Guard(**policy.settings), skew=state["skew"])
        found._restore_merged(policy, state, lambda told: GuardRound(*told))
        for member in found.members.all.values():
            member.amounts = tuple(member.amounts)
        found._plans = {(shard, number): bytes(plan) for shard, number, plan in state["plans"]}
        return found

    def receive(self, given: GuardHandIn, *, leaves: bool = False) -> None:
        """See `BaseCoordinator.receive`: the lease is given back, and the rounds are charged at their worst."""
        member = self.members.find(given.shard)
        books = self._frozen(member)
        # Never from the bank of now: which rewards have entered it by now may depend on the coins of these rounds.
        for made in given.rounds:
            self._plans[given.shard, made.number] = self._plan(books, made)
        member.amounts = ()
        self._receive(given, leaves=leaves)

    def _check_values(self, given: GuardHandIn) -> None:
        if not isinstance(given, GuardHandIn):
            raise InputError(
                f"What is handed in must be a GuardHandIn, but got {given!r:.80}. `GuardShard.hand_in` makes one."
            )
        most = 1.0 - float(self.policy.settings["min_holdout"])
        for made in given.rounds:
            check_coin(made.share, made.draw, made.source, most=most, is_drawn=made.teaches)
            read_prediction(made.prediction, self.policy.metrics)
        for number, reward in given.rewards:
            if number < 1:
                raise InputError(f"Rewards must be of rounds from 1 on, but one of {given.shard!r} is of {number!r}.")
            if reward is not None:
                read_rewards(reward, self.policy.metrics)

    def _check_claims(self, given: GuardHandIn, member: Member) -> None:
        """Raise where a share was more than what was left of the lease."""
        left, books = list(member.amounts), self._frozen(member)
        for made in given.rounds:
            for i, cost in enumerate(_costs(self._plan(books, made))):
                if cost > left[i] + ROUNDING * (1.0 + member.amounts[i]):
                    raise InputError(
                        f"A shard must stay within its lease, but round {made.number} of {given.shard!r} has a share "
                        f"of {made.share!r}, which may cost {cost!r} where {left[i]!r} is left. Nothing was taken in."
                    )
                left[i] -= cost

    def _frozen(self, member: Member) -> GuardBooks:
        """The banks as the newest lease of a shard knew them."""
        books = GuardBooks(self.policy.step_settings)
        books.load(np.array(member.frozen))
        return books

    def _plan(self, books: GuardBooks, made: GuardRound) -> bytes:
        """What a round is settled by, from what its lease knew before its coin."""
        return books.plan(made.share, read_prediction(made.prediction, self.policy.metrics))

    def _recall(self, name: str, made: Any) -> Any:
        return made.recall(self.policy, self._plans.pop((name, made.number)))

    def _amount(self, member: Member) -> Amounts:
        free = (whole - out - CUSHION for whole, out in zip(self.pot, self.leased, strict=True))
        part = self._part(member)
        return tuple(max(0.0, min(left, part * whole)) for left, whole in zip(free, self.pot, strict=True))

    def _charge(self, member: Member, amount: Amounts) -> None:
        member.amounts, member.frozen = amount, self.policy.state()["banks"].tolist()

    def _lease(self, shard: str, member: Member, amount: Amounts) -> GuardLease:
        state = leased_state(self.policy, amount)
        return GuardLease(shard, member.lease, amount, member.through, self.watermark, member.merged, state)


def _costs(plan: bytes) -> Amounts:
    """What a round may cost at its worst, of each metric."""
    _, *settled_by = np.frombuffer(plan).tolist()  # of each metric its worst, and what is expected of both sides
    return tuple(settled_by[::5])
