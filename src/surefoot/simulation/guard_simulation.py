"""Guards in simulated worlds, many runs at once; and how long a guard takes, for a lift hoped for.

A world is a function of the round, the shares of all runs and a random generator; it answers with the means of both
sides and, if it likes, with whether they agree. So it may drift, and an adversary may look at the share before it
chooses, but not at the coin. Each round is compiled.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count, positive
from surefoot.core.native import GuardRuns
from surefoot.errors import ConfigError
from surefoot.policies.guard import Goal, Guard
from surefoot.simulation.workers import Progress, Where, completed, reported, workers_on
from surefoot.theory import GuardLimit, guard_limit

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


MOST_ROUNDS = 200_000  # simulated; a longer plan is extrapolated from there
EDGE = 1e-6  # means this close to 0 or 1 are as good as there
RARE = 0.05  # means up to which what happens depends on the number of rewards, and not on that of rounds


@dataclass(frozen=True)
class GuardRollout:
    """What a manager asks of a guard, for one alpha. Days are medians over runs, infinite where it is not in time.

    Beyond the days that were simulated, the learner's share is taken to stay as it was in their last tenth.

    Attributes
    ----------
    alpha : float
        The share at risk.
    half_day, most_day : float
        Days from which on the learner has 50% and 90% of the rounds.
    most_day_slow : float
        Days from which on it has 90% in nine runs of ten.
    share : float
        The learner's share at the end.
    baseline_rounds : float
        Rounds that the baseline kept, of those in which both sides differ.
    proved_rounds, limit_rounds : float
        So many it must keep under every guard: at least, by a theorem, and on the best schedule that was computed
        (`surefoot.theory.guard_limit`).
    gained, gained_share : float
        What was earned beyond the baseline, and as a share of its reward.
    broken : int
        Runs that were ever below the floor, by the truth.
    simulated_days : float
        Days that were simulated, of those that were asked for.

    Examples
    --------
    >>> (answer,) = plan_guard(baseline_reward=0.3, lift=0.3, per_day=1000, alphas=[0.2], delta=0.05, days=5, runs=20)
    >>> answer.half_day < 2, answer.broken
    (True, 0)
    """

    alpha: float
    half_day: float
    most_day: float
    most_day_slow: float
    share: float
    baseline_rounds: float
    proved_rounds: float
    limit_rounds: float
    gained: float
    gained_share: float
    broken: int
    simulated_days: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; what is not finite becomes null."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


def plan_guard(
    *,
    baseline_reward: float,
    lift: float,
    per_day: float,
    alphas: Sequence[float],
    delta: float,
    days: float = 30,
    agreement: float = 0.0,
    goal: Goal = "earn",
    runs: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
    on: Where = None,
) -> list[GuardRollout]:
    """Simulate a guard over rewards of 0 or 1, such as clicks and sales.

    Parameters
    ----------
    baseline_reward : float
        Mean reward of today's strategy, a share of the highest reward.
    lift : float
        Lift hoped for, as a share: 0.1 is 10% more.
    per_day : float
        Decisions a day.
    alphas : sequence of float
        Shares at risk.
    delta : float
        Probability that the promise fails.
    days : float
        How far to look ahead. At most 200,000 rounds are simulated: where rewards are rare, each of them stands for
        several with as many rewards together, and what lies beyond is extrapolated.
    agreement : float
        The share of the rounds in which the proposal equals the baseline; both means are of the others.
    goal : {"earn", "save"}
        Of the guard.
    runs, seed : int
        Of the simulation.
    progress : callable, optional
        Called with the rounds done and the rounds in all, after each alpha.
    on : str or concurrent.futures.Executor, optional
        Where it is played, alpha by alpha, such as "local:4", "ray" or "dask://host:port"; on all cores by default.

    Returns
    -------
    list of GuardRollout
        One for each alpha.

    Raises
    ------
    ConfigError
        If a number is out of range.

    Examples
    --------
    >>> told = dict(baseline_reward=0.02, lift=0.0, per_day=500, alphas=[0.1], delta=0.05, days=2, runs=5)
    >>> plan_guard(**told)[0].half_day
    inf
    """
    positive("per_day", per_day, hint="per_day is the number of decisions a day.")
    positive("days", days, hint="days is how far to look ahead.")
    learner = baseline_reward * (1.0 + lift)
    if not (0.0 < baseline_reward <= 1.0 and 0.0 <= learner <= 1.0):
        raise ConfigError(
            f"Mean rewards must lie between 0 and 1, but got {baseline_reward=} and {learner:g} with a lift of {lift}. "
            "Divide rewards by the highest one."
        )
    if not 0.0 <= agreement < 1.0:
        raise ConfigError(f"`0 <= agreement < 1` must hold, but got {agreement!r}. It is a share of the rounds.")
    traffic = max(1.0, per_day * days)
    each = max(1.0, min(traffic / MOST_ROUNDS, RARE / max(learner, baseline_reward)))
    rounds = min(MOST_ROUNDS, math.ceil(traffic / each))
    means = (each * learner, each * baseline_reward)
    tasks = [
        partial(_simulated, Guard(alpha=alpha, delta=delta, goal=goal), means, agreement, rounds, runs, seed)
        for alpha in alphas
    ]
    with workers_on(on) as executor:
        outcomes = dict(reported(completed(executor, tasks), [runs * rounds] * len(tasks), progress))
    learner, baseline = (min(max(mean, EDGE), 1.0 - EDGE) for mean in means)
    limits = [
        guard_limit(
            learner=learner,
            baseline=baseline,
            alpha=alpha,
            delta=delta,
            rounds=math.ceil(traffic / each),
            agreement=agreement,
        )
        for alpha in alphas
    ]
    answers = (
        _answer(alpha, outcomes[at], limits[at], means, per_day / each, traffic / each, agreement)
        for at, alpha in enumerate(alphas)
    )
    return [_times(answer, each) for answer in answers]


def _simulated(
    guard: Guard, means: tuple[float, float], agreement: float, rounds: int, runs: int, seed: int
) -> GuardOutcome:
    def world(t: int, share: Vector, rng: np.random.Generator) -> tuple[float, float, NDArray[np.bool_]]:
        return *means, rng.random(share.size) < agreement

    return simulate_guard(guard, world, rounds=rounds, runs=runs, seed=seed)


def _times(answer: GuardRollout, each: float) -> GuardRollout:
    """Rounds of which each stands for several, counted one by one."""
    names = ("baseline_rounds", "proved_rounds", "limit_rounds")
    return replace(answer, **{name: each * getattr(answer, name) for name in names})


def _answer(
    alpha: float,
    outcome: GuardOutcome,
    limit: GuardLimit,
    means: tuple[float, float],
    per_day: float,
    traffic: float,
    agreement: float,
) -> GuardRollout:
    """`means` are those of a simulated round, of which there are `per_day`, and `traffic` in all."""
    rounds, (learner, baseline) = outcome.shares.size, means

    def day(level: float, quantile: float) -> float:
        # No interpolation: between a day and never there is nothing.
        kept = float(np.quantile(outcome.kept_from[level], quantile, method="higher"))
        return math.inf if kept >= rounds else kept / per_day

    late = float(outcome.shares[-math.ceil(rounds / 10) :].mean())
    rest = max(0.0, traffic - rounds) * (1.0 - agreement)
    gained = float((outcome.earned - outcome.owed).mean()) + rest * late * (learner - baseline)
    return GuardRollout(
        alpha=alpha,
        half_day=day(0.5, 0.5),
        most_day=day(0.9, 0.5),
        most_day_slow=day(0.9, 0.9),
        share=float(outcome.shares[-1]),
        baseline_rounds=float(outcome.baseline_rounds.mean()) + rest * (1.0 - late),
        proved_rounds=limit.proved,
        limit_rounds=limit.computed,
        gained=gained,
        gained_share=gained / (baseline * max(traffic, rounds)),
        broken=outcome.broken,
        simulated_days=min(rounds, traffic) / per_day,
    )
