"""Guards in simulated worlds: many runs at once, each round compiled, with means that may know the share.

A world is a function of the round, the shares of all runs and a random generator; it answers with the means of both
sides and, if it likes, with whether they agree. So it may drift, and an adversary may look at the share before it
chooses, but not at the coin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count, positive
from surefoot.core.native import GuardRuns
from surefoot.errors import ConfigError
from surefoot.policies.guard import Guard

Means: TypeAlias = tuple[Any, Any] | tuple[Any, Any, Any]
GuardWorld: TypeAlias = Callable[[int, Vector, np.random.Generator], Means]


@dataclass(frozen=True, slots=True, eq=False)
class GuardOutcome:
    """What became of the runs of one guard in one world.

    Attributes
    ----------
    baseline_rounds : ndarray
        Of each run: how many of the rounds in which both sides differ the baseline kept, coins averaged.
    kept_from : dict of float to ndarray
        For the shares 0.5 and 0.9, the round from which on each run had them until its end; the number of rounds where
        it did not have them then.
    worst_slack : ndarray
        Of each run: the least slack above the floor at any time, by the true means, over all metrics; below 0 the
        promise was broken.
    overclaim : ndarray
        Of each run: the most by which a bank exceeded the true slack; above 0 the bound was wrong.
    earned, owed : ndarray
        Of each run: the mean reward of what was played, and of the baseline, of the first metric.
    shares : ndarray
        The mean share of all runs, round by round: what a proposal that differs would have.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.2, delta=0.05)
    >>> simulate_guard(guard, lambda t, share, rng: (0.0, 0.5), rounds=100, runs=5).broken
    0
    """

    baseline_rounds: Vector
    kept_from: dict[float, NDArray[np.int64]]
    worst_slack: Vector
    overclaim: Vector
    earned: Vector
    owed: Vector
    shares: Vector

    @property
    def broken(self) -> int:
        """Runs that were below the floor at any time."""
        # Rounding of a sum of many rounds is no broken promise.
        return int((self.worst_slack < -1e-9).sum())

    @property
    def overclaimed(self) -> int:
        """Runs whose bank ever held more than was true."""
        return int((self.overclaim > 1e-9).sum())


def simulate_guard(
    guard: Guard,
    world: GuardWorld,
    *,
    rounds: int,
    runs: int,
    seed: int = 0,
    delay: int = 0,
    deviation: float | None = None,
) -> GuardOutcome:
    """Run a guard many times in a world whose means are known.

    Parameters
    ----------
    guard : Guard
        A new guard; its schedule, units and windows are not simulated.
    world : callable
        Given the round, the share of every run and a generator, returns the means of the learner and of the baseline,
        in units of the highest reward: numbers, or arrays of shape (runs,) or (runs, metrics). A third, one for all or
        of shape (runs,), says where the proposal equals the baseline.
    rounds, runs : int
        How long, and how often.
    seed : int
        Of worlds, coins and rewards.
    delay : int
        Rounds after which a reward comes.
    deviation : float, optional
        The standard deviation of rewards, which then take two values between 0 and the highest; without it they are one
        or the other.

    Returns
    -------
    GuardOutcome
        Counts and curves.

    Raises
    ------
    ConfigError
        If a number is out of range, or the guard has a schedule.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05)
    >>> found = simulate_guard(guard, lambda t, share, rng: (0.5, 0.3), rounds=2000, runs=20)
    >>> found.broken, bool(found.baseline_rounds.mean() < 1000)
    (0, True)
    """
    count("rounds", rounds, hint="It is the length of a run.")
    count("runs", runs, hint="It is the number of runs.")
    count("delay", delay, least=0, hint="It is the number of rounds after which a reward comes.")
    if guard.settings["schedule"] is not None:
        raise ConfigError("A guard with a `schedule` cannot be simulated: give it a `cap` instead.")
    if deviation is not None:
        positive("deviation", deviation, hint="It is the standard deviation of rewards.")
    return _Runs(guard, world, rounds, runs, seed, delay, deviation).outcome()


class _Runs:
    def __init__(
        self, guard: Guard, world: GuardWorld, rounds: int, runs: int, seed: int, delay: int, deviation: float | None
    ) -> None:
        self.world, self.rounds, self.runs, self.deviation = world, rounds, runs, deviation
        self.rng = np.random.default_rng(seed)
        self.core = GuardRuns(guard.step_settings, runs=runs, delay=delay)
        metrics = guard.step_settings.metrics
        self.sign, self.alpha, self.reserve = (
            np.array([getattr(one, name) for one in metrics]) for name in ("sign", "alpha", "reserve")
        )
        self.is_played = metrics[0].is_played
        self.share, self.slack = np.zeros(runs), np.zeros((runs, len(metrics)))
        self.worst, self.overclaim = np.zeros(runs), np.full(runs, -np.inf)
        self.baseline, self.earned, self.owed = np.zeros(runs), np.zeros(runs), np.zeros(runs)
        self.kept_from = {level: np.zeros(runs, dtype=np.int64) for level in (0.5, 0.9)}
        self.shares = np.zeros(rounds)

    def outcome(self) -> GuardOutcome:
        for t in range(self.rounds):
            self._round(t)
        return GuardOutcome(
            self.baseline, self.kept_from, self.worst, self.overclaim, self.earned, self.owed, self.shares
        )

    def _round(self, t: int) -> None:
        self.core.share(self.share)
        # The world answers after the share and before the coin, as far as an adversary may look.
        of_learner, of_baseline, *agrees = self.world(t, self.share, self.rng)
        learner, baseline = (_columns(means, self.slack.shape) for means in (of_learner, of_baseline))
        differs = ~np.broadcast_to(np.asarray(agrees[0] if agrees else False, dtype=np.bool_), self.runs)
        self._ask(t, differs)
        self.share[~differs] = 0.0
        sides = self.rng.random(self.runs) < self.share
        self.core.step(self.share, sides, self._drawn(np.where(sides[:, None], learner, baseline)))
        self._judge(sides, learner, baseline)

    def _ask(self, t: int, differs: NDArray[np.bool_]) -> None:
        """Count the shares of proposals that differ."""
        self.shares[t] = self.share.mean()
        self.baseline += differs * (1.0 - self.share)
        for level, rounds in self.kept_from.items():
            rounds[self.share < level] = t + 1

    def _drawn(self, means: Matrix) -> Matrix:
        coins = (self.rng.random(means.shape) < means).astype(np.float64)
        if self.deviation is None:
            return coins
        # Between the mean and a coin of that mean: the same mean, and less around it.
        part = np.minimum(1.0, self.deviation / np.sqrt(np.maximum(means * (1.0 - means), 1e-12)))
        drawn: Matrix = means + part * (coins - means)
        return drawn

    def _judge(self, sides: NDArray[np.bool_], learner: Matrix, baseline: Matrix) -> None:
        counted = (sides.astype(np.float64) if self.is_played else self.share)[:, None]
        self.slack += self.sign * counted * learner + (self.alpha - self.sign * counted) * baseline
        self.worst = np.minimum(self.worst, (self.slack + self.reserve).min(axis=1))
        self.overclaim = np.maximum(self.overclaim, (self.core.held() - self.reserve - self.slack).max(axis=1))
        self.earned += self.share * learner[:, 0] + (1.0 - self.share) * baseline[:, 0]
        self.owed += baseline[:, 0]


def _columns(means: Any, shape: tuple[int, int]) -> Matrix:
    array = np.asarray(means, dtype=np.float64)
    if array.ndim == 1 and array.shape != shape[1:]:
        array = array[:, None]
    elif array.ndim == 1 and shape[0] == shape[1]:
        raise ConfigError("Means must be numbers or have the shape (runs, metrics) where there are as many of both.")
    return np.broadcast_to(array, shape)
