"""Leases: what a shard may risk by itself, the frozen set that it may rest on, and what it hands in afterwards.

A lease of l_k lets shard k play while lower(Q_k) + l_k >= 0, Q_k its question since the lease: `Reserve(l_k)` on an
empty ledger (docs/mathematics.md, "Leases").
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.errors import ConfigError, InputError
from surefoot.policies import Decision, SafeLUCB
from surefoot.safety.alarm import Alarm
from surefoot.safety.constraints import CUMULATIVE, RESERVE, Cumulative, Reserve, read_constraint
from surefoot.values import Value

LONGEST_SHARD = 200


class Lease(Value, frozen=True):
    """What a coordinator grants to one shard: an amount, and the confidence set as it stood then.

    Attributes
    ----------
    shard : str
        Whose it is.
    number : int
        How many it has had, from 1.
    amount : float
        l_k, the most that its rounds since may lie below their own floor; at least 0.
    since : float
        The shard's rounds must be decided at this moment or later.
    watermark : float
        Up to which moment the rounds of all shards had been merged.
    merged : int
        How many of the shard's own were among them.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.leases import Coordinator
    >>> told = {"noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0, "constraint": Reserve(10.0)}
    >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, **told)
    >>> lease = Coordinator(policy, skew=0.5).join("berlin", now=0.0)
    >>> lease.amount, lease.policy().settings["constraint"]
    (8.0, {'name': 'reserve', 'granted': 8.0})
    """

    shard: str
    number: int
    amount: float
    since: float
    watermark: float
    merged: int
    _state: Mapping[str, Any]

    def policy(self) -> SafeLUCB:
        """A new policy on an empty ledger that may lose the amount, and never learns.

        Returns
        -------
        SafeLUCB
            The policy.
        """
        return SafeLUCB.from_state(self._state)


class LeasedRound(Value, frozen=True):
    """One round as a shard decided it, with all that its coordinator needs to count and to learn it.

    Attributes
    ----------
    number : int
        Its number among the shard's rounds, from 1.
    moment : float
        When it was decided, in seconds; not before any earlier round of the shard.
    played, displaced : ndarray of shape (dim,)
        Features of what was played, and of what is played today.
    is_learner : bool
        Whether the learner played.
    baseline_reward : float or (low, high), optional
        What was known of the baseline's mean.

    Examples
    --------
    >>> row = np.array([0.6, 0.1])
    >>> LeasedRound(number=1, moment=1.0, played=row, displaced=row, is_learner=False).baseline_reward is None
    True
    """

    number: int
    moment: float
    played: Vector
    displaced: Vector
    is_learner: bool
    baseline_reward: float | tuple[float, float] | None = None

    def recall(self, policy: SafeLUCB) -> Decision:
        """Count it in the ledger of another policy, as it was played.

        Parameters
        ----------
        policy : SafeLUCB
            The policy.

        Returns
        -------
        Decision
            Its decision, with the number of the round there.
        """
        return policy.recall(
            np.stack([self.played, self.displaced]),
            baseline=1,
            baseline_reward=self.baseline_reward,
            action=0 if self.is_learner else 1,
            source="learner" if self.is_learner else "baseline",
        )


class HandIn(Value, frozen=True):
    """What a shard did under a lease: its rounds, its rewards, and the last certificate as a linear fact.

    Attributes
    ----------
    shard : str
        Who hands in.
    lease : int
        Under which of its leases.
    rounds : sequence of LeasedRound
        Every round since the lease began.
    rewards : sequence of (int, float or None)
        Rewards that came since, by the number of their round; None abandons it.
    question : ndarray of shape (dim,)
        Q_k, which the rounds add up to.
    level : float
        <theta, question> is at least this, by the frozen set; never less than minus the lease and `moved`.
    through : float
        The shard's clock: every round that it has decided until then is among those handed in.
    alarm : Alarm, optional
        What contradicted a declaration; then nothing is proved of the rounds since.
    is_untimed : bool
        Whether the shard's clock was wrong: the rounds count, and are not learned, for their order is not known.
    moved : float
        What rounds that were not played as decided may have cost.

    Examples
    --------
    >>> given = HandIn("berlin", 1, rounds=(), rewards=(), question=np.zeros(2), level=0.0, through=5.0)
    >>> given.alarm is None
    True
    """

    shard: str
    lease: int
    rounds: Sequence[LeasedRound]
    rewards: Sequence[tuple[int, float | None]]
    question: Vector
    level: float
    through: float
    alarm: Alarm | None = None
    is_untimed: bool = False
    moved: float = 0.0


def plain_round(made: Any) -> list[Any]:
    """A round as plain data."""
    return [getattr(made, name) for name in made.__struct_fields__]


def read_round(told: Sequence[Any]) -> LeasedRound:
    """What `plain_round` gave."""
    number, moment, played, displaced, is_learner, known = told
    return LeasedRound(
        number, moment, played, displaced, is_learner, tuple(known) if isinstance(known, list) else known
    )


def frozen(policy: SafeLUCB, amount: float) -> dict[str, Any]:
    """The state of a policy that knows what this one does, has played nothing, and may lose the amount."""
    granted = Reserve(amount) if amount > 0 else Cumulative()
    state = {key: value for key, value in policy.state().items() if not key.startswith(("pending", "waiting"))}
    nothing = {"pending_rounds": (), "pending_is_learner": (), "pending_features": ()}
    leased = SafeLUCB.from_state(
        {
            **{key: value for key, value in state.items() if not key.startswith("catalogue")},
            **nothing,
            "id": secrets.token_hex(8),
            "rounds": 0,
            "settled_by_default": 0,
            "settings": {**policy.settings, "constraint": granted.plain()},
        }
    )
    leased.core.begin_ledger()
    return leased.state()


def read_shard(name: Any) -> str:
    """A shard's name, if it is one: it is written into keys, logs and addresses."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_SHARD:
        raise InputError(f"`shard` must be 1 to {LONGEST_SHARD} printable characters, but got {name!r:.80}.")
    return name


def check_leasable(policy: Any) -> None:
    """Raise unless a policy's promise can be leased: questions must add up, and nothing may depend on one ledger."""
    if type(policy) is not SafeLUCB:
        raise ConfigError(f"Only SafeLUCB can be leased to shards, but got {type(policy).__name__}.")
    constraint = read_constraint(policy.settings["constraint"])
    if constraint.code not in (CUMULATIVE, RESERVE):
        raise ConfigError(
            f"`constraint` must be 'cumulative' or 'reserve' to be shared by shards, but got {constraint.name!r}: the "
            "others ask about rounds in one order, or one by one."
        )
    for name in ("misspecification", "holdout", "settle_after"):
        if policy.settings.get(name):
            raise ConfigError(
                f"`{name}` must be left out where shards share a floor, but got {policy.settings[name]!r}."
            )
