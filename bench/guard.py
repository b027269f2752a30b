"""The guard: how many rounds the baseline keeps, beside the limit and beside SafeLUCB, and what a decision costs.

Rewards are 0 or 1, or take two values of a smaller deviation. A guard's baseline rounds count coins averaged. SafeLUCB
is told that means lie in [0, 1], and stands with the better of its radii `amm` and `residual` in each case.
`python -m bench.guard --adversary MINUTES` searches for the world that does a guard most harm, `--worthless` tells what
learners cost that are no good, and `--curves FILE` writes what the picture in docs/guard.md is drawn from.
"""

import argparse
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import surefoot
from surefoot.arrays import Vector
from surefoot.simulation import GuardOutcome, simulate_guard
from surefoot.theory import guard_limit

ROUNDS, RUNS, SAFE_RUNS = 20_000, 400, 4
SEED = 2026  # of no run by which the ramp was chosen
DELTA = 0.05
RADII: tuple[str, ...] = ("amm", "residual")
MICROSECONDS = 5.0


@dataclass(frozen=True)
class Case:
    """A world that stays as it is, and the most rounds that the baseline may keep of 20,000."""

    learner: float
    baseline: float
    bar: float
    alpha: float = 0.1
    delta: float = DELTA
    deviation: float | None = None


CASES = (
    Case(0.4, 0.3, 1_270),
    Case(0.3, 0.3, 5_350),
    Case(0.024, 0.02, 13_900),
    Case(0.33, 0.3, 2_900),
    Case(0.3, 0.3, 11_400, alpha=0.05),
    Case(0.5, 0.5, 760, deviation=0.1),
    Case(0.895, 0.9, 2_400, alpha=0.02, delta=0.01, deviation=0.1),
)


def bars() -> bool:
    """Baseline rounds beside the computed limit, and beside what twelve rates would need that knew the means."""
    print(f"{'learner':>7} {'baseline':>8} {'deviation':>9} {'alpha':>5} {'delta':>5} ", end="")
    print(f"{'proved':>6} {'limit':>6} {'known':>6} {'guard':>6} {'+-':>4} {'bar':>6}")
    held = [_held(case) for case in CASES]
    return all(held)


def _held(case: Case) -> bool:
    guard = surefoot.Guard(alpha=case.alpha, delta=case.delta)
    means = case.learner, case.baseline
    found = simulate_guard(
        guard, lambda t, share, rng: means, rounds=ROUNDS, runs=RUNS, seed=SEED, deviation=case.deviation
    )
    limit, known = (
        guard_limit(
            learner=case.learner,
            baseline=case.baseline,
            alpha=case.alpha,
            delta=case.delta,
            rounds=ROUNDS,
            deviation=case.deviation,
            rates=rates,
        )
        for rates in (1, 12)
    )
    mean, error = float(found.baseline_rounds.mean()), float(found.baseline_rounds.std() / RUNS**0.5)
    told = f"{case.learner:>7} {case.baseline:>8} {case.deviation or '-':>9} {case.alpha:>5} {case.delta:>5}"
    print(f"{told} {limit.proved:>6.0f} {limit.computed:>6.0f} {known.computed:>6.0f} {mean:>6.0f}", end="")
    print(f" {error:>4.0f} {case.bar:>6.0f}  {'holds' if mean <= case.bar else 'DOES NOT HOLD'}")
    return mean <= case.bar


def power() -> None:
    """Baseline rounds of 20,000, and from when on the share was a half and nine tenths, at every alpha and lift."""
    print(f"{'alpha':>5} {'baseline':>8} {'lift':>5} {'p >= 0.5':>9} {'p >= 0.9':>9} {'guard':>7} {'SafeLUCB':>8}")
    for alpha in (0.01, 0.02, 0.05, 0.1, 0.2):
        for mean in (0.3, 0.02):
            for lift in (0.0, 0.1, 0.3):
                _case(alpha, mean, lift)


def _case(alpha: float, mean: float, lift: float) -> None:
    guard, learner = surefoot.Guard(alpha=alpha, delta=DELTA), mean * (1 + lift)
    found = simulate_guard(guard, lambda t, share, rng: (learner, mean), rounds=ROUNDS, runs=RUNS, seed=SEED)
    half, most = (_shown(np.median(found.kept_from[level])) for level in (0.5, 0.9))
    safe = min(
        np.mean([safe_rounds(alpha, learner, mean, radius, seed) for seed in range(SAFE_RUNS)]) for radius in RADII
    )
    kept = float(found.baseline_rounds.mean())
    print(f"{alpha:>5} {mean:>8} {lift:>5.0%} {half:>9} {most:>9} {kept:>7.0f} {safe:>9.0f}")


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


@dataclass(frozen=True)
class HarmfulWorld:
    """Phases of equal length, whose means change with the phase, and within one where the share reaches a level."""

    guard: dict[str, Any] = field(
        default_factory=lambda: {"alpha": 0.1, "goal": "earn", "ramp": "auto", "promise": "mean", "kind": "floor"}
    )
    delay: int = 0
    phases: Vector = field(default_factory=lambda: np.full((4, 6), 0.5))  # level, two pairs of means, agreement
    rounds: int = 1_000

    def mutated(self, rng: np.random.Generator) -> "HarmfulWorld":
        """A world near this one."""
        guard = dict(self.guard)
        choices = {
            "alpha": (0.02, 0.1, 0.3),
            "goal": ("earn", "save"),
            "ramp": ("auto", "gate"),
            "promise": ("mean", "played"),
            "kind": ("floor", "ceiling"),
        }
        if rng.random() < 0.3:
            name = str(rng.choice(list(choices)))
            guard[name] = choices[name][rng.integers(len(choices[name]))]
        moved = rng.random(self.phases.shape) < 0.3
        drawn = np.where(
            rng.random(self.phases.shape) < 0.3, rng.integers(2, size=self.phases.shape), rng.random(self.phases.shape)
        )
        near = np.where(rng.random() < 0.5, drawn, self.phases + 0.1 * rng.normal(size=self.phases.shape))
        delay = int(rng.choice([0, 0, 7, 50])) if rng.random() < 0.2 else self.delay
        return replace(self, guard=guard, delay=delay, phases=np.where(moved, np.clip(near, 0.0, 1.0), self.phases))

    def means(self, t: int, share: Vector, rng: np.random.Generator) -> tuple[Vector, Vector, Any]:
        """Of this round; it may look at the share, not at the coin."""
        level, *means, agreement = self.phases[t * len(self.phases) // self.rounds]
        is_high = share >= level
        learner, baseline = (np.where(is_high, high, low) for high, low in zip(means[:2], means[2:], strict=True))
        return learner, baseline, rng.random(share.size) < 0.9 * agreement

    def played(self, runs: int, seed: int, delta: float) -> GuardOutcome:
        """What becomes of a guard in it."""
        settings = dict(self.guard)
        kind, alpha = settings.pop("kind"), settings.pop("alpha")
        promise = surefoot.floor if kind == "floor" else surefoot.ceiling
        guard = surefoot.Guard(delta=delta, metrics={"reward": promise(0, 1, alpha=alpha)}, **settings)
        return simulate_guard(guard, self.means, rounds=self.rounds, runs=runs, seed=seed, delay=self.delay)


def adversary(minutes: float, *, delta: float = 0.2, runs: int = 200) -> bool:
    """Worlds that evolve to have banks hold more than was earned; the worst are played again on a fresh seed."""
    rng, start, worlds = np.random.default_rng(SEED), time.monotonic(), 0
    best = luckiest = HarmfulWorld()
    harm, most = (0, -np.inf), -1
    while time.monotonic() - start < 60 * minutes:
        draw = rng.random()  # luck fades: now and then the best is played again, or all begins anew
        world = best if draw < 0.2 else best.mutated(rng) if draw < 0.97 else HarmfulWorld().mutated(rng)
        outcome, worlds = world.played(runs, int(rng.integers(2**32)), delta), worlds + 1
        done = outcome.overclaimed, float(np.quantile(outcome.overclaim, 1.0 - delta))
        if world is best or done >= harm:
            best, harm = world, done
        if outcome.overclaimed > most:
            luckiest, most = world, outcome.overclaimed
    print(f"delta {delta}, {worlds:,} worlds, {worlds * runs * best.rounds:,} rounds: ", end="")
    print(f"at most {most} of {runs} banks above the truth")
    again = [(world, world.played(20 * runs, SEED, delta)) for world in (best, luckiest)]
    for world, outcome in again:
        print(f"again: {outcome.overclaimed} of {20 * runs} above the truth, {outcome.broken} below the floor; {world}")
    return all(max(one.overclaimed, one.broken) <= 20 * runs * delta for _, one in again)


def worthless() -> None:
    """What a learner costs that earns nothing, or only less than 0.3, from the start or from round 10,000 on."""
    for goal in ("earn", "save"):
        for before, after in ((0.0, 0.0), (0.15, 0.15), (0.24, 0.24), (0.27, 0.27), (0.4, 0.24), (0.4, 0.0)):
            guard, learner = surefoot.Guard(alpha=0.1, delta=DELTA, goal=goal), np.full(5 * ROUNDS, after)
            learner[: ROUNDS // 2] = before
            found = simulate_guard(
                guard,
                lambda t, share, rng: (learner[t], 0.3),  # noqa: B023
                rounds=learner.size,
                runs=50,
                seed=SEED,
            )
            lost = np.cumsum(found.shares * (0.3 - learner)) / (0.3 * np.arange(1, learner.size + 1))
            print(f"{goal}, {before}, then {after}: costs {lost[ROUNDS - 1]:.1%} of {ROUNDS:,} rounds, ", end="")
            print(
                f"{lost[-1]:.1%} of {learner.size:,}, the last at {found.shares[-1]:.1%}; below in {found.broken} runs"
            )


def canary(learner: float, baseline: float, runs: int, rng: np.random.Generator) -> Vector:
    """Mean shares: a tenth for 2,000 rounds; then all, unless the learner is seen to be worse."""
    is_learner = rng.random((2_000, runs)) < 0.1
    rewards = rng.random((2_000, runs)) < np.where(is_learner, learner, baseline)
    of_learner, of_baseline = ((rewards * side).sum(axis=0) / side.sum(axis=0) for side in (is_learner, ~is_learner))
    variance = of_learner * (1 - of_learner) / is_learner.sum(axis=0)
    variance += of_baseline * (1 - of_baseline) / (~is_learner).sum(axis=0)
    is_in = of_learner - of_baseline > -1.64 * np.sqrt(variance)
    return np.repeat([0.1, float(is_in.mean())], [2_000, ROUNDS - 2_000])


def reactive(learner: float, baseline: float, runs: int, rng: np.random.Generator) -> Vector:
    """Mean shares of a learner that acts until 200 rounds together are below the floor, and again 1,000 later."""
    shares, until = np.empty(ROUNDS), np.zeros(runs)
    for start in range(0, ROUNDS, 200):
        is_in = start >= until
        shares[start : start + 200] = is_in.mean()
        bad = rng.binomial(200, np.where(is_in, learner, baseline)) < 200 * 0.9 * baseline
        until = np.where(is_in & bad, start + 1_200, until)
    return shares


def curves(file: Path) -> None:
    """Baseline rounds so far, and what was earned of the baseline's, of rollouts in worlds that stay as they are."""
    times, rows = np.unique(np.geomspace(10, ROUNDS, 60).astype(int)), ["learner,rollout,round,kept,earned"]
    for learner, baseline in ((0.4, 0.3), (0.3, 0.3), (0.24, 0.3)):
        means = learner, baseline
        drawn = dict[str, Vector]()
        for name, goal in (
            (("guard", "earn"), ("guard, to save", "save")) if learner < baseline else (("guard", "earn"),)
        ):
            guard = surefoot.Guard(alpha=0.1, delta=DELTA, goal=goal)  # type: ignore[arg-type]
            drawn[name] = simulate_guard(
                guard,
                lambda t, share, rng: means,  # noqa: B023
                rounds=ROUNDS,
                runs=RUNS,
                seed=SEED,
            ).shares
        for rollout in (canary, reactive):
            drawn[rollout.__name__] = rollout(learner, baseline, RUNS, np.random.default_rng(SEED))
        for name, mean in drawn.items():
            kept = np.cumsum(1.0 - mean)[times - 1]
            earned = (np.cumsum(baseline + mean * (learner - baseline)) / (baseline * np.arange(1, ROUNDS + 1)))[
                times - 1
            ]
            rows += [f"{learner},{name},{t},{k:.1f},{e:.4f}" for t, k, e in zip(times, kept, earned, strict=True)]
        for name, rates in (("limit", 1), ("limit of its bets", 12)) if learner >= baseline else ():
            told = guard_limit(learner=learner, baseline=baseline, alpha=0.1, delta=DELTA, rounds=ROUNDS, rates=rates)
            kept = np.interp(times, told.times, told.kept)
            rows += [f"{learner},{name},{t},{k:.1f}," for t, k in zip(times, kept, strict=True)]
    file.write_text("\n".join(rows) + "\n")


def main() -> bool:
    """Print everything; true where every bar holds."""
    held = [bars(), cost()]
    power()
    return all(held)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adversary", type=float, metavar="MINUTES")
    parser.add_argument("--worthless", action="store_true")
    parser.add_argument("--curves", type=Path)
    asked = parser.parse_args()
    if asked.adversary:
        adversary(asked.adversary)
    elif asked.worthless:
        worthless()
    elif asked.curves:
        curves(asked.curves)
    else:
        main()
