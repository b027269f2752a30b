"""What a log says of the baseline and of the world: reward, noise and bounds with intervals, and what looks doubtful.

Three passes: the first sums up the rows that were played, or in a table of labels or ratings all of them, the others
look at what a linear fit missed. Estimates come from one log; to declare them is a judgement, and the report says on
what it rests.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, fraction
from surefoot.errors import AssumptionError, EvidenceError
from surefoot.replay.batch import Batch, Log
from surefoot.replay.covariate_balance import CovariateBalance
from surefoot.replay.diagnostics import LINEARITY, SURE, Doubt, Residuals, linearity, theta_length
from surefoot.replay.importance_weighting import ImportanceWeighting, weights
from surefoot.replay.intervals import Estimate, Moments, normal_reach
from surefoot.replay.linearity import LinearityTest, is_set_aside
from surefoot.replay.memory_need import FIT, check_memory
from surefoot.replay.replayed_policy import Declared
from surefoot.replay.theta_bound import RidgeSums, ThetaLength

FEW = 30  # rows of an action below which its theta is guesswork


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
        """What to tell a policy: noise by the rewards' range, theta's bound by the end of its interval."""
        low, high = self.reward_bounds
        if self.baseline_reward.value < 0:
            raise AssumptionError(
                f"The baseline's mean reward must not be negative, but the log says {self.baseline_reward}. "
                "Add a constant to every reward."
            )
        return Declared(
            # In a range, noise is sub-Gaussian with half of it.  (Hoeffding)
            noise=(high - low) / 2 if high > low else max(self.noise.high, 1e-9),
            theta_bound=self.theta_bound,
            baseline_reward=self.baseline_reward.value,
            reward_bounds=(low, high) if high > low else None,
        )

    @property
    def theta_bound(self) -> float:
        """The end of theta's interval."""
        return max(self.theta_norm.high, 1e-6)

    @property
    def is_linearity_doubtful(self) -> bool:
        """Whether the log speaks against the linear model, on which every promise of a linear policy rests."""
        return any(doubt.is_doubtful for doubt in self.doubts if doubt.assumption == LINEARITY)

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
            "doubts": [doubt.as_dict() for doubt in self.doubts],
        }


def fit_baseline(
    log: Log, *, level: float = 0.95, reward_bounds: tuple[float, float] | None = None, uniform: bool = False
) -> Fit:
    """Estimate the baseline's reward, noise and bounds from a log, and test what the guarantee assumes.

    Parameters
    ----------
    log : Log
        What `read_log` returned, or an `ArrayLog`.
    level : float
        Level of the intervals.
    reward_bounds : (low, high), optional
        Range of rewards if it is known; otherwise the observed range is used, with a doubt.
    uniform : bool
        Whether every action had the same probability, for logs without propensities.

    Returns
    -------
    Fit
        Estimates with intervals, doubts, and `declared`, what to tell a policy.

    Raises
    ------
    ConfigError
        If `level` does not lie between 0 and 1, or the matrices of so many dimensions do not fit into memory.
    EvidenceError
        If every reward is 0 and no bounds are given.

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
    check_memory(log, FIT)
    first = _First(log, uniform=uniform)
    low, high = reward_bounds or (first.low, first.high)
    if low == high == 0:
        raise EvidenceError(
            f"The log `{log.name}` must have a reward other than 0 for a fit, but all {first.rows:,} are 0. Is it the "
            "right column (`--reward`)? If rewards are that rare, say between which bounds (`--reward-bounds 0,1`)."
        )
    test = LinearityTest(first.learned, first.aside, lows=first.lows, highs=first.highs)
    residuals, balance = _look_at_residuals(log, first, test, uniform=uniform)
    for rows in _logged(log):
        aside = rows.pairs_of(is_set_aside(rows.numbers))
        test.judge(rows.features[aside], rows.rewards[aside], together=rows.together)
    is_bounded = reward_bounds is not None or first.is_binary
    theta = first.theta_length((low, high), is_linear=test.p_value >= SURE)
    return Fit(
        rows=first.rows,
        actions=dict(zip(log.actions, first.counts.astype(int).tolist(), strict=True)),
        baseline_reward=first.baseline(level, (low, high)),
        noise=_noise(residuals, first.rows, log.dim, level),
        theta_norm=theta.norm,
        feature_bound=log.feature_bound,
        reward_bounds=(low, high),
        doubts=(
            residuals.drift(),
            linearity(test),
            residuals.independence(),
            residuals.tails(is_bounded=is_bounded),
            *first.doubts(log, balance),
            theta_length(theta, log.weight_names),
            first.range_doubt(reward_bounds),
        ),
        baseline_rests_on=first.rests_on,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Features and rewards of what was played; of every action, `together` for a row, in a table that has them all."""

    batch: Batch
    numbers: NDArray[np.int64]
    features: Matrix
    rewards: Vector
    together: int
    played: NDArray[np.int64]

    def pairs_of(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which entries of features and rewards belong to some of the rows."""
        return np.repeat(rows, self.together)

    def one_each(self, values: Vector, actions: NDArray[np.int64]) -> Vector:
        """One value a row: the played action's, or that of the given one where all are there."""
        shaped = values.reshape(-1, self.together)
        found: Vector = shaped[np.arange(len(shaped)), actions % self.together]
        return found


def _logged(log: Log, *, uniform: bool = False) -> Iterator[_Rows]:
    start = 0
    for read in log.batches():
        batch = replace(read, propensities=read.even_chances(len(log.actions))) if uniform else read
        at, numbers = np.arange(len(batch)), np.arange(start, start + len(batch))
        start += len(batch)
        if log.is_full:
            rows = batch.features.reshape(-1, batch.features.shape[2]), batch.rewards.reshape(-1)
            yield _Rows(batch, numbers, *rows, batch.rewards.shape[1], batch.baselines)
        else:
            rows = np.ascontiguousarray(batch.features[at, batch.actions]), np.ascontiguousarray(batch.rewards[:, 0])
            yield _Rows(batch, numbers, *rows, 1, batch.actions)


def _look_at_residuals(
    log: Log, first: "_First", test: LinearityTest, *, uniform: bool
) -> tuple[Residuals, CovariateBalance | None]:
    """The second pass: residuals of least squares, propensities, and where the test of linearity learns."""
    theta, residuals = first.sums.least_squares()[0], Residuals(first.rows)
    balance = CovariateBalance(log.actions, log.context_names, first.least) if first.has_chances else None
    for rows in _logged(log, uniform=uniform):
        # Of a table with every action's reward one after the other, so that none is chosen by its context.
        residuals.add(rows.one_each(rows.rewards - rows.features @ theta, rows.numbers))
        kept = rows.pairs_of(~is_set_aside(rows.numbers))
        test.learn(rows.features[kept], rows.rewards[kept])
        if balance is not None:
            batch = rows.batch
            balance.add(log.contexts(batch), batch.actions, batch.propensities, batch.offered)
    return residuals, balance


class _First:
    """The first pass: sums for the fit, and the baseline's reward."""

    def __init__(self, log: Log, *, uniform: bool) -> None:
        self.rows, self.low, self.high = 0, math.inf, -math.inf
        self.lows, self.highs = np.full(log.dim, np.inf), np.full(log.dim, -np.inf)
        self.learned, self.aside, self.baselines = (RidgeSums(log.dim) for _ in range(3))
        self.counts, self.least = np.zeros(len(log.actions)), 1.0
        self._mean, self._follows = Moments(), log.follows_log
        self._weighted = ImportanceWeighting(bounds=None)
        self.has_chances = not log.is_full
        for rows in _logged(log, uniform=uniform):
            self._add(rows)
        self.sums = self.learned.plus(self.aside)

    def _add(self, rows: _Rows) -> None:
        batch, rewards = rows.batch, rows.rewards
        self.rows += len(batch)
        self.low, self.high = min(self.low, float(rewards.min())), max(self.high, float(rewards.max()))
        self.lows = np.minimum(self.lows, rows.features.min(axis=0))
        self.highs = np.maximum(self.highs, rows.features.max(axis=0))
        self.counts += np.bincount(rows.played, minlength=self.counts.size)
        aside = rows.pairs_of(is_set_aside(rows.numbers))
        for sums, part in ((self.learned, ~aside), (self.aside, aside)):
            sums.add(rows.features[part], rewards[part])
        self.learned.offer(batch.features.reshape(-1, batch.features.shape[2]))
        paid, own = rows.one_each(rewards, rows.played), np.flatnonzero(rows.played == batch.baselines)
        self._mean.add(paid[own])
        self.baselines.add(batch.features[own, rows.played[own]], paid[own])
        self.has_chances &= not np.isnan(batch.propensities).any()
        if self.has_chances:
            self.least = min(self.least, float(batch.propensities.min()))
            weight = weights(batch.actions, batch.baselines, batch.propensities)
            self._weighted.add(np.stack([weight, weight]), paid, np.stack([weight, weight]))

    def theta_length(self, bounds: tuple[float, float], *, is_linear: bool) -> ThetaLength:
        """||theta||, from all rows; where no theta fits them all, the baseline's rows may ask for a longer one."""
        found = self.sums.theta_length(bounds)
        if is_linear or not self.baselines.rows:
            return found
        own = self.baselines.theta_length(bounds).norm.value
        return replace(found, norm=replace(found.norm, high=max(found.norm.high, own)))

    @property
    def is_binary(self) -> bool:
        """Whether rewards look like clicks."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def rests_on(self) -> str:
        """How the baseline's reward was estimated."""
        if self._follows:
            return "the mean of all logged rewards: what was logged is what the baseline played"
        if self.has_chances:
            return "self-normalised importance weighting of the rows in which the baseline's action was played"
        return (
            "the mean of the rows in which the baseline's action was played; without propensities this is the "
            "baseline's reward only if that did not depend on the context"
        )

    def baseline(self, level: float, bounds: tuple[float, float] | None = None) -> Estimate:
        """The baseline's mean reward."""
        if self._follows or not self.has_chances:
            return self._mean.interval(level, bounds)
        return self._weighted.estimate("snips", "baseline", level)

    def doubts(self, log: Log, balance: CovariateBalance | None) -> list[Doubt]:
        """Coverage, the baseline's reward, and propensities."""
        rare = [name for name, number in zip(log.actions, self.counts, strict=True) if number < FEW]
        seen = (
            f"fewer than {FEW} rows of: {', '.join(rare[:8])}" if rare else f"the rarest has {int(self.counts.min())}"
        )
        found = [Doubt("Coverage: every action was played often enough to bound theta", bool(rare), seen)]
        low = self.baseline(0.95).low
        found.append(Doubt("The baseline earns something: its mean is above 0", not low > 0, f"at least {low:.4g}"))
        return found if balance is None else [*found, balance.doubt]

    def range_doubt(self, declared: tuple[float, float] | None) -> Doubt:
        """Whether the range of rewards is known, or only seen."""
        seen = f"rewards from {self.low:g} to {self.high:g}"
        if declared is not None:
            broken = not declared[0] <= self.low <= self.high <= declared[1]
            return Doubt(f"Range: rewards lie in [{declared[0]:g}, {declared[1]:g}]", broken, seen)
        hint = "" if self.is_binary else "; declare the range that they can never leave"
        return Doubt("Range: rewards never leave the range that was seen", not self.is_binary, seen + hint)


def _noise(second: Residuals, rows: int, dim: int, level: float) -> Estimate:
    """Standard deviation of the residuals, with the interval that their fourth moment gives."""
    # A fit of `dim` numbers makes residuals look smaller than the noise is.
    variance = second.variance * rows / max(1, rows - dim)
    spread = math.sqrt(max(0.0, second.fourth - second.variance**2) / rows)
    reach = normal_reach(level) * spread
    low, high = math.sqrt(max(0.0, variance - reach)), math.sqrt(variance + reach)
    return Estimate(math.sqrt(variance), low, high, level, "normal", rows)
