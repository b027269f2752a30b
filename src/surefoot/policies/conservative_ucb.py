"""ConservativeUCB: the multi-armed ancestor of CLUCB, by Wu, Shariff, Lattimore and Szepesvári (2016).

Wu's radius psi(s) = 2 ln(K s^3 / delta) adds up, over all counts s, to zeta(3) delta and not to delta. The guarantee
holds at delta only if that factor is paid, so it is paid here; K counts the one-sided bounds that safety rests on.
Where single rewards are bounded, one likelihood set over all arms takes the place of the intervals
(`core/arm_likelihood.hpp`).
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.policies.arm_policy import PLAYS, ArmPolicy
from surefoot.policies.decision import HOLD, Decision
from surefoot.policies.linear_settings import read_bounds, read_known_reward, read_number, spread_of
from surefoot.policies.policy import arguments
from surefoot.safety.arms_proof import ArmsPromise, intervals_proof, likelihood_proof
from surefoot.safety.certificate import Certificate
from surefoot.safety.facts import Box
from surefoot.safety.likelihood import Likelihood


class ConservativeUCB(ArmPolicy):
    """Conservative UCB over plain arms, one of which is today's default.  (Wu et al. 2016)

    The multi-armed ancestor of CLUCB. The default arm is the `baseline` of the first decision and must stay the same.

    Parameters
    ----------
    arms : int
        Number of arms, the default arm included.
    alpha : float
        Share of the default arm's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
    noise : float, optional
        Sub-Gaussian scale of a reward; by default 1. With `reward_bounds` nothing rests on it, and it is half their
        width.
    reward_bounds : (low, high), optional
        Bounds of every single reward; (0, 1) for clicks. The likelihood set that they allow lets the learner in far
        earlier where rewards are rare.
    baseline_reward : float, optional
        Mean reward of the default arm if it is known; otherwise it is bounded by its own data.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.
    AssumptionError
        If `baseline_reward` is negative, or lies beyond `reward_bounds`.

    Examples
    --------
    >>> policy = ConservativeUCB(arms=3, alpha=0.1, delta=0.01, baseline_reward=0.5)
    >>> decision = policy.decide(baseline=0)
    >>> decision.source, round(decision.certificate.margin, 3)
    ('baseline', -0.45)
    """

    _rule = "ConservativeUCB"

    def __init__(
        self,
        *,
        arms: int,
        alpha: float,
        delta: float,
        noise: float | None = None,
        reward_bounds: Sequence[float] | None = None,
        baseline_reward: float | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        settings = arguments(locals(), "reward_bounds")
        read_number("alpha", alpha)
        read_number("delta", delta)
        bounds = None if reward_bounds is None else read_bounds(reward_bounds)
        self._known = None if baseline_reward is None else read_known_reward(baseline_reward)
        if bounds is not None:
            settings["reward_bounds"] = bounds
            _check_bounds(bounds, self._known, settle_after, default_reward)
        if noise is None:
            settings["noise"] = 1.0 if bounds is None else spread_of(bounds)
        super().__init__(**settings)
        self._bounds, self._checks_rewards = bounds, bounds is not None
        self._default = -1

    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        self._check_rows(features)
        default = self._read_default(baseline)
        if baseline_reward is not None and baseline_reward != self._known:
            raise InputError(
                f"`baseline_reward` must be what the policy was made with, {self._known!r}, but got "
                f"{baseline_reward!r}. The default arm has one mean reward."
            )
        # The proof is about the plays before this round, which is booked in the same step.
        before: Vector = self._core.save()[PLAYS]
        round_ = self._rounds + 1
        proposal, is_learner, guaranteed, required, optimism = self._core.decide(default, round_, order)
        self._default = default
        if self._alarm is not None:
            guaranteed = -math.inf
        promise = ArmsPromise(default, 1.0 - self._config["alpha"], self._known)
        weights = promise.question(before, proposal, round_)
        if self._bounds is None:
            evidence = partial(intervals_proof, promise, weights, np.array(self._core.intervals))
        else:
            evidence = partial(likelihood_proof, promise, weights, Box(*self._bounds), self._core.split)
        certify = partial(Certificate, guaranteed, required, proposal, optimism, evidence, is_held=order == HOLD)
        arm = proposal if is_learner else default
        return self.conclude(arm, is_learner, self._one_hot(arm), certify)

    @property
    def likelihood(self) -> Likelihood | None:
        """The likelihood set of bounded rewards as it stands, for `check`; None without `reward_bounds`."""
        if self._bounds is None:
            return None
        low, high = self._bounds
        successes, failures, allowed = self._core.likelihood
        met, none = np.flatnonzero(successes + failures), np.zeros(self.arms)
        return Likelihood(
            np.eye(self.arms)[met], successes[met], failures[met], allowed, low, 1.0 / (high - low), 0.0, none,
            np.zeros((self.arms, self.arms)), 0.0, Box(low, high).reach(self.arms),
        )  # fmt: skip

    def learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        """Add a reward to its arm."""
        super().learn(features, reward, is_learner)
        self._check_declared(reward)  # the default arm's rewards, too, which are not looked at when they come

    def _read_default(self, baseline: Any) -> int:
        arm = self._read_arm(baseline)
        if self._default not in (-1, arm):
            raise InputError(
                f"`baseline` must stay the default arm {self._default}, but got {arm}. "
                "For a baseline that moves use CLUCB or CLUCB2."
            )
        return arm

    def arrays(self) -> dict[str, Any]:
        """As of every policy over arms, and the default arm."""
        return {**super().arrays(), "default": self._default}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        super().restore(arrays)
        self._default = int(arrays["default"])


def _check_bounds(
    bounds: tuple[float, float], known: float | None, settle_after: int | None, default_reward: float | None
) -> None:
    """Raise if the other declarations contradict the bounds of single rewards."""
    low, high = bounds
    if high < 0:
        raise ConfigError(
            f"`high >= 0` must hold in reward_bounds, but got {bounds!r}. The default arm's mean is never negative."
        )
    if known is not None and not low <= known <= high:
        raise AssumptionError(
            f"`baseline_reward` must lie within reward_bounds={bounds!r}, but got {known}. One of them is not true."
        )
    if settle_after is not None and not low <= (default_reward or 0.0) <= high:
        raise ConfigError(
            f"`default_reward` must lie within reward_bounds={bounds!r}, but got {default_reward}. "
            "It is learned where no reward came in time, and counts as one."
        )
