"""Rare rewards: how long clicks of 0.4 to 5% keep the learner out, with and without the likelihood set.

Every setting is true and nothing is tuned to the world: rewards are declared in [0, 1], theta's length at most 1.
"""

import argparse
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.safety import rare_clicks, violations
from surefoot import ConservativeUCB, SafeLUCB
from surefoot.arrays import Matrix
from surefoot.simulation import Baseline, Bernoulli, Contestant, FunctionWorld, Outcome, Problem, World, simulate
from surefoot.simulation.reward_limit import RewardLimit
from surefoot.simulation.rollout_plan import free_rounds, rewards_until

ALPHA, DELTA = 0.1, 0.001
ARMS = "arms"  # ConservativeUCB, over the likelihood set of plain arms
SETS = ("amm", "residual", "likelihood", "best", ARMS)


@dataclass(frozen=True)
class Line:
    """One world: the rounds that are played in it, and what must be reached."""

    name: str
    world: World
    horizon: int
    alpha: float = ALPHA
    most: int | None = None  # conservative rounds
    gain: float | None = None  # over the baseline
    means: tuple[float, ...] = ()  # of plain arms, today's first


def arms(means: tuple[float, ...]) -> World:
    """Plain arms, of which the first is played today."""
    size = len(means)
    return FunctionWorld(
        dim=size,
        actions=size,
        rewards=Bernoulli(),
        baseline=Baseline(action=0),
        function=lambda _: np.eye(size),
        theta=list(means),
    )


def contexts(rate: float, seed: int) -> World:
    """Four actions whose means are linear in 16 contexts, each with its own five weights: d = 20."""
    rng = np.random.default_rng(seed)
    grid = np.array([[1.0, *signs] for signs in itertools.product((-0.5, 0.5), repeat=4)])
    weights = np.c_[np.array([1.0, 1.4, 0.9, 0.7]), 0.25 * rng.standard_normal((4, 4))] * rate

    def rows(draws: np.random.Generator) -> Matrix:
        return np.asarray(np.kron(np.eye(4), grid[draws.integers(16)]), dtype=np.float64)

    return FunctionWorld(
        dim=20,
        actions=4,
        rewards=Bernoulli(),
        baseline=Baseline(action=0),
        function=rows,
        theta=weights.ravel().tolist(),
        feature_bound=math.sqrt(2.0),
        means=lambda found: np.clip(found @ weights.ravel(), 0.0, 1.0),
    )


def five(rate: float) -> tuple[float, ...]:
    """The baseline, one that pays half as much again, and three that do not."""
    return tuple(rate * factor for factor in (1.0, 1.5, 1.0, 0.7, 0.5))


def lines() -> list[Line]:
    """Every world of the table."""
    found = [
        Line(f"five arms, {rate:.1%}", arms(five(rate)), horizon, most=most, means=five(rate))
        for rate, horizon, most in ((0.05, 60_000, 9_000), (0.02, 150_000, 40_000), (0.004, 700_000, 200_000))
    ]
    ten = tuple(0.05 if arm != 4 else 0.075 for arm in range(10))
    found.append(Line("ten arms, one better, 5%", arms(ten), 100_000, means=ten))
    found += [
        Line(f"d = 20, 16 contexts, {rate:.1%}", contexts(rate, seed=7), horizon, gain=gain)
        for rate, horizon, gain in ((0.05, 100_000, 0.24), (0.02, 100_000, 0.10), (0.004, 400_000, 0.10))
    ]
    return [*found, Line("rows that never repeat, d = 20, 5%", rare_clicks(), 40_000, alpha=0.2)]


def maker(radius: str, alpha: float) -> Callable[[Problem], SafeLUCB | ConservativeUCB]:
    """A policy that knows no more than that rewards are clicks."""

    def make(problem: Problem) -> SafeLUCB | ConservativeUCB:
        if radius == ARMS:
            return ConservativeUCB(arms=problem.actions, alpha=alpha, delta=DELTA, reward_bounds=(0.0, 1.0))
        return SafeLUCB(
            dim=problem.dim,
            alpha=alpha,
            delta=DELTA,
            theta_bound=1.0,
            feature_bound=problem.feature_bound,
            reward_bounds=(0.0, 1.0),
            radius=radius,
        )

    return make


def measure(line: Line, radius: str, runs: int) -> Outcome:
    """Runs of one policy in one world."""
    contestant = Contestant(maker(radius, line.alpha), name=radius, alpha=line.alpha)
    return simulate(line.world, [contestant], runs=runs, horizon=line.horizon)[0]


def beyond_limit(line: Line, outcome: Outcome) -> float:
    """Rewards seen until the learner was free, over what the limit asks for: the median of the runs."""
    today, best = line.means[0], max(line.means)
    limit, free = RewardLimit(best / today - 1.0, line.alpha, DELTA), free_rounds(outcome)
    times = np.where(np.isfinite(free), limit.times(*rewards_until(outcome, free, today)), math.inf)
    return float(np.quantile(times, 0.5, method="higher"))


def measured(line: Line, radius: str, runs: int) -> bool:
    """Print one line of the table; whether its bar holds and no round was below the floor."""
    outcome = measure(line, radius, runs)
    kept = outcome.measures["baseline_rounds"][:, -1]
    gains = outcome.measures["earned"][:, -1] / outcome.measures["owed"][:, -1] - 1.0
    broken, holds, bar = violations(outcome), True, ""
    if radius in ("best", ARMS) and line.most is not None:
        holds, bar = bool(kept.mean() <= line.most), f"at most {line.most}"
    if radius == "best" and line.gain is not None:
        holds, bar = bool(gains.mean() >= line.gain), f"gain {line.gain:.0%}"
    verdict = bar and f"{bar}: {'holds' if holds else 'DOES NOT HOLD'}"
    limit = f"{beyond_limit(line, outcome):.2f}" if line.means else ""
    shown = f"{kept.mean():>12.0f} {kept.max():>9.0f} {gains.mean():>7.1%} {limit:>7} {broken:>6}"
    print(f"{line.name:<38} {radius:<11} {shown}  {verdict}", flush=True)
    return holds and broken == 0


def main(runs: int = 10, sets: str = "best", only: str = "") -> bool:
    """Print the table; whether all bars hold."""
    print(f"{'world':<38} {'set':<11} {'conservative':>12} {'most':>9} {'gain':>7} {'x limit':>7} {'below':>6}  bar")
    chosen = [line for line in lines() if only in line.name]
    pairs = [(line, radius) for line in chosen for radius in sets.split(",") if radius != ARMS or line.means]
    results = [measured(line, radius, runs) for line, radius in pairs]
    return all(results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", default="", help="part of a world's name")
    told = parser.parse_args()
    raise SystemExit(0 if main(told.runs, told.sets, told.only) else 1)
