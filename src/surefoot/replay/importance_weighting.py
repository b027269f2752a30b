"""Importance weighting: what other actions than the logged ones would have earned, where chances were logged.

With the chance p that the logged action a had, and d the action in question, w = 1{a = d} / p has mean 1, and

- ips:    mean of w r. Unbiased.
- snips:  sum of w r / sum of w. Slightly biased for few rows, far less spread, never outside the range of rewards.
- dr:     mean of m(d) + w (r - m(a)), m a ridge prediction from the rows before. Unbiased whether m is right or not,
          and less spread the better m is.
- dm:     mean of m(d), the direct method. As wrong as the model is, which the rows cannot say: it has no interval.

The first three take for granted that chances were logged as they were, that every action in question had a chance above
0 wherever it is asked about, and that nothing but the context in the log decides both the action and the reward.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.replay.intervals import Estimate, Moments, around, normal_reach, within, without_interval
from surefoot.replay.rare_rewards import RareSum, alike, reaches

ESTIMATORS = ("ips", "snips", "dr")  # those with an interval
ASSUMES = {
    "ips": "Importance weighting: logged propensities are right, and every action asked about had a chance above 0.",
    "snips": "Self-normalised importance weighting: as importance weighting, and rows enough for a ratio of means; its "
    "interval is the delta method's.",
    "dr": "Doubly robust: as importance weighting; the reward model is fitted to earlier rows only, and need not be "
    "right.",
    "dm": "Direct method: the reward model's word alone. It is as wrong as the model is, so that it has no interval.",
}


def weights(actions: NDArray[np.int64], asked: NDArray[np.int64], propensities: Vector) -> Vector:
    """1{a = d} / p."""
    return np.where(actions == asked, 1.0 / propensities, 0.0)


def robust_terms(weight: Matrix, rewards: Vector, at_asked: Matrix, at_logged: Vector) -> Matrix:
    """m(d) + w (r - m(a)), a row of terms for each target."""
    terms: Matrix = at_asked + weight * (rewards - at_logged)
    return terms


class ImportanceWeighting:
    """A policy's value, the baseline's, and their difference on the same rows, by all three estimators.

    Where few rewarded rows carry an estimate, its interval is a gamma one instead of the normal, within `bounds`, the
    declared range of rewards.
    """

    def __init__(self, *, bounds: tuple[float, float] | None) -> None:
        self._rows = 0
        self._plain = {name: {what: Moments() for what in WHATS} for name in ("ips", "dr")}
        # Sums of w_i w_j r^k for both targets: all that the delta method needs.
        self._single, self._double = np.zeros((2, 2)), np.zeros((2, 2, 3))
        self._bounds, self.weight = bounds, Moments()
        # The rewards' part of every estimate: sums and squares of what they add and take. Weights of policy and
        # baseline, in all rows and where they differ. And what a reward model adds.
        self._signed, self._seen = np.zeros((3, 2, 2)), (math.inf, -math.inf)
        self._weights, self._largest = np.zeros((2, 4)), np.zeros(4)
        self._rest = {what: Moments() for what in WHATS}
        self._modelled = {what: Moments() for what in WHATS}

    def add(self, weight: Matrix, rewards: Vector, robust: Matrix, modelled: Matrix | None = None) -> None:
        """Take in rows: weights, doubly robust terms and modelled means (2, rows) of policy and baseline; rewards."""
        self._rows += rewards.size
        if modelled is not None:
            for what, values in zip(WHATS, _asked(modelled), strict=True):
                self._modelled[what].add(values)
        self.weight.add(weight[0])
        paid = weight * rewards
        for name, terms in (("ips", paid), ("dr", robust)):
            for what, values in zip(WHATS, _asked(terms), strict=True):
                self._plain[name][what].add(values)
        if rewards.size:
            self._add_rare(weight, rewards, paid)
        for what, values in zip(WHATS, _asked(robust - paid), strict=True):
            self._rest[what].add(values)
        powers = np.stack([np.ones_like(rewards), rewards, rewards**2])
        self._single += weight @ powers[:2].T
        self._double += np.einsum("in,jn,kn->ijk", weight, weight, powers, optimize=True)

    def estimate(self, name: str, what: str, level: float) -> Estimate:
        """One of "reward", "baseline" and "gain" by one of the estimators, with its interval."""
        found = self._ratio(what, level) if name == "snips" else self._plain[name][what].interval(level)
        heavier = max(self._rare_sums(what), key=lambda side: (side.squares, side.largest))
        if heavier.is_rare and math.isfinite(found.value):
            found = self._gamma(found, name, what)
        bounds = self._bounds
        if bounds is not None and what == "gain":
            bounds = bounds[0] - bounds[1], bounds[1] - bounds[0]
        return within(found, bounds) if found.method == "gamma" else found

    def _rare_sums(self, what: str) -> tuple[RareSum, RareSum]:
        """What the rewards add to an estimate and what they take from it."""
        low, high = self._bounds or self._seen
        own, other = {"reward": (0, 0), "baseline": (1, 1), "gain": (2, 3)}[what]
        # Of both targets where they ask for different actions: elsewhere their difference has no luck to have.
        most, rows = self._largest, [alike(*sums) for sums in self._weights.T]
        against = most[other] if what == "gain" else 0.0
        paid = max(most[own] * high, against * -low, 0.0), max(most[own] * -low, against * high, 0.0)
        (gained, square), (lost, lost_square) = self._signed[WHATS.index(what)].tolist()
        return RareSum(gained, square, paid[0], rows[own]), RareSum(lost, lost_square, paid[1], rows[other])

    def _add_rare(self, weight: Matrix, rewards: Vector, paid: Matrix) -> None:
        self._seen = min(self._seen[0], float(rewards.min())), max(self._seen[1], float(rewards.max()))
        used = np.vstack([weight, np.where(weight[0] != weight[1], weight, 0.0)])
        self._largest = np.maximum(self._largest, used.max(axis=1))
        self._weights += [used.sum(axis=1), (used**2).sum(axis=1)]
        for place, values in enumerate(_asked(paid)):
            for side, terms in enumerate((np.maximum(values, 0.0), np.maximum(-values, 0.0))):
                # Not `terms @ terms`: over that many rows BLAS wakes threads, which cost more than the sum.
                self._signed[place, side] += terms.sum(), np.square(terms).sum()

    def _gamma(self, found: Estimate, name: str, what: str) -> Estimate:
        """The estimate with the interval of rare rewards, by the sum of weights where they are divided by that."""
        used = {"reward": [0], "baseline": [1], "gain": [0, 1]}[what]
        below = self._single[used, 0].min() if name == "snips" else self._rows
        spare = normal_reach(found.level) * self._rest[what].stderr if name == "dr" else 0.0
        down, up = (math.hypot(reach / below, spare) for reach in reaches(*self._rare_sums(what), found.level))
        return Estimate(found.value, found.value - down, found.value + up, found.level, "gamma", found.rows)

    def all(self, level: float) -> Mapping[str, Mapping[str, Estimate]]:
        """Every estimate by estimator and question."""
        found = {name: {what: self.estimate(name, what, level) for what in WHATS} for name in ESTIMATORS}
        found["dm"] = {what: without_interval(mean.mean, mean.count) for what, mean in self._modelled.items()}
        return found

    def _ratio(self, what: str, level: float) -> Estimate:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self._single[:, 1] / self._single[:, 0]
            # Influence of a row on a ratio: w (r - value) / mean w.
            pairs = np.empty((2, 2))
            for i in range(2):
                for j in range(2):
                    s = self._double[i, j]
                    middle = s[2] - (values[i] + values[j]) * s[1] + values[i] * values[j] * s[0]
                    pairs[i, j] = middle / (self._single[i, 0] * self._single[j, 0])
        signs = {"reward": (1.0, 0.0), "baseline": (0.0, 1.0), "gain": (1.0, -1.0)}[what]
        sign = np.array(signs)
        # A target that no row matched has no estimate, and must not spoil the other's by 0 times NaN.
        used = sign != 0
        spread = float(sign[used] @ pairs[np.ix_(used, used)] @ sign[used])
        value = float(sign[used] @ values[used])
        stderr = math.sqrt(max(0.0, spread)) if math.isfinite(spread) else math.nan
        return around(value, stderr, level=level, rows=self._rows)


WHATS = ("reward", "baseline", "gain")


def _asked(terms: Matrix) -> tuple[Vector, Vector, Vector]:
    """Terms of policy and baseline, and of what the policy gains."""
    return terms[0], terms[1], terms[0] - terms[1]
