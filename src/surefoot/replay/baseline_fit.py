"""What a log says of the baseline and of the world: reward, noise and bounds with intervals, and what looks doubtful.

Two passes: the first fits theta by least squares over the rows that were played, the second looks at what the fit
missed. Estimates come from one log; to declare them is a judgement, and the report says on what it rests.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surefoot._renamed import takes_old_name
from surefoot.arrays import Matrix, Vector, fraction
from surefoot.errors import AssumptionError
from surefoot.replay.batch import Batch, Log
from surefoot.replay.chi_square import chi_square_quantile
from surefoot.replay.diagnostics import SURE, Doubt, Residuals
from surefoot.replay.importance_weighting import ImportanceWeighting, weights
from surefoot.replay.intervals import Estimate, Moments, normal_reach
from surefoot.replay.log_files import TableLog
from surefoot.replay.replayed_policy import Declared

FEW = 30  # rows of an action below which its theta is guesswork
COVERED = 1e-9  # share of the largest eigenvalue below which a direction counts as never tried
GENEROUS = 2.0  # multiple of ||theta_hat|| declared where the data cannot bound theta


@takes_old_name("reward_range", "reward_bounds")
@dataclass(frozen=True, slots=True)
class Fit:
    """Estimates with intervals, doubts, and what follows for a declaration."""

    rows: int
    actions: dict[str, int]
    baseline_reward: Estimate
    noise: Estimate
    theta_norm: Estimate
    feature_bound: float
    reward_bounds: tuple[float, float]
    doubts: tuple[Doubt, ...]
    baseline_rests_on: str

    @property
    def declared(self) -> Declared:
        """What to tell a policy: noise by the rewards' range, theta's bound by the end of its interval.

        Where the data leave theta so open that the interval says nothing, twice the estimate stands in for its end.
        """
        low, high = self.reward_bounds
        if self.baseline_reward.value < 0:
            raise AssumptionError(
                f"The baseline's mean reward must not be negative, but the log says {self.baseline_reward}. "
                "Add a constant to every reward."
            )
        return Declared(
            noise=max((high - low) / 2, self.noise.high, 1e-9),
            theta_bound=self.theta_bound,
            baseline_reward=self.baseline_reward.value,
            reward_bounds=(low, high) if high > low else None,
        )

    @property
    def theta_bound(self) -> float:
        """The end of theta's interval, or a generous multiple of the estimate."""
        generous = GENEROUS * max(self.theta_norm.value, 1e-6)
        return min(self.theta_norm.high, generous) if math.isfinite(self.theta_norm.high) else generous

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "rows": self.rows,
            "actions": self.actions,
            "baseline_reward": self.baseline_reward.as_dict(),
            "baseline_rests_on": self.baseline_rests_on,
            "noise": self.noise.as_dict(),
            "theta_norm": self.theta_norm.as_dict(),
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
            "reward_bounds": list(self.reward_bounds),
            "doubts": [{"assumption": d.assumption, "is_doubtful": d.is_doubtful, "seen": d.seen} for d in self.doubts],
        }


@takes_old_name("reward_range", "reward_bounds")
def fit_baseline(log: Log, *, level: float = 0.95, reward_bounds: tuple[float, float] | None = None) -> Fit:
    """Estimate the baseline's reward, noise and bounds from a log, and test what the guarantee assumes.

    Parameters
    ----------
    log : Log
        What `read_log` returned, or an `ArrayLog`.
    level : float
        Level of the intervals.
    reward_bounds : (low, high), optional
        Range of rewards if it is known; otherwise the observed range is used, with a doubt.

    Returns
    -------
    Fit
        Estimates with intervals, doubts, and `declared`, what to tell a policy.

    Raises
    ------
    ConfigError
        If `level` does not lie between 0 and 1.

    Examples
    --------
    >>> from surefoot.replay import ArrayLog
    >>> log = ArrayLog(
    ...     features=[[[1.0, 0.0], [0.0, 1.0]]] * 40,
    ...     actions=[0, 1] * 20,
    ...     rewards=[0.2, 0.9, 0.4, 0.7] * 10,
    ...     baselines=0,
    ... )
    >>> found = fit_baseline(log, reward_bounds=(0.0, 1.0))
    >>> found.rows, found.declared.noise
    (40, 0.5)
    """
    fraction("level", level, hint="level is the share of intervals that cover.")
    first = _First(log)
    theta, inverse = first.solve()
    second = Residuals(rows=first.rows, fitted=first.span_of(theta), lows=first.lows, highs=first.highs)
    for features, _, rewards in _logged(log):
        fitted = features @ theta
        second.add(features, fitted, rewards - fitted)
    names = _names(log)
    return Fit(
        rows=first.rows,
        actions=dict(zip(log.actions, first.counts.astype(int).tolist(), strict=True)),
        baseline_reward=first.baseline(level),
        noise=_noise(second, first.rows, log.dim, level),
        theta_norm=_theta_norm(theta, inverse, second.variance, level, first.rows),
        feature_bound=log.feature_bound,
        reward_bounds=reward_bounds or (first.low, first.high),
        doubts=(*second.doubts(names), *first.doubts(log), first.range_doubt(reward_bounds)),
        baseline_rests_on=first.rests_on,
    )


class _First:
    """The first pass: sums for the fit, and the baseline's reward."""

    def __init__(self, log: Log) -> None:
        self.rows, self.low, self.high = 0, math.inf, -math.inf
        self.lows, self.highs = np.full(log.dim, np.inf), np.full(log.dim, -np.inf)
        self.counts, self._gram, self._moment = (
            np.zeros(len(log.actions)),
            np.zeros((log.dim, log.dim)),
            np.zeros(log.dim),
        )
        self._mean, self._follows, self._weight = Moments(), log.follows_log, Moments()
        # Without bounds there is no Bernstein interval, which alone would read `least`.
        self._weighted = ImportanceWeighting(bounds=None, least=1.0)
        self._has_chances = True
        for features, batch, rewards in _logged(log):
            self._add(features, batch, rewards)

    def _add(self, features: Matrix, batch: Batch, rewards: Vector) -> None:
        self.rows += rewards.size
        self.low, self.high = min(self.low, float(rewards.min())), max(self.high, float(rewards.max()))
        self.lows, self.highs = (
            np.minimum(self.lows, features.min(axis=0)),
            np.maximum(self.highs, features.max(axis=0)),
        )
        self.counts += np.bincount(batch.actions, minlength=self.counts.size)
        self._gram += features.T @ features
        self._moment += features.T @ rewards
        played = np.ones(rewards.size, dtype=bool) if self._follows else batch.actions == batch.baselines
        self._mean.add(rewards[played])
        self._has_chances &= not np.isnan(batch.propensities).any()
        if self._has_chances:
            weight = weights(batch.actions, batch.baselines, batch.propensities)
            self._weight.add(weight)
            self._weighted.add(np.stack([weight, weight]), rewards, np.stack([weight, weight]))

    def solve(self) -> tuple[Vector, Matrix]:
        """Least squares in the directions that the log covers, 0 in the others; and the inverse of the gram there."""
        values, axes = np.linalg.eigh(self._gram)
        # In a direction that was never tried, rounding alone would give a huge estimate.
        covered = values > COVERED * values[-1]
        inverse = (axes[:, covered] / values[covered]) @ axes[:, covered].T
        return inverse @ self._moment, inverse

    def span_of(self, theta: Vector) -> tuple[float, float]:
        """Where fitted values lie: rewards are between low and high, and a fit is rarely far outside."""
        width = max(self.high - self.low, 1e-12)
        return self.low - 0.1 * width, self.high + 0.1 * width

    @property
    def rests_on(self) -> str:
        """How the baseline's reward was estimated."""
        if self._follows:
            return "the mean of all logged rewards: what was logged is what the baseline played"
        if self._has_chances:
            return "self-normalised importance weighting of the rows in which the baseline's action was played"
        return (
            "the mean of the rows in which the baseline's action was played; without propensities this is the "
            "baseline's reward only if that did not depend on the context"
        )

    def baseline(self, level: float) -> Estimate:
        """The baseline's mean reward."""
        if self._follows or not self._has_chances:
            return self._mean.interval(level)
        return self._weighted.estimate("snips", "baseline", level)

    def doubts(self, log: Log) -> list[Doubt]:
        """What the first pass can already say."""
        rare = [name for name, number in zip(log.actions, self.counts, strict=True) if number < FEW]
        seen = (
            f"fewer than {FEW} rows of: {', '.join(rare[:8])}" if rare else f"the rarest has {int(self.counts.min())}"
        )
        found = [Doubt("Coverage: every action was played often enough to bound theta", bool(rare), seen)]
        low = self.baseline(0.95).low
        found.append(Doubt("The baseline earns something: its mean is above 0", not low > 0, f"at least {low:.4g}"))
        if self._has_chances and not self._follows:
            z = (self._weight.mean - 1) / max(self._weight.stderr, 1e-300) if self._weight.stderr > 0 else 0.0
            p = math.erfc(abs(z) / math.sqrt(2))  # both tails of a normal
            seen = (
                f"mean weight of the baseline's action: {self._weight.mean:.4g} (1 where they are right); p = {p:.2g}"
            )
            found.append(Doubt("Propensities are as logged", p < SURE, seen))
        return found

    def range_doubt(self, declared: tuple[float, float] | None) -> Doubt:
        """Whether the range of rewards is known, or only seen."""
        seen = f"rewards from {self.low:g} to {self.high:g}"
        if declared is not None:
            broken = not declared[0] <= self.low <= self.high <= declared[1]
            return Doubt(f"Range: rewards lie in [{declared[0]:g}, {declared[1]:g}]", broken, seen)
        is_binary = (self.low, self.high) == (0.0, 1.0)
        hint = "" if is_binary else "; declare the range that they can never leave"
        return Doubt("Range: rewards never leave the range that was seen", not is_binary, seen + hint)


def _logged(log: Log) -> Iterator[tuple[Matrix, Batch, Vector]]:
    """Features and rewards of what was played; in a full table, of the baseline."""
    for batch in log.batches():
        rows = np.arange(len(batch))
        played = batch.baselines if log.is_full else batch.actions
        rewards = batch.rewards[rows, played] if log.is_full else batch.rewards[:, 0]
        shown = Batch(batch.features, played, batch.rewards, batch.propensities, batch.baselines, batch.lines)
        yield np.ascontiguousarray(batch.features[rows, played]), shown, np.ascontiguousarray(rewards)


def _noise(second: Residuals, rows: int, dim: int, level: float) -> Estimate:
    """Standard deviation of the residuals, with the interval that their fourth moment gives."""
    # A fit of `dim` numbers makes residuals look smaller than the noise is.
    variance = second.variance * rows / max(1, rows - dim)
    spread = math.sqrt(max(0.0, second.fourth - second.variance**2) / rows)
    reach = normal_reach(level) * spread
    low, high = math.sqrt(max(0.0, variance - reach)), math.sqrt(variance + reach)
    return Estimate(math.sqrt(variance), low, high, level, "normal", rows)


def _theta_norm(theta: Vector, inverse: Matrix, variance: float, level: float, rows: int) -> Estimate:
    """||theta|| over the ellipsoid in which a normal theta_hat puts theta: the centre's length and the longest axis.

    Of the directions that the log covers; it can say nothing of the others.
    """
    length = float(np.linalg.norm(theta))
    widest = float(np.linalg.eigvalsh(inverse)[-1])
    reach = math.sqrt(variance * widest * chi_square_quantile(theta.size, 1 - level))
    return Estimate(length, max(0.0, length - reach), length + reach, level, "ellipsoid", rows)


def _names(log: Log) -> list[str]:
    """What every feature is called, where the log knows."""
    if isinstance(log, TableLog) and log.encoder.dim and log.dim == len(log.actions) * (1 + log.encoder.dim):
        entries = ["constant", *log.encoder.names]
        return [f"{entry} of action {action}" for action in log.actions for entry in entries]
    return [f"feature {i + 1}" for i in range(log.dim)]
