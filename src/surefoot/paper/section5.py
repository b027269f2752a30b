"""Section 5 of the paper as a sweep.

The sweep has LUCB, CLUCB over the alpha grid, and CLUCB2, which the paper never simulated. Beside them SafeLUCB, which
the paper does not have, each variant to be held against the paper's policy that knows as much of the baseline.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.sweep import Part, Sweep
from surefoot.simulation.worlds import Instance, PaperWorld

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # the published grid is unknown; this one is ours
INSTANCES: tuple[Instance, ...] = ("as-written", "normalized")
FLOOR_SHARE = 0.5  # CLUCB2 and SafeLUCB are told that the baseline earns at least half of what it does
SAFE = "SafeLUCB"
SAFE_RANGE = "SafeLUCB, means in [0, 1]"
SAFE_KNOWN = "SafeLUCB, means in [0, 1], known baseline"
EXACT_ALPHAS = (0.2, 0.8)


@dataclass(frozen=True)
class Scale:
    """How much is run. Exact nesting costs milliseconds a round and is run at a scale of its own."""

    runs: int = 1_000
    horizon: int = 40_000
    exact_runs: int = 10
    exact_horizon: int = 300


FULL = Scale()
QUICK = Scale(runs=20, horizon=4_000, exact_runs=2, exact_horizon=60)


def safe_specs(alpha: float, instance: Instance) -> list[Spec]:
    """SafeLUCB and, where every mean lies in [0, 1], what it does once it is told so."""
    plain = Spec("SafeLUCB", alpha=alpha, floor_share=FLOOR_SHARE, name=SAFE)
    if instance != "normalized":
        return [plain]
    ranged = replace(plain, reward_range=(0.0, 1.0), name=SAFE_RANGE)
    return [plain, ranged, replace(ranged, knows_baseline=True, name=SAFE_KNOWN)]


def rivals(sweep: Sweep) -> dict[str, str]:
    """For every SafeLUCB of a sweep, as the table calls it, the paper's policy that knows as much of the baseline."""
    safe = [spec for part in sweep.parts for spec in part.specs if spec.policy == "SafeLUCB"]
    return {spec.name: "CLUCB" if spec.knows_baseline else "CLUCB2" for spec in safe}


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
        specs += [spec for alpha in alphas for spec in safe_specs(alpha, instance)]
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
