"""LeasedGuard: a guard under a lease of the bank, which is charged by its rounds and never earns."""

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.leases.guard_lease import GuardLease, GuardRound
from surefoot.policies import Guard
from surefoot.policies.base_policy import Round
from surefoot.policies.coin import coin_of
from surefoot.policies.decision import round_of
from surefoot.policies.guard import SHARE
from surefoot.policies.guard_decision import GuardDecision


class LeasedGuard(Guard):
    """The guard of one shard: its shares cost no more than its lease, and without a lease the baseline plays.

    Rewards are handed in, and earn only where all shards' are merged: a bound of its own would be another event.

    Parameters
    ----------
    settings : dict
        As of `Guard`.

    Examples
    --------
    >>> LeasedGuard(alpha=0.1, delta=0.05).decide(baseline="old", proposal="new").share  # there is no lease yet
    0.0
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._is_leased = False
        self._settled: list[tuple[int, Any]] = []  # since the last hand-in
        self.coins: bytes | None = None  # the secret that coins follow from; without one they are the system's

    @property
    def is_leased(self) -> bool:
        """Whether the proposal may play: false until the first lease, and from a hand-in to the next."""
        return self._is_leased

    @property
    def share(self) -> float:
        """The probability with which the next proposal would be played."""
        return super().share if self._is_leased else 0.0

    def renew(self, lease: GuardLease, since: Sequence[GuardRound] = ()) -> None:
        """Go on under a lease.

        Parameters
        ----------
        lease : GuardLease
            The lease.
        since : sequence of GuardRound
            Rounds of the baseline since the last hand-in, which cost nothing.
        """
        # New books: decisions made before keep the banks that they rest on.
        self._books, self._is_leased = lease.guard()._books, True

    def take_settled(self) -> list[tuple[int, Any]]:
        """Rewards since this was asked last, by the number of their round; None where it was abandoned."""
        taken, self._settled = self._settled, []
        return taken

    def end_lease(self) -> None:
        """Play only the baseline, until the lease is renewed; what is left of it is given back."""
        self._is_leased = False

    def decide(
        self,
        *,
        baseline: Any,
        proposal: Any,
        unit: str | None = None,
        prediction: float | Mapping[str, float] | None = None,
        hold: bool = False,
    ) -> GuardDecision:
        """Draw the coin, as `Guard.decide`; without a lease the baseline plays.

        Parameters
        ----------
        baseline, proposal, unit, prediction, hold
            As in `Guard.decide`.

        Returns
        -------
        GuardDecision
            The action, its propensity and the certificate.
        """
        is_held = hold or not self._is_leased
        return super().decide(baseline=baseline, proposal=proposal, unit=unit, prediction=prediction, hold=is_held)

    def observe(self, decision: Round, reward: Any) -> None:
        """Take the reward of a decision, as `Guard.observe`; it is handed in.

        Parameters
        ----------
        decision : GuardDecision or int
            The decision or the number of its round.
        reward : float or mapping
            The reward.
        """
        super().observe(decision, reward)
        self._settled.append((round_of(decision, self._id), reward))

    def abandon(self, decision: Round) -> None:
        """Settle a decision without its reward, as `Guard.abandon`; that is handed in, too.

        Parameters
        ----------
        decision : GuardDecision or int
            The decision or the number of its round.
        """
        super().abandon(decision)
        self._settled.append((round_of(decision, self._id), None))

    def _draw(self, round_: int) -> float:
        return super()._draw(round_) if self.coins is None else coin_of(self.coins, round_)

    def _play(self, *args: Any) -> GuardDecision:
        made = super()._play(*args)
        # What else a round is booked by is of no use here, and would differ where the bank of an old lease is gone.
        rest = bytes(8 * (self._feature_size() - 1))
        self._settlement.played(made.round, SHARE.pack(made.share) + rest, made.source == "learner")
        return made

    def _learn_record(self, record: bytes, reward: Any, is_learner: bool) -> None:
        """Count it: it enters where the shards meet."""
        self._count_booked(record, reward, is_learner)

    def _arrays(self) -> dict[str, Any]:
        return {**super()._arrays(), "is_leased": self._is_leased, "settled": [list(one) for one in self._settled]}

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        super()._restore(arrays)
        self._is_leased = bool(arrays["is_leased"])
        self._settled = [(int(number), reward) for number, reward in arrays["settled"]]
