"""The guard: how soon a learner is let in without any model, beside SafeLUCB with one, and what a decision costs.

Two plain arms with rewards 0 or 1. A guard's baseline rounds count coins averaged. SafeLUCB is told that means lie in
[0, 1], and stands with the better of its radii `amm` and `residual` in each case.
"""

import time

import numpy as np

import surefoot
from surefoot.simulation import simulate_guard

ROUNDS, RUNS, SAFE_RUNS = 20_000, 400, 4
DELTA = 0.05
RADII: tuple[str, ...] = ("amm", "residual")
BARS = {(0.1, 0.3, 1 / 3): 2_000.0, (0.1, 0.3, 0.0): 6_200.0, (0.1, 0.02, 0.2): 15_000.0}
MICROSECONDS = 20.0


def power() -> bool:
    """Baseline rounds of 20,000, and from when on the share was 0.5 and 0.9, at every alpha, mean and lift."""
    print(f"{'alpha':>5} {'baseline':>8} {'lift':>5} {'p >= 0.5':>9} {'p >= 0.9':>9} {'guard':>7} {'SafeLUCB':>8}  bar")
    cases = [(alpha, mean, lift) for alpha in (0.05, 0.1, 0.2) for mean in (0.3, 0.02) for lift in (0.0, 0.1, 0.3)]
    held = [_case(*case) for case in sorted({*cases, *BARS})]
    return all(held)


def _case(alpha: float, mean: float, lift: float) -> bool:
    guard, learner = surefoot.Guard(alpha=alpha, delta=DELTA), mean * (1 + lift)
    found = simulate_guard(guard, lambda t, share, rng: (learner, mean), rounds=ROUNDS, runs=RUNS, seed=1)
    rounds = float(found.baseline_rounds.mean())
    half, most = (_shown(np.median(found.kept_from[level])) for level in (0.5, 0.9))
    bar = BARS.get((alpha, mean, lift))
    verdict = "" if bar is None else f"{bar:>7.0f}  {'holds' if rounds <= bar else 'DOES NOT HOLD'}"
    safe = min(
        np.mean([safe_rounds(alpha, learner, mean, radius, seed) for seed in range(SAFE_RUNS)]) for radius in RADII
    )
    print(f"{alpha:>5} {mean:>8} {lift:>5.0%} {half:>9} {most:>9} {rounds:>7.0f} {safe:>9.0f} {verdict}")
    return bar is None or rounds <= bar


def _shown(rounds: float) -> str:
    return "-" if rounds >= ROUNDS else f"{rounds:.0f}"


def safe_rounds(alpha: float, learner: float, baseline: float, radius: str, seed: int) -> int:
    """Baseline rounds of SafeLUCB on the same two arms."""
    policy = surefoot.SafeLUCB(
        dim=2,
        alpha=alpha,
        delta=DELTA,
        noise=0.5,
        theta_bound=1.5,
        feature_bound=1.0,
        reward_range=(0.0, 1.0),
        radius=radius,
    )
    rows, means, rng = np.eye(2), (baseline, learner), np.random.default_rng(seed)
    played = 0
    for draw in rng.random(ROUNDS):
        decision = policy.decide(rows, baseline=0)
        policy.observe(decision, float(draw < means[decision.action]))
        played += decision.source == "baseline"
    return played


def cost() -> bool:
    """Microseconds of decide and observe together, in CPU time, with system randomness; the least of five turns."""
    guard = surefoot.Guard(alpha=0.1, delta=DELTA)
    rewards = (np.random.default_rng(0).random(4_000) < 0.3).astype(float).tolist()
    turns = []
    for _ in range(6):
        start = time.process_time()
        for reward in rewards:
            guard.observe(guard.decide(baseline="today", proposal="new"), reward)
        turns.append((time.process_time() - start) / len(rewards) * 1e6)
    least = min(turns[1:])
    verdict = "holds" if least < MICROSECONDS else "DOES NOT HOLD"
    print(f"decide + observe of a guard: {least:.1f} microseconds (bar {MICROSECONDS:g}): {verdict}")
    return least < MICROSECONDS


def main() -> bool:
    """Print everything; true where every bar holds."""
    return all([power(), cost()])
