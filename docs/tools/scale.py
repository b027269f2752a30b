"""What the figure of docs/scale.md is drawn from: `python -m docs.tools.scale` simulates for minutes, and writes it."""

import csv
from pathlib import Path

import numpy as np
from tests.sharing.fleet import Fleet, simulate_fleet

from surefoot.simulation import PaperWorld, Spec, simulate

TABLE = Path(__file__).parents[1] / "pictures" / "scale.csv"
HORIZON, RUNS, SEED = 20_000, 2, 7
SHARDS, INTERVALS = (1, 3, 10, 30, 100, 300, 1000), (300, 3000)
WORLD, SPEC = PaperWorld(actions=20), Spec("SafeLUCB", alpha=0.1, reward_range=(0.0, 1.0))
COLUMNS = ("shards", "interval", "conservative", "lag", "lease", "hand_ins")


def fleet_of(shards: int, interval: int) -> Fleet:
    """Shards that renew once while so many rounds are decided by all of them, or after each round of their own."""
    return Fleet(shards=shards, every=max(1, interval // shards), clocks=1.0)


def main() -> None:
    """Simulate, and write the table."""
    (alone,) = simulate(WORLD, [SPEC], runs=RUNS, horizon=HORIZON, seed=SEED)
    rows: list[tuple[float, ...]] = [(0, 0, float(alone.measures["baseline_rounds"][:, -1].mean()), 0, 0, 0)]
    for interval in INTERVALS:
        for shards in SHARDS:
            found = simulate_fleet(WORLD, SPEC, fleet_of(shards, interval), horizon=HORIZON, runs=RUNS, seed=SEED)
            assert not any(run.is_below for run in found)
            means = [float(np.mean([getattr(run, name) for run in found])) for name in COLUMNS[2:]]
            rows.append((shards, interval, *(round(mean, 3) for mean in means)))
            print(*rows[-1], flush=True)
    with TABLE.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
