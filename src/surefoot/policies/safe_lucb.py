"""SafeLUCB: the paper's guarantee proved from everything that is known, so that the learner acts far earlier."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import finite
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.policies.delta_split import REALISED_SHARE, RESTART_SHARE, WATCH_SHARE, spend_delta
from surefoot.policies.linear_policy import Known, LinearPolicy
from surefoot.policies.linear_settings import (
    length_of_theta,
    read_bounds,
    read_known_reward,
    safe_settings,
    spread_and_radius,
    suitable_ridge,
)
from surefoot.policies.policy import arguments
from surefoot.safety.alarm import Response
from surefoot.safety.constraints import Constraint, RealisedPath, read_constraint
from surefoot.safety.gates import safe_proof
from surefoot.safety.likelihood import Likelihood


class SafeLUCB(LinearPolicy):
    """Conservative linear UCB that uses every known fact; the recommended policy.

    It makes the promise of CLUCB and CLUCB2: with probability 1 - delta, at every round, at least (1 - alpha) of what
    the baseline would have earned. What it may use on top of the data must be true: `reward_range`, `reward_floor`, and
    the `baseline_reward` given to `decide`, a number or (low, high). If something declared is contradicted, the `alarm`
    is on and only the baseline is played until it is answered (`acknowledge`).

    Parameters
    ----------
    dim : int
        Number of features of an action.
    alpha : float
        Share of the baseline's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
    noise : float, optional
        Sub-Gaussian scale of a reward; by default half the width of `reward_bounds`, one of which must be given.
    theta_bound : float, optional
        B: bound on the length of theta. May be left out where `actions` prove one.
    feature_bound : float
        D: bound on the length of every feature row.
    ridge : float, optional
        Regulariser lambda; by default d (noise / theta_bound)^2, at which both parts of the radius weigh the same.
    reward_bounds : (low, high), optional
        Bounds of every single reward; (0, 1) for clicks. The likelihood set that they allow lets the learner in far
        earlier where rewards are rare.
    reward_range : (low, high), optional
        Range of the mean reward of every action, by default `reward_bounds`; (0, 1) is the paper's Assumption 2.
    actions : array_like of shape (rows, dim), optional
        Rows that can be played and span all dimensions: since their means lie in the range, theta cannot be longer than
        `surefoot.linear.bound_theta` says.
    reward_floor : float
        A mean reward that the baseline never falls below.
    radius : {"amm", "logdet", "dual", "residual", "paper", "likelihood", "best"}, optional
        Confidence set (`surefoot.linear.radius`); by default "best" with `reward_bounds`, otherwise "amm".
    gate : {"facts", "joint", "ledger"}
        "facts" searches for the best proof; the others are closed forms.
    constraint : Constraint, mapping or str
        What must never be lost (`surefoot.safety.constraints`).
    realised_share : float
        Share of delta spent on the sum of realised rewards; 0 leaves that fact out.
    optimism : {"set", "facts"}
        Propose by the confidence set alone, or by everything known.
    misspecification : float
        How far a mean reward may lie from <theta, features>.
    restart_share : float
        Share of delta kept for restarts after an alarm; 0 rules them out.
    holdout : float, optional
        Share of rounds in which a coin lets the baseline play although the learner may; 0.02 turns the watch on, which
        raises the alarm when rewards drift. Off by default.
    watch_share : float
        Share of delta for false alarms of the watch; spent only with a holdout.
    seed : int, optional
        For simulations: coins that can be repeated. Left out, they come from the system.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> policy = SafeLUCB(
    ...     dim=2, alpha=0.1, delta=0.01, noise=0.1, theta_bound=1.0, feature_bound=1.0, reward_range=(0.05, 1.0)
    ... )
    >>> decision = policy.decide(np.array([[1.0, 0.0], [0.6, 0.0]]), baseline=1)
    >>> decision.source                 # ten of something pay more than six of it, whatever it is worth
    'learner'
    >>> policy.observe(decision, 0.5)
    """

    _rule = "SafeLUCB"
    _prove = staticmethod(safe_proof)

    def __init__(
        self,
        *,
        dim: int,
        alpha: float,
        delta: float,
        noise: float | None = None,
        theta_bound: float | None = None,
        feature_bound: float,
        ridge: float | None = None,
        reward_bounds: Sequence[float] | None = None,
        reward_range: Sequence[float] | None = None,
        actions: ArrayLike | None = None,
        reward_floor: float = 0.0,
        radius: str | None = None,
        gate: Literal["facts", "joint", "ledger"] = "facts",
        constraint: Constraint | Mapping[str, Any] | str = "cumulative",
        realised_share: float = REALISED_SHARE,
        optimism: Literal["set", "facts"] = "set",
        misspecification: float = 0.0,
        restart_share: float = RESTART_SHARE,
        holdout: float | None = None,
        watch_share: float = WATCH_SHARE,
        seed: int | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        settings = arguments(locals(), "reward_bounds")
        del settings["actions"]
        chosen = read_constraint(constraint)
        bounds = None if reward_bounds is None else read_bounds(reward_bounds)
        noise, radius = spread_and_radius(noise, radius, bounds)
        means = bounds if reward_range is None else reward_range
        theta_bound = length_of_theta(dim, theta_bound, actions, means, misspecification, feature_bound)
        if ridge is None:
            ridge = suitable_ridge(dim, noise, theta_bound, feature_bound)
        settings |= {"noise": noise, "theta_bound": theta_bound, "ridge": ridge, "radius": radius}
        settings |= {"constraint": chosen.plain()} | ({} if bounds is None else {"reward_bounds": bounds})
        settings["reward_range"] = None if reward_range is None else tuple(reward_range)
        super().__init__(**settings)
        safe_settings(self._settings, settings, chosen)
        self._core.declare_bounds()
        self._spent, self._charged = 0.0, 0  # the debt of restarts, and rounds that are charged beside it
        self._bounds = bounds
        self._checks_rewards = bounds is not None or self._settings.constraint == RealisedPath.code
        if self._settings.constraint == RealisedPath.code:
            self._lowest_reward = chosen.amount
        if settle_after is not None and (default_reward or 0.0) < self._lowest_reward:
            raise ConfigError(
                f"`default_reward` must not lie below lowest_reward={self._lowest_reward:g}, but got {default_reward}. "
                "It is learned where no reward came in time, and counts as one."
            )
        self._least = float(max(self._settings.reward_floor, self._settings.range_low))
        self._most = self._settings.range_high
        self._undeclared = self._read_known(None)

    def _read_known(self, reward: Any) -> Known:
        """What is known of this round's baseline reward, from what is given and what was declared."""
        low, high = 0.0, np.inf
        if isinstance(reward, (tuple, list, np.ndarray)):
            if len(reward) != 2:
                raise InputError(f"`baseline_reward` must be a number or (low, high), but got {reward!r}.")
            low = read_known_reward(reward[0])
            high = finite("baseline_reward", reward[1], hint="It is the largest the baseline's mean reward can be.")
        elif reward is not None:
            low = high = read_known_reward(reward)
        low, high = max(low, self._least), min(high, self._most)
        if low > high:
            raise AssumptionError(
                f"The baseline's reward must lie within what was declared, {self._least:g} to {self._most:g}, "
                f"but got {reward!r}. One of them is not true."
            )
        return 0.0, low, high

    def _mean_of(self, known: Known) -> float:
        return float(self._memory.low)

    @property
    def responses(self) -> tuple[Response, ...]:
        """How the alarm may be answered; empty if none is on."""
        if self._alarm is None or self._config["restart_share"] == 0:
            return super().responses
        has_worst = self._alarm.kind != "features" and self._settings.constraint != RealisedPath.code
        return ("stay", "relearn", "renew") if has_worst else ("stay", "renew")

    def _restart(self, *, keep_promise: bool) -> None:
        counted = self._memory.rounds_before + self._ledger.learner_rounds + self._ledger.baseline_rounds
        # Before the books are cleared: the debt is made of them.
        debt, rounds = (self._spent + self._worst_of_spent(), counted) if keep_promise else (0.0, 0.0)
        self._spent, self._charged = debt, 0
        # The scores of a catalogue and the evidence of the watch are of the old set, too.
        self._core.forget()
        self._memory.debt, self._memory.rounds_before = debt, rounds
        self._catalogue = None
        if self._watch is not None:
            self._watch.forget()
        self._spend(self._restarts + 1)

    @property
    def known_rewards(self) -> tuple[float, float] | None:
        """What the baseline earned, and would have earned in learner rounds, if both are known exactly; else None."""
        memory = self._memory
        is_exact = memory.kept_low == memory.kept_high and memory.owed_low == memory.owed_high
        return (memory.kept_low, memory.owed_low) if is_exact else None

    @property
    def likelihood(self) -> Likelihood | None:
        """The likelihood set of bounded rewards as it stands, for `check`; None where it is not used."""
        known = self._core.likelihood()
        return None if known is None else Likelihood(*(*known, self._settings.theta_bound))

    @property
    def debt(self) -> float:
        """The most that rounds before a restart, and those charged since, may have cost: it must be earned back."""
        return float(self._memory.debt)

    @property
    def charged(self) -> float:
        """The part of the debt that is owed for rounds of which nobody has said that they were played."""
        return self.debt - self._spent

    def charge(self, rounds: int) -> None:
        """Count learner rounds at their worst, of which nobody has said that they were played.

        They stay in the ledger as decided, and as much is owed as the declared range of means, or B D alone, lets an
        action be better than the one that was perhaps played.

        Parameters
        ----------
        rounds : int
            How many there are now, in place of those that were charged before.
        """
        least, most = self._means()
        # Anew each time: what was added and taken back again must leave nothing behind. Rounded up, as every debt.
        self._memory.debt = self._spent + rounds * max(0.0, most - least) * (1.0 + 1e-12)
        self._charged = rounds

    @property
    def worst_of_round(self) -> float:
        """The most that one learner round can lie below its floor, by the declared range of means or by B D alone."""
        least, most = self._means()
        return float(max(0.0, (1.0 - self._settings.alpha) * most - least))

    def _worst_of_spent(self) -> float:
        """The same of all learner rounds.

        Rewards of the baseline given along the way are not relied on: they may be what was contradicted.
        """
        # Rounded up: a debt must not come out too small.
        return float(self._ledger.learner_rounds * self.worst_of_round * (1.0 + 1e-12))

    def _means(self) -> tuple[float, float]:
        """Between what any mean lies, by the declared range or by B D alone."""
        reach = float(self._settings.theta_bound * self._settings.feature_bound + self._settings.misfit)
        return max(float(self._settings.range_low), -reach), min(float(self._settings.range_high), reach)

    def _spend(self, restarts: int) -> None:
        spend_delta(self._settings, self._config, self._set_delta, restarts=restarts)
        self._core.declare_bounds()

    def arrays(self) -> dict[str, Any]:
        """As of every linear policy, and what is charged beside the debt."""
        return super().arrays() | ({"charged": [self._charged, self._spent]} if self._charged else {})

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        super().restore(arrays)
        charged, spent = arrays.get("charged", (0, self._memory.debt))
        self._charged, self._spent = int(charged), float(spent)
        # `__init__` spent delta as if there had been no restart.
        self._spend(self._restarts)
