"""Rare rewards: how long clicks of 0.4 to 5% keep the learner out, with and without the likelihood set.

Every setting is true and nothing is tuned to the world: rewards are declared in [0, 1], theta's length at most 1.
"""

import argparse
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.safety import rare_clicks, violations
from surefoot import ConservativeUCB, SafeLUCB
from surefoot.arrays import Matrix, Vector
from surefoot.simulation import Baseline, Bernoulli, FunctionWorld, Outcome, Problem, Spec, World, simulate
from surefoot.simulation.rewards import RewardsNeeded
from surefoot.simulation.rollout_plan import free_rounds, rewards_until

ALPHA, DELTA = 0.1, 0.001
LOOSE, BETTER = 0.05, 1.2  # where too little is explored, a learner stays with today's arm
ARMS = "arms"  # ConservativeUCB, over the likelihood set of plain arms
MOST_COSTLY = 3.0  # times a decision of `amm`
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


def maker(radius: str, alpha: float, delta: float = DELTA) -> Callable[[Problem], SafeLUCB | ConservativeUCB]:
    """A policy that knows no more than that rewards are clicks."""

    def make(problem: Problem) -> SafeLUCB | ConservativeUCB:
        if radius == ARMS:
            return ConservativeUCB(arms=problem.actions, alpha=alpha, delta=delta, reward_bounds=(0.0, 1.0))
        return SafeLUCB(
            dim=problem.dim,
            alpha=alpha,
            delta=delta,
            theta_bound=1.0,
            feature_bound=problem.feature_bound,
            reward_bounds=(0.0, 1.0),
            radius=radius,
        )

    return make


def measure(line: Line, radius: str, runs: int) -> Outcome:
    """Runs of one policy in one world."""
    contestant = Spec(maker(radius, line.alpha), name=radius, alpha=line.alpha)
    return simulate(line.world, [contestant], runs=runs, horizon=line.horizon)[0]


def times_needed(line: Line, outcome: Outcome) -> float:
    """Rewards seen until the learner was free, over what its bounds need: the median of the runs."""
    today, best = line.means[0], max(line.means)
    needed, free = RewardsNeeded(best / today - 1.0, line.alpha, DELTA), free_rounds(outcome)
    times = np.where(np.isfinite(free), needed.times(*rewards_until(outcome, free, today)), math.inf)
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
    needed = f"{times_needed(line, outcome):.2f}" if line.means else ""
    shown = f"{kept.mean():>12.0f} {kept.max():>9.0f} {gains.mean():>7.1%} {needed:>8} {broken:>6}"
    print(f"{line.name:<38} {radius:<11} {shown}  {verdict}", flush=True)
    return holds and broken == 0


def locked(rate: float, runs: int, horizon: int) -> tuple[int, float]:
    """Runs in which an arm that pays 20% more is not found: in the last tenth it plays less than half; and the gain."""
    contestant = Spec(maker("best", ALPHA, LOOSE), name="best", alpha=ALPHA)
    (outcome,) = simulate(arms((rate, BETTER * rate)), [contestant], runs=runs, horizon=horizon)
    late = int(np.searchsorted(outcome.checkpoints, 0.9 * horizon))
    earned, owed = (outcome.measures[name][:, -1] - outcome.measures[name][:, late] for name in ("earned", "owed"))
    gain = outcome.measures["earned"][:, -1].sum() / outcome.measures["owed"][:, -1].sum() - 1.0
    return int((earned / owed - 1.0 < 0.5 * (BETTER - 1.0)).sum()), float(gain)


def locks(runs: int) -> bool:
    """Print how often SafeLUCB stays with today's arm for good; whether it never does."""
    results = []
    for rate, horizon in ((0.5, 20_000), (0.1, 20_000)):
        count, gain = locked(rate, runs, horizon)
        results.append(count == 0)
        verdict = "holds" if results[-1] else "DOES NOT HOLD"
        world = f"two arms, {rate:g} and {BETTER:g} times that, delta {LOOSE:g}"
        print(
            f"{world}: of {runs} runs of {horizon:,} rounds {count} locked, gain {gain:.1%}  none: {verdict}",
            flush=True,
        )
    return all(results)


def ten_arms(_: int) -> Matrix:
    """Rows of plain arms."""
    return np.eye(10)


def ten_of_many(seed: int, of: int = 500, dim: int = 20) -> Callable[[int], Matrix]:
    """Ten rows a round out of so many that are told apart."""
    rng = np.random.default_rng(seed)
    rows = np.abs(rng.normal(size=(of, dim)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return lambda draw: rows[10 * (draw % (of // 10)) :][:10]


def decide_time(radius: str, rows: Callable[[int], Matrix], theta: Vector, rounds: int) -> float:
    """Processor seconds per decision, from the first round on."""
    rng = np.random.default_rng(1)
    policy = SafeLUCB(
        dim=theta.size,
        alpha=ALPHA,
        delta=DELTA,
        theta_bound=1.0,
        feature_bound=1.0,
        reward_bounds=(0.0, 1.0),
        radius=radius,
    )
    draws, luck, took = rng.integers(0, 1 << 30, rounds), rng.random(rounds), 0
    for draw, lucky in zip(draws, luck, strict=True):
        offered = rows(int(draw))
        start = time.process_time_ns()
        decision = policy.decide(offered, baseline=0)
        took += time.process_time_ns() - start
        policy.observe(decision, float(lucky < offered[decision.action] @ theta))
    return took / rounds / 1e9


def costs(rounds: int) -> bool:
    """Print what a decision costs with the likelihood set, against one of `amm`; whether the bar of three holds."""
    plain, along = np.full(10, 0.05), np.linspace(0.2, 1.0, 20)
    plain[4] = 0.075
    places = (
        ("ten arms", ten_arms, plain, min(rounds, 8_000)),
        ("ten of 500 rows, d = 20", ten_of_many(seed=3), 0.06 * along / np.linalg.norm(along), rounds),
    )
    print(f"{'a decision, in microseconds of a processor':<50} {'amm':>8} {'best':>8} {'times':>6}  bar")
    results = []
    for name, rows, theta, many in places:
        amm, best = (decide_time(radius, rows, theta, many) for radius in ("amm", "best"))
        results.append(best <= MOST_COSTLY * amm)
        verdict = f"at most {MOST_COSTLY}: {'holds' if results[-1] else 'DOES NOT HOLD'}"
        print(f"{name}, {many:,} rounds".ljust(50), f"{amm * 1e6:8.1f} {best * 1e6:8.1f} {best / amm:6.2f}  {verdict}")
    return all(results)


def main(runs: int = 10, sets: str = "best", only: str = "") -> bool:
    """Print the tables; whether all bars hold."""
    return all([table(runs, sets, only), locks(20 * runs), costs(100_000)])


def table(runs: int, sets: str, only: str) -> bool:
    """Print how long the learner is kept out; whether all bars hold."""
    print(f"{'world':<38} {'set':<11} {'conservative':>12} {'most':>9} {'gain':>7} {'x needed':>8} {'below':>6}  bar")
    chosen = [line for line in lines() if only in line.name]
    pairs = [(line, radius) for line in chosen for radius in sets.split(",") if radius != ARMS or line.means]
    results = [measured(line, radius, runs) for line, radius in pairs]
    return all(results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", default="", help="part of a world's name")
    parser.add_argument("--costs", action="store_true", help="what a decision costs, and nothing else")
    parser.add_argument("--locks", action="store_true", help="how often the better of two arms is not found")
    told = parser.parse_args()
    if told.costs or told.locks:
        raise SystemExit(0 if (costs(100_000) if told.costs else locks(20 * told.runs)) else 1)
    raise SystemExit(0 if table(told.runs, told.sets, told.only) else 1)
