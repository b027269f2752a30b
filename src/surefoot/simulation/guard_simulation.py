"""Guards in simulated worlds: many runs at once, each round compiled, with means that may know the share.

A world is a function of the round, the shares of all runs and a random generator; it answers with the means of both
sides. So it may drift, and an adversary may look at the share before it chooses, but not at the coin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count
from surefoot.compiled import compiled_apart
from surefoot.errors import ConfigError
from surefoot.policies.guard import Guard
from surefoot.policies.guard_step import book_round, enter_round, record_size, share_of
from surefoot.safety.bank import ALPHA, CARRIED, IS_PLAYED, PLAYED, RESERVE, SIGN, new_bank

Means: TypeAlias = tuple[Any, Any]
GuardWorld: TypeAlias = Callable[[int, Vector, np.random.Generator], Means]


@dataclass(frozen=True, slots=True, eq=False)
class GuardOutcome:
    """What became of the runs of one guard in one world.

    Attributes
    ----------
    baseline_rounds : ndarray
        Of each run: how many rounds the baseline kept, coins averaged.
    reached : dict of float to ndarray
        For the shares 0.5 and 0.9, the round in which each run first had them; the number of rounds where it did not.
    worst_slack : ndarray
        Of each run: the least slack above the floor at any time, by the true means, over all metrics; below 0 the
        promise was broken.
    overclaim : ndarray
        Of each run: the most by which a bank exceeded the true slack; above 0 the bound was wrong.
    earned, owed : ndarray
        Of each run: the mean reward of what was played, and of the baseline, of the first metric.
    shares : ndarray
        The mean share of all runs, round by round.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.2, delta=0.05)
    >>> simulate_guard(guard, lambda t, share, rng: (0.0, 0.5), rounds=100, runs=5).broken
    0
    """

    baseline_rounds: Vector
    reached: dict[float, NDArray[np.int64]]
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
    guard: Guard, world: GuardWorld, *, rounds: int, runs: int, seed: int = 0, delay: int = 0, binary: bool = True
) -> GuardOutcome:
    """Run a guard many times in a world whose means are known.

    Parameters
    ----------
    guard : Guard
        A new guard; its schedule, units and windows are not simulated.
    world : callable
        Given the round, the share of every run and a generator, returns the means of the learner and of the baseline,
        in units of the highest reward: numbers, or arrays of shape (runs,) or (runs, metrics).
    rounds, runs : int
        How long, and how often.
    seed : int
        Of worlds, coins and rewards.
    delay : int
        Rounds after which a reward comes.
    binary : bool
        Whether rewards are 0 or the highest; otherwise they lie between, with half of the variance.

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
    return _Runs(guard, world, rounds, runs, seed, delay, binary).outcome()


class _Runs:
    def __init__(
        self, guard: Guard, world: GuardWorld, rounds: int, runs: int, seed: int, delay: int, binary: bool
    ) -> None:
        self.settings, self.ramp, self.most, self.predicted = guard.step_settings
        self.world, self.rounds, self.runs, self.binary = world, rounds, runs, binary
        metrics = self.settings.shape[0]
        self.rng = np.random.default_rng(seed)
        self.banks = np.array([[new_bank(numbers) for numbers in self.settings] for _ in range(runs)])
        # A ring: the slot of a round is free again once its reward has entered.
        self.records = np.zeros((delay + 1, runs, record_size.function(metrics)))
        self.sides = np.zeros((delay + 1, runs), dtype=np.bool_)
        self.rewards = np.zeros((delay + 1, runs, metrics))
        self.share, self.slack = np.zeros(runs), np.zeros((runs, metrics))
        self.worst, self.overclaim = np.zeros(runs), np.full(runs, -np.inf)
        self.baseline, self.earned, self.owed = np.zeros(runs), np.zeros(runs), np.zeros(runs)
        self.reached = {level: np.full(runs, rounds) for level in (0.5, 0.9)}
        self.shares = np.zeros(rounds)

    def outcome(self) -> GuardOutcome:
        for t in range(self.rounds):
            self._round(t)
        return GuardOutcome(
            self.baseline, self.reached, self.worst, self.overclaim, self.earned, self.owed, self.shares
        )

    def _round(self, t: int) -> None:
        share_runs(self.settings, self.banks, self.ramp, self.most, self.share)
        # The world answers after the share and before the coin, as far as an adversary may look.
        learner, baseline = (_columns(means, self.slack.shape) for means in self.world(t, self.share, self.rng))
        at = t % self.records.shape[0]
        self.sides[at] = self.rng.random(self.runs) < self.share
        self.rewards[at] = self._drawn(np.where(self.sides[at][:, None], learner, baseline))
        book_runs(self.settings, self.banks, self.share, self.predicted, self.sides[at], self.records[at])
        if t + 1 >= self.records.shape[0]:
            # The slot that the next round takes over: it has waited for `delay` rounds.
            due = (t + 1) % self.records.shape[0]
            enter_runs(self.settings, self.banks, self.records[due], self.sides[due], self.rewards[due])
        self._judge(t, self.sides[at], learner, baseline)

    def _drawn(self, means: Matrix) -> Matrix:
        if self.binary:
            return (self.rng.random(means.shape) < means).astype(np.float64)
        # Halfway between the mean and a coin of that mean: the same mean, strictly inside of the bounds.
        return 0.5 * means + 0.5 * (self.rng.random(means.shape) < means)

    def _judge(self, t: int, sides: NDArray[np.bool_], learner: Matrix, baseline: Matrix) -> None:
        sign, alpha, is_played = self.settings[:, SIGN], self.settings[:, ALPHA], self.settings[0, IS_PLAYED] > 0
        counted = (sides.astype(np.float64) if is_played else self.share)[:, None]
        self.slack += sign * counted * learner + (alpha - sign * counted) * baseline
        held = self.banks[:, :, PLAYED if is_played else CARRIED]
        self.worst = np.minimum(self.worst, (self.slack + self.settings[:, RESERVE]).min(axis=1))
        self.overclaim = np.maximum(self.overclaim, (held - self.settings[:, RESERVE] - self.slack).max(axis=1))
        self.baseline += 1.0 - self.share
        self.earned += self.share * learner[:, 0] + (1.0 - self.share) * baseline[:, 0]
        self.owed += baseline[:, 0]
        self.shares[t] = self.share.mean()
        for level, rounds in self.reached.items():
            # Who still has the first value has not reached the level before.
            rounds[(self.share >= level) & (rounds == self.rounds)] = t


@compiled_apart
def share_runs(settings: Matrix, banks: NDArray[np.float64], ramp: int, most: float, shares: Vector) -> None:
    """The share of every run."""
    for run in range(shares.size):
        shares[run] = share_of(settings, banks[run], ramp, most)


@compiled_apart
def book_runs(
    settings: Matrix,
    banks: NDArray[np.float64],
    shares: Vector,
    predicted: Vector,
    sides: NDArray[np.bool_],
    records: Matrix,
) -> None:
    """Charge the round of every run."""
    for run in range(shares.size):
        book_round(settings, banks[run], shares[run], predicted, sides[run], records[run])


@compiled_apart
def enter_runs(
    settings: Matrix, banks: NDArray[np.float64], records: Matrix, sides: NDArray[np.bool_], rewards: Matrix
) -> None:
    """Take the rewards of one round of every run in."""
    for run in range(sides.size):
        enter_round(settings, banks[run], records[run], sides[run], rewards[run])


def _columns(means: Any, shape: tuple[int, int]) -> Matrix:
    array = np.asarray(means, dtype=np.float64)
    if array.ndim == 1 and array.shape != shape[1:]:
        array = array[:, None]
    elif array.ndim == 1 and shape[0] == shape[1]:
        raise ConfigError("Means must be numbers or have the shape (runs, metrics) where there are as many of both.")
    return np.broadcast_to(array, shape)
