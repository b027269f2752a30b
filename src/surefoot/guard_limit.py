"""What every guard needs: how many rounds the baseline must keep, by a theorem and by a computed schedule.

A guard that follows the shares p_t where the means are a and b follows them, with some probability, in every world that
it cannot tell from this one. In such a world the baseline improves unnoticed, and the same shares lie below the floor.
By a change of measure, for a guard that keeps its promise with probability 1 - delta,

    sum over rounds of (1 - p_t) KL(b, b'_t) + p_t KL(a, a'_t) >= ln(1/delta)

for all means a', b' that put the shares below the floor.  (docs/mathematics.md, "What every guard needs")
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.arrays import Matrix, Vector, count, fraction, positive
from surefoot.errors import ConfigError

STEP = 0.01  # of the rounds so far, in which the schedule keeps its share
HOLDOUTS = 200  # looked at
GRID = np.geomspace(1e-5, 30.0, 240)  # of rates
PARTS = 60  # of the theorem's two free numbers


@dataclass(frozen=True, slots=True, eq=False)
class GuardLimit:
    """Rounds that the baseline must keep, of those in which the proposal differs from it.

    Attributes
    ----------
    proved : float
        At least so many, by the theorem, for every guard that is surely on one schedule. 0 where it says nothing: of a
        learner that is worse, a baseline above 1/2, or rounds that agree.
    computed : float
        So many on the best schedule that was found, which knows both means: evidence of a limit, not a proof of one.
    times, kept : ndarray
        That schedule: numbers of rounds, and how many of them the baseline has kept.

    Examples
    --------
    >>> limit = guard_limit(learner=0.4, baseline=0.3, alpha=0.1, delta=0.05, rounds=20_000)
    >>> round(limit.proved), round(limit.computed, -1)
    (74, 590.0)
    """

    proved: float
    computed: float
    times: Vector
    kept: Vector


def guard_limit(
    *,
    learner: float,
    baseline: float,
    alpha: float,
    delta: float,
    rounds: int,
    min_holdout: float = 0.02,
    agreement: float = 0.0,
    deviation: float | None = None,
    rates: int = 1,
) -> GuardLimit:
    """How few rounds of the baseline any guard can do with, where both means stay as they are.

    Parameters
    ----------
    learner, baseline : float
        Mean rewards, as shares of the highest.
    alpha, delta : float
        What is promised.
    rounds : int
        How many.
    min_holdout : float
        The least share that the baseline keeps.
    agreement : float
        The share of the rounds in which the proposal equals the baseline.
    deviation : float, optional
        The standard deviation of rewards, if that is less than those of 0 or 1 have; the theorem is about those.
    rates : int
        By how many bets at once, each with its part of delta; 1 for the limit, and 12 for what ours could do if it knew
        the means.

    Returns
    -------
    GuardLimit
        The theorem, and the schedule.

    Raises
    ------
    ConfigError
        If a number is out of range.

    Examples
    --------
    >>> equal = guard_limit(learner=0.3, baseline=0.3, alpha=0.1, delta=0.05, rounds=20_000)
    >>> round(equal.computed, -2)
    2100.0
    """
    for name, mean in (("learner", learner), ("baseline", baseline)):
        if not 0.0 < mean < 1.0:
            raise ConfigError(f"`0 < {name} < 1` must hold, but got {mean!r}. Divide rewards by the highest one.")
    fraction("alpha", alpha, hint="alpha is the share of the baseline's reward that may be lost.")
    fraction("delta", delta, hint="delta is the probability that the promise may fail.")
    fraction("min_holdout", min_holdout, hint="min_holdout is what the baseline keeps.")
    count("rounds", rounds, hint="It is the number of rounds.")
    count("rates", rates, hint="It is the number of bets at once.")
    if not 0.0 <= agreement < 1.0:
        raise ConfigError(f"`0 <= agreement < 1` must hold, but got {agreement!r}. It is a share of the rounds.")
    if deviation is not None:
        positive("deviation", deviation, hint="It is the standard deviation of rewards.")
    held = np.geomspace(min(min_holdout, 1.0 - alpha), 1.0 - alpha, HOLDOUTS)
    growth = (1.0 - agreement) * _growth_of_shares(learner, baseline, alpha, 1.0 - held, deviation)
    growth += agreement * _growth(baseline, alpha * GRID, deviation)
    times, kept = _schedule((1.0 - agreement) * held, growth, math.log(rates / delta), rounds)
    proved = 0.0 if agreement > 0.0 else _proved(learner, baseline, alpha, delta, rounds)
    return GuardLimit(proved, float(kept[-1]), times, kept)


def _growth_of_shares(a: float, b: float, alpha: float, shares: Vector, deviation: float | None) -> Matrix:
    """By how much the logarithm of each rate's wealth grows in a round of each share, in the mean."""
    p = shares[:, None]
    on_baseline = GRID * (alpha - p) / (1.0 - p)
    growth: Matrix = p * _growth(a, GRID[None, :], deviation) + (1.0 - p) * _growth(b, on_baseline, deviation)
    return growth


def _schedule(held: Vector, growth: Matrix, event: float, rounds: int) -> tuple[Vector, Vector]:
    """Always the smallest holdout at which one rate of all still has a wealth of 1/delta, in the mean."""
    wealth, t, kept = np.zeros(GRID.size), 0, 0.0
    times, curve = [0], [0.0]
    while t < rounds:
        many = max(1, min(int(STEP * t), rounds - t))
        proved = (wealth + many * growth).max(axis=1) >= event
        # Where none is proved, the largest: the share alpha needs no proof.
        at = int(np.argmax(proved)) if proved.any() else held.size - 1
        wealth = wealth + many * growth[at]
        t, kept = t + many, kept + many * held[at]
        times.append(t)
        curve.append(kept)
    return np.array(times, dtype=np.float64), np.array(curve)


def _growth(mean: float, s: Matrix, deviation: float | None) -> Matrix:
    """The largest of s m + E ln(1 + s (y - m)) over centres m, for rewards of two values of this mean and deviation."""
    widest = math.sqrt(mean * (1.0 - mean))
    width = 1.0 if deviation is None else min(1.0, deviation / widest)
    low, bet = mean * (1.0 - width), s * width
    root = np.sqrt(np.maximum(0.0, (bet + 1.0) ** 2 - 4.0 * bet * mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        tilted = np.where(bet > -1.0, 2.0 * mean / (bet + 1.0 + root), (bet + 1.0 - root) / (2.0 * bet))
        # No bet may be lost by more than it has, whatever a reward is.
        least, most = np.where(s < 0.0, 1.0 + 1.0 / s, 0.0), np.where(s > 0.0, 1.0 / s, 1.0)
    centre = np.clip(low + width * tilted, least, np.maximum(least, most))
    factors = (1.0 + s * (low + value * width - centre) for value in (0.0, 1.0))
    lower, upper = (np.log(np.maximum(factor, 1e-300)) for factor in factors)
    mean_growth: Matrix = s * centre + (1.0 - mean) * lower + mean * upper
    return mean_growth


def _proved(a: float, b: float, alpha: float, delta: float, rounds: int) -> float:
    """Either some holdout up to round s >= t_0 is above eta s, or the theorem's sum is reached: the best of both."""
    gap, best = a - (1.0 - alpha) * b, 0.0
    if b > 0.5 or a < b or rounds < 2:
        return 0.0
    for eta in np.linspace(0.0, (1.0 - alpha) / 2.0, PARTS, endpoint=False)[1:]:
        kept = 1.0 - alpha - 2.0 * float(eta)
        if 2.0 * gap / kept > 1.0 - 2.0 * b:
            break
        c = kept**2 * b * (1.0 - b) * math.log(1.0 / delta) / gap**2
        start = np.geomspace(1.0, rounds, 20 * PARTS)
        least = c * (np.log((rounds + 1.0) / (start + 1.0)) + 0.5 - 0.5 / start)
        best = max(best, float(np.minimum(eta * start, least).max()))
    return best
