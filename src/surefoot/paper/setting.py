"""Section 5 of the paper as a sweep: LUCB, CLUCB over the alpha grid, and CLUCB2, which the paper never simulated."""

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.simulation.environments import Instance, PaperWorld
from surefoot.simulation.specs import Spec
from surefoot.simulation.sweep import Part, Sweep

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # the published grid is unknown; this one is ours
INSTANCES: tuple[Instance, ...] = ("as-written", "normalized")
FLOOR_SHARE = 0.5  # CLUCB2 is told that the baseline earns at least half of what it does
EXACT_ALPHAS = (0.2, 0.8)


@dataclass(frozen=True)
class Scale:
    """How much is run; exact nesting costs milliseconds a round and is run at a scale of its own."""

    runs: int = 1_000
    horizon: int = 40_000
    exact_runs: int = 10
    exact_horizon: int = 300


FULL = Scale()
QUICK = Scale(runs=20, horizon=4_000, exact_runs=2, exact_horizon=60)


def paper_sweep(
    scale: Scale, *, alphas: Sequence[float] = ALPHAS, seed: int = 0, instances: Sequence[Instance] = INSTANCES
) -> Sweep:
    """Everything that `surefoot reproduce` runs."""
    parts: list[Part] = []
    for instance in instances:
        world = PaperWorld(instance=instance)
        specs = [Spec("LUCB")]
        specs += [Spec("CLUCB", alpha=alpha) for alpha in alphas]
        specs += [Spec("CLUCB2", alpha=alpha, floor_share=FLOOR_SHARE) for alpha in alphas]
        parts.append(
            Part(f"paper/{instance}", world, specs, runs=scale.runs, horizon=scale.horizon, seed=seed, watched=alphas)
        )
        small = [
            Spec(name, alpha=alpha, floor_share=FLOOR_SHARE)
            for alpha in EXACT_ALPHAS
            for name in ("CLUCB2", "CLUCB2-exact")
        ]
        exact = Part(f"exact/{instance}", world, small, runs=scale.exact_runs, horizon=scale.exact_horizon, seed=seed)
        parts.insert(0, exact)  # first: its rounds take milliseconds each, beside which the others run
    return Sweep(parts, title="Conservative Contextual Linear Bandits, Section 5")
