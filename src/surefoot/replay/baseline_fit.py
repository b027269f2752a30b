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
from surefoot.errors import AssumptionError, EvidenceError, InputError
from surefoot.experiment.configuration import UNGUARDED, Configuration, not_linear
from surefoot.experiment.configuration import read_configuration as read_configuration
from surefoot.replay.doubts import (
    LINEARITY,
    SURE,
    CovariateBalance,
    Doubt,
    LinearityTest,
    Residuals,
    is_set_aside,
    linearity,
    theta_length,
)
from surefoot.replay.estimates import Estimate, ImportanceWeighting, Moments, normal_reach, weights
from surefoot.replay.evaluation import FIT, check_memory
from surefoot.replay.log import Batch, Log
from surefoot.replay.propensities import with_estimates
from surefoot.replay.replayed_policy import Declared
from surefoot.replay.table_log import TableLog
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
    doubts = (
        residuals.drift(),
        linearity(test),
        residuals.independence(),
        residuals.tails(is_bounded=is_bounded),
        *first.doubts(log, balance),
        theta_length(theta, log.weight_names),
        first.range_doubt(reward_bounds),
    )
    return Fit(
        rows=first.rows,
        actions=dict(zip(log.actions, first.counts.astype(int).tolist(), strict=True)),
        baseline_reward=first.baseline(level, (low, high)),
        noise=_noise(residuals, first.rows, log.dim, level),
        theta_norm=theta.norm,
        feature_bound=log.feature_bound,
        reward_bounds=(low, high),
        doubts=with_estimates(doubts, log),
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
        chosen: Vector = shaped[np.arange(len(shaped)), actions % self.together]
        return chosen


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
        length = self.sums.theta_length(bounds)
        if is_linear or not self.baselines.rows:
            return length
        own = self.baselines.theta_length(bounds).norm.value
        return replace(length, norm=replace(length.norm, high=max(length.norm.high, own)))

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
        doubts = [Doubt("Coverage: every action was played often enough to bound theta", bool(rare), seen)]
        low = self.baseline(0.95).low
        doubts.append(Doubt("The baseline earns something: its mean is above 0", not low > 0, f"at least {low:.4g}"))
        return doubts if balance is None else [*doubts, balance.doubt]

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


def configuration_of(
    fit: Fit,
    log: TableLog,
    *,
    policy: str,
    alpha: float,
    delta: float,
    ridge: float | None = None,
    radius: str | None = None,
    reward_bounds: tuple[float, float] | None = None,
    reward_window: float | None = None,
    default_reward: float | None = None,
    despite_doubt: bool = False,
    exploration: float | None = None,
) -> Configuration:
    r"""The experiment's configuration that a fit suggests.

    Parameters
    ----------
    fit : Fit
        What `fit_baseline` returned.
    log : TableLog
        The log that was fitted, a table read by `read_log`.
    policy : str
        Name of the policy.
    alpha : float
        Share of the baseline's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
    ridge : float, optional
        Regulariser lambda; by default the policy's own.
    radius : str, optional
        Radius of the confidence set; by default the policy's own.
    reward_bounds : (low, high), optional
        Bounds that no single reward leaves. SafeLUCB learns by them, and one that does not keep them raises the alarm.
    reward_window, default_reward : float, optional
        Seconds after which a reward is learned, and what is learned if none came.
    despite_doubt : bool
        Take a linear policy with a floor although the log speaks against a linear model.
    exploration : float, optional
        LUCB's radius as a constant (LinUCB's alpha); by default one that holds at all times.

    Returns
    -------
    Configuration
        Writes itself as TOML, makes the policy, and maps a context to feature rows.

    Raises
    ------
    AssumptionError
        If the baseline's mean reward is negative in the log, or linearity is doubtful.
    InputError
        If the log is no table, and so has no columns that live contexts could be encoded by.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surefoot.replay import fit_baseline, read_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("action,reward,age\n" + "red,0.2,30\nblue,0.7,40\n" * 20)
    ...     log = read_log(path, baseline="red")
    ...     found = configuration_of(fit_baseline(log), log, policy="SafeLUCB", alpha=0.1, delta=0.01, ridge=1.0)
    >>> sorted(found.actions), found.baseline
    (['blue', 'red'], 'red')
    """
    if not isinstance(log, TableLog):
        raise InputError(
            f"`log` must be a table read by `read_log`, but got a {type(log).__name__}. Where propensities were "
            "estimated, give the log that they were estimated for."
        )
    declared = fit.declared
    doubt = next((doubt.seen for doubt in fit.doubts if doubt.assumption == LINEARITY and doubt.is_doubtful), "")
    if doubt and policy != UNGUARDED and not despite_doubt:
        raise AssumptionError(not_linear(doubt, policy, alpha, delta, reward_bounds or fit.reward_bounds))
    one = None if log.follows_log or log.columns.baseline else log.actions[log.baseline_row]
    return Configuration(
        policy=policy,
        alpha=alpha,
        delta=delta,
        noise=declared.noise,
        ridge=ridge,
        theta_bound=declared.theta_bound,
        feature_bound=log.feature_bound,
        baseline_reward=declared.baseline_reward,
        actions=log.actions,
        baseline=one,
        encoder=log.encoder,
        action_features=log.action_features,
        radius=radius,
        reward_bounds=reward_bounds,
        reward_window=reward_window,
        default_reward=default_reward,
        doubt=doubt,
        exploration=exploration,
    )
