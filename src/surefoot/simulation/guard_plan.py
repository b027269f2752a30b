"""How long a guard takes: days until a learner has half and nine tenths of the rounds, for a lift hoped for."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Vector, positive
from surefoot.errors import ConfigError
from surefoot.policies.guard import Goal, Guard
from surefoot.simulation.guard_simulation import GuardOutcome, simulate_guard
from surefoot.simulation.workers import Where, completed, workers_on
from surefoot.theory import GuardLimit, guard_limit

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
        found = dict(completed(executor, tasks))
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
        _answer(alpha, found[at], limits[at], means, per_day / each, traffic / each, agreement)
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
