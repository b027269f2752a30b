"""A table that anyone can check by hand: in it, every claim of Section 5 holds, and SafeLUCB is ten times faster."""

import polars as pl

from surefoot.paper.section5 import SAFE

ROUNDS = (1, 2, 5, 10, 50, 100, 500, 1_000, 2_000, 4_000)
ALPHAS = (0.1, 0.4, 0.8)
LEVEL = 0.3  # what a round of the baseline costs
PHASES = {"CLUCB": 20, "CLUCB2": 30, SAFE: 3}


def made_table(
    world: str = "paper/normalized", *, rounds: tuple[int, ...] = ROUNDS, others: bool = True, safe: bool = False
) -> pl.DataFrame:
    """LUCB misses 10 t / (t + 9); CLUCB plays the baseline for 20 / alpha rounds, then does as LUCB did.

    CLUCB2 needs 30 / alpha rounds, SafeLUCB 3 / alpha, and none at all with alpha 0.8.
    """
    rows: list[dict[str, object]] = []
    policies = [("LUCB", None), *(("CLUCB", a) for a in ALPHAS), *(("CLUCB2", a) for a in ALPHAS if others)]
    policies += [(SAFE, a) for a in ALPHAS if safe]
    for policy, alpha in policies:
        phase = 0.0 if alpha is None or (policy, alpha) == (SAFE, 0.8) else PHASES[policy] / alpha
        for t in rounds:
            waited, learned = min(t, phase), max(0.0, t - phase)
            regret = waited * LEVEL + 10 * learned / (learned + 9)
            head = {
                "world": world,
                "policy": policy,
                "alpha": alpha,
                "runs": 10 if policy == SAFE else 30,
                "horizon": rounds[-1],
                "round": t,
            }
            rows.append(head | _row("regret", None, regret, t * 1e-3))
            rows.append(head | _row("regret_per_round", None, regret / t, 1e-3))
            rows.append(head | _row("baseline_rounds", None, waited, 1.0))
            rows.append(head | _row("baseline_share", None, waited / t, 1.0 / t))
            for watched in ALPHAS if alpha is None else (alpha,):
                share, error = (0.05 * (1 - watched), 1e-3) if alpha is None else (0.0, 0.0)
                rows.append(head | _row("violated_share", watched, share, error))
    return pl.DataFrame(rows, schema_overrides={"alpha": pl.Float64, "watched": pl.Float64})


def changed(table: pl.DataFrame, policy: str, measure: str, mean: pl.Expr) -> pl.DataFrame:
    """The same table with other means for one policy and measure."""
    chosen = (pl.col("policy") == policy) & (pl.col("measure") == measure)
    return table.with_columns(mean=pl.when(chosen).then(mean).otherwise(pl.col("mean")))


def _row(measure: str, watched: float | None, mean: float, stderr: float) -> dict[str, object]:
    spread = dict.fromkeys(("q05", "q25", "q50", "q75", "q95"), mean)
    return {"measure": measure, "watched": watched, "mean": mean, "stderr": stderr, **spread}
