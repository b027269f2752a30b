"""ConservativeUCB: the multi-armed ancestor of CLUCB, by Wu, Shariff, Lattimore and Szepesvári (2016).

Wu's radius psi(s) = 2 ln(K s^3 / delta) adds up, over all counts s, to zeta(3) delta and not to delta. The guarantee
holds at delta only if that factor is paid, so it is paid here; K counts the one-sided bounds that safety rests on.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector, fraction
from surefoot.compiled import compiled, compiled_apart
from surefoot.errors import InputError
from surefoot.linear.ridge_layout import EPS
from surefoot.policies.arm_policy import PLAYS, SEEN, ArmPolicy, least_played_unseen, mean_of
from surefoot.policies.decision import Decision
from surefoot.policies.linear_settings import read_known_reward
from surefoot.policies.linear_step import FREE, HOLD
from surefoot.safety.certificate import Certificate
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.proof import Proof, assemble

ZETA_3 = 1.2020569031595942  # sum of 1 / s^3


@compiled
def arm_intervals(
    arms: Matrix, noise: float, delta: float, bounds: float, default: int, mean: float, out: Matrix
) -> None:
    """Row 0: lambda_i = max(0, mean_i - sqrt(psi / T_i)); row 1: theta_i = mean_i + sqrt(psi / T_i).

    psi(s) = 2 sigma^2 ln(zeta(3) K s^3 / delta). A known default arm (mean >= 0) is its own interval.
    """
    for i in range(arms.shape[1]):
        seen = arms[SEEN, i]
        if i == default and mean >= 0.0:
            out[0, i] = out[1, i] = mean
        elif seen == 0.0:
            out[0, i], out[1, i] = 0.0, math.inf
        else:
            psi = 2.0 * noise**2 * math.log(ZETA_3 * bounds * seen**3 / delta)
            average = mean_of(arms, i)
            # The cut at 0 is a declaration: no arm's mean is negative.
            out[0, i] = max(0.0, average - math.sqrt(psi / seen))
            out[1, i] = average + math.sqrt(psi / seen)


@compiled_apart
def conservative_ucb_step(
    arms: Matrix,
    settings: Vector,
    default: int,
    round_: int,
    order: int,
    intervals: Matrix,
) -> tuple[int, bool, float, float]:
    """One round: the proposal J, whether it is played, and both sides of the condition.

    sum_{i != 0} N_i lambda_i + lambda_J + N_0 mu_0 >= (1 - alpha) t mu_0, with the worst mu_0 of its interval.
    """
    alpha, delta, noise, bounds, mean = settings[0], settings[1], settings[2], settings[3], settings[4]
    arm_intervals(arms, noise, delta, bounds, default, mean, intervals)
    proposal = least_played_unseen(arms, default if mean >= 0.0 else -1)
    if proposal < 0:
        proposal = 0
        for i in range(arms.shape[1]):
            if intervals[1, i] > intervals[1, proposal]:
                proposal = i
    proposal = order if order >= 0 else proposal
    earned, size = 0.0, 0.0
    for i in range(arms.shape[1]):
        # An arm at 0 adds nothing, and one that was never seen has no mean to bound its rounding by.
        if i != default and intervals[0, i] > 0.0:
            weight = arms[PLAYS, i] + (1.0 if i == proposal else 0.0)
            earned += weight * intervals[0, i]
            size += weight * (abs(intervals[1, i]) + 2.0 * abs(mean_of(arms, i)))
    kept = arms[PLAYS, default] + (1.0 if default == proposal else 0.0)
    balance = kept - (1.0 - alpha) * round_
    # The condition is linear in mu_0, so its worst lies at one end of the interval.
    worst = intervals[0, default] if balance >= 0.0 else intervals[1, default]
    required = (1.0 - alpha) * round_ * worst
    guaranteed = earned
    # Of a default that was never seen inf is required: inf - inf must not arise.
    if worst < math.inf:
        guaranteed += kept * worst
        # A pass must not rest on the gate's own rounding.
        guaranteed -= 4.0 * (arms.shape[1] + 4.0) * EPS * (size + guaranteed + required)
    is_learner = order >= 0 or (order == FREE and guaranteed >= required)
    # Counted when decided, whenever its reward comes: the floor is about what was played.
    arms[PLAYS, proposal if is_learner else default] += 1.0
    return proposal, is_learner, guaranteed, required


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
    noise : float
        Sub-Gaussian scale of a reward; 0.5 for rewards in [0, 1].
    baseline_reward : float, optional
        Mean reward of the default arm if it is known; otherwise it is bounded by its own data.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.
    AssumptionError
        If `baseline_reward` is negative.

    Examples
    --------
    >>> policy = ConservativeUCB(arms=3, alpha=0.1, delta=0.01, baseline_reward=0.5)
    >>> decision = policy.decide(baseline=0)
    >>> decision.source, round(decision.certificate.margin, 3)
    ('baseline', -0.45)
    """

    def __init__(
        self,
        *,
        arms: int,
        alpha: float,
        delta: float,
        noise: float = 1.0,
        baseline_reward: float | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        super().__init__(
            arms=arms,
            noise=noise,
            alpha=alpha,
            delta=delta,
            baseline_reward=baseline_reward,
            settle_after=settle_after,
            default_reward=default_reward,
        )
        self._known = None if baseline_reward is None else read_known_reward(baseline_reward)
        self._settings = arm_settings(self.arms, alpha, delta, self.noise, self._known)
        self._default = -1

    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        self._check_rows(features)
        default = self._read_default(baseline)
        if baseline_reward is not None and baseline_reward != self._known:
            raise InputError(
                f"`baseline_reward` must be what the policy was made with, {self._known!r}, but got "
                f"{baseline_reward!r}. The default arm has one mean reward."
            )
        intervals = np.zeros((2, self.arms))
        # The proof is about the plays before this round, which the step books.
        before = self._state[PLAYS].copy()
        proposal, is_learner, guaranteed, required = conservative_ucb_step(
            self._state, self._settings, default, self._rounds + 1, order, intervals
        )
        self._default = default
        if self._alarm is not None:
            guaranteed = -math.inf
        evidence = partial(_arms_proof, self._settings, default, self._rounds + 1, proposal, before, intervals)
        optimism = float(intervals[1, proposal])
        certify = partial(Certificate, guaranteed, required, proposal, optimism, evidence, is_held=order == HOLD)
        arm = proposal if is_learner else default
        return self._decided(arm, bool(is_learner), self._one_hot(arm), certify)

    def _read_default(self, baseline: Any) -> int:
        arm = self._read_arm(baseline)
        if self._default not in (-1, arm):
            raise InputError(
                f"`baseline` must stay the default arm {self._default}, but got {arm}. "
                "For a baseline that moves use CLUCB or CLUCB2."
            )
        return arm

    def _arrays(self) -> dict[str, Any]:
        return {**super()._arrays(), "default": self._default}

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        super()._restore(arrays)
        self._default = int(arrays["default"])


def arm_settings(arms: int, alpha: float, delta: float, noise: float, known: float | None) -> Vector:
    """Checked settings as compiled code reads them: alpha, delta, noise, one-sided bounds, the known mean or -1."""
    # A lower bound for every other arm, and both sides of a default that is not known.
    bounds = arms - 1 if known is not None else arms + 1
    return np.array(
        [
            fraction("alpha", alpha, hint="alpha is the share of the baseline's reward you accept losing."),
            fraction("delta", delta, hint="delta is the probability that the guarantee fails."),
            noise,
            bounds,
            -1.0 if known is None else known,
        ]
    )


def _arms_proof(settings: Vector, default: int, round_: int, proposal: int, plays: Vector, intervals: Matrix) -> Proof:
    """The condition as a split over one fact per arm: its mean is at least lambda_i (or at most theta_0)."""
    weights = plays.copy()
    weights[proposal] += 1
    weights[default] -= (1 - settings[0]) * round_
    axes = np.eye(weights.size)
    parts: list[tuple[Fact, Vector]] = []
    for i, weight in enumerate(weights):
        name = f"{'reward' if i == default and settings[4] >= 0 else 'interval'} of arm {i}"
        side = 1.0 if weight >= 0 else -1.0
        level = intervals[0, i] if weight >= 0 else -intervals[1, i]
        parts.append((Linear(side * axes[i], float(level), name), weight * axes[i]))
    return assemble(weights, parts)
