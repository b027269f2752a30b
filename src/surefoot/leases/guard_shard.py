"""A guard's shard in one process: its coins, its clock, and what it has to hand in."""

from collections.abc import Mapping
from typing import Any, Self

from surefoot.leases.base_shard import BaseShard
from surefoot.leases.guard_lease import GuardHandIn, GuardLease, GuardRound
from surefoot.leases.leased_guard import LeasedGuard
from surefoot.policies.guard_decision import GuardDecision
from surefoot.policies.guard_settings import is_same


class GuardShard(BaseShard[LeasedGuard, GuardLease, GuardRound]):
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
        super().__init__(lease, LeasedGuard(**{**lease.guard().settings, "seed": seed}))

    def state(self) -> dict[str, Any]:
        """Everything the shard knows but the secret of its coins, as plain data and arrays.

        Returns
        -------
        dict
            For `from_state`, which goes on to the bit.
        """
        return {
            "lease": [getattr(self._lease, name) for name in GuardLease.__struct_fields__],
            "policy": self._policy.state(),
            "moment": self._moment,
            "since": [[getattr(made, name) for name in GuardRound.__struct_fields__] for made in self._since],
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
        GuardShard
            The shard.
        """
        shard = cls.__new__(cls)
        name, number, amounts, *rest = state["lease"]
        shard._lease, shard._moment = GuardLease(name, number, tuple(amounts), *rest), float(state["moment"])
        shard._policy = LeasedGuard.from_state(state["policy"])
        shard._since = [GuardRound(*made) for made in state["since"]]
        return shard

    @property
    def share(self) -> float:
        """The probability with which the next proposal would be played."""
        return self._policy.share

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
        made = self._policy.decide(baseline=baseline, proposal=proposal, prediction=prediction, hold=hold)
        teaches, is_learner = not is_same(baseline, proposal), made.source == "learner"
        self._decided(GuardRound(made.round, moment, made.share, made.draw, is_learner, teaches, prediction), moment)
        return made

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
        self._check_end(moment)
        settled = tuple(self._policy.take_settled())
        given = GuardHandIn(self._lease.shard, self._lease.number, tuple(self._since), settled, moment)
        self._ended(moment)
        return given
