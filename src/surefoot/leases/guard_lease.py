"""Leases of a guard's bank: what a shard's proposals may cost at worst, and what it hands in afterwards.

The bank is money, so shares of it simply add up. A shard pays for each round at its worst, which needs no data, and the
coordinator earns back what the rewards prove (docs/mathematics.md, "Leases of the bank").
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.core.native import Bank
from surefoot.errors import ConfigError
from surefoot.policies import Guard
from surefoot.policies.decision import Source
from surefoot.policies.guard_decision import GuardDecision
from surefoot.values import Value


class GuardLease(Value, frozen=True):
    """What a coordinator grants to one shard: amounts of the bank, and what is known of both sides.

    Attributes
    ----------
    shard : str
        Whose it is.
    number : int
        How many it has had, from 1.
    amounts : tuple of float
        What its rounds may cost at worst, for each metric in units of the highest reward.
    since : float
        The shard's rounds must be decided at this moment or later.
    watermark : float
        Up to which moment the rounds of all shards had been merged.
    merged : int
        How many of the shard's own were among them.

    Examples
    --------
    >>> GuardLease("berlin", 1, (2.0,), 0.0, 0.0, 0, {}).amounts
    (2.0,)
    """

    shard: str
    number: int
    amounts: tuple[float, ...]
    since: float
    watermark: float
    merged: int
    _state: Mapping[str, Any]

    def guard(self) -> Guard:
        """A new guard whose bank holds the amounts.

        Returns
        -------
        Guard
            The guard.
        """
        return Guard.from_state({**self._state, "id": secrets.token_hex(8)})


class GuardRound(Value, frozen=True):
    """One round as a shard decided it.

    Attributes
    ----------
    number : int
        Its number among the shard's rounds, from 1.
    moment : float
        When it was decided, in seconds.
    share, draw : float
        The share of the proposal, and the coin; NaN where none was drawn.
    is_learner : bool
        Whether the proposal played.
    teaches : bool
        Whether proposal and baseline differed.
    prediction : float or mapping, optional
        What was predicted of the baseline.

    Examples
    --------
    >>> GuardRound(number=1, moment=0.5, share=0.1, draw=0.7, is_learner=False, teaches=True).prediction is None
    True
    """

    number: int
    moment: float
    share: float
    draw: float
    is_learner: bool
    teaches: bool
    prediction: Any = None

    @property
    def source(self) -> Source:
        """Who played."""
        return "learner" if self.is_learner else "baseline"

    def recall(self, policy: Guard, plan: bytes) -> GuardDecision:
        """Charge it to the bank of another guard, as it was played.

        Parameters
        ----------
        policy : Guard
            The guard.
        plan : bytes
            What its bets are settled by, as the bank of its lease fixed it.

        Returns
        -------
        GuardDecision
            Its decision, with the number of the round there.
        """
        return policy.recall(
            baseline=0,
            proposal=int(self.teaches),
            share=self.share,
            draw=self.draw,
            source=self.source,
            prediction=self.prediction,
            plan=plan,
        )


class GuardHandIn(Value, frozen=True):
    """What a shard did under a lease of the bank.

    Attributes
    ----------
    shard : str
        Who hands in.
    lease : int
        Under which of its leases.
    rounds : sequence of GuardRound
        Every round since the lease began.
    rewards : sequence of (int, reward or None)
        Rewards that came since, by the number of their round; None abandons it.
    through : float
        The shard's clock: every round that it has decided until then is among those handed in.
    is_untimed : bool
        Whether the shard's clock was wrong: the rounds are charged, and count at their worst.

    Examples
    --------
    >>> GuardHandIn("berlin", 1, rounds=(), rewards=(), through=5.0).is_untimed
    False
    """

    shard: str
    lease: int
    rounds: Sequence[GuardRound]
    rewards: Sequence[tuple[int, Any]]
    through: float
    is_untimed: bool = False


def leased_state(guard: Guard, amounts: Sequence[float]) -> dict[str, Any]:
    """The state of a guard that knows what this one does, has nothing open, and may spend the amounts alone.

    All that the bank holds beyond the lease counts as owed: no bound of the coordinator's pays for a round here.
    """
    known, banks = guard.state(), list[Vector]()
    for row, settings, amount in zip(known["banks"], guard.step_settings.metrics, amounts, strict=True):
        bank = Bank()
        bank.load(row)
        bank.carried, bank.owed = amount, max(0.0, bank.bound + settings.reserve - amount)
        banks.append(bank.save())
    fresh = Guard(**guard.settings).state()
    return {**fresh, "alarm": known["alarm"], "lifts": known["lifts"], "banks": np.stack(banks)}


def check_guard(guard: Any) -> None:
    """Raise unless a guard's bank can be leased."""
    if type(guard) is not Guard:
        raise ConfigError(f"Only a Guard's bank can be leased, but got {type(guard).__name__}.")
    if guard.settings["promise"] != "mean":
        raise ConfigError(
            f"`promise` must be 'mean' where shards share a bank, but got {guard.settings['promise']!r}: the luck of "
            "the coins is bounded over all rounds together."
        )
    for name in ("seed", "settle_after", "unit_window"):
        if guard.settings.get(name) is not None:
            raise ConfigError(f"`{name}` must be left out where shards share a bank, but got {guard.settings[name]!r}.")
