"""Section 5's claims at moderate scale, seeded; thresholds are computed from the runs' own errors."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, norm

from surefoot.paper.section5 import ALPHAS
from surefoot.simulation.engine import Outcome, simulate
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.worlds import Instance, PaperWorld

RUNS, HORIZON = 100, 6_000
SIGMAS = float(norm.isf(1e-6))  # a comparison fails by chance once in a million


@cache
def outcomes(instance: Instance) -> dict[str, Outcome]:
    specs = [Spec("LUCB"), *(Spec("CLUCB", alpha=alpha) for alpha in ALPHAS)]
    found = simulate(PaperWorld(instance=instance), specs, runs=RUNS, horizon=HORIZON, seed=2024, watched=ALPHAS)
    return {outcome.spec.label: outcome for outcome in found}


def clucb(instance: Instance, alpha: float) -> Outcome:
    return outcomes(instance)[f"CLUCB, α = {alpha:g}"]


def gap_is_positive(values: np.ndarray) -> bool:
    """Whether the mean of paired differences is above zero beyond chance."""
    return bool(values.mean() > SIGMAS * values.std(ddof=1) / np.sqrt(len(values)))


BOTH = pytest.mark.parametrize("instance", ["as-written", "normalized"])


@BOTH
def test_clucb_starts_flat_at_the_baselines_regret(instance: Instance) -> None:
    for alpha in ALPHAS:
        found = clucb(instance, alpha)
        regret = found.measures["regret"] / found.checkpoints
        alone = found.measures["baseline_rounds"] == found.checkpoints
        assert alone[:, 0].all(), "the first round is always the baseline's"
        flat = np.where(alone, regret - regret[:, :1], 0.0)
        assert np.abs(flat).max() < 1e-9


@BOTH
def test_the_conservative_phase_is_shorter_for_a_larger_alpha(instance: Instance) -> None:
    rounds = [clucb(instance, alpha).measures["baseline_rounds"][:, -1] for alpha in ALPHAS]
    for smaller, larger in pairwise(rounds):
        assert gap_is_positive(smaller - larger) or (smaller.min() > 0.97 * HORIZON)  # not ended within the horizon


@BOTH
def test_clucb_never_violates(instance: Instance) -> None:
    """At most as many runs with any violation as delta = 0.001 allows; none is what is seen."""
    for alpha in ALPHAS:
        found = clucb(instance, alpha)
        violated = found.violations[:, -1, found.watched.index(alpha)] > 0
        assert violated.sum() <= binom.isf(1e-6, RUNS, 0.001)


@BOTH
def test_lucb_violates_most_where_alpha_is_smallest(instance: Instance) -> None:
    found = outcomes(instance)["LUCB"]
    at = int(np.flatnonzero(found.checkpoints == 1_000)[0])
    shares = found.violations[:, at] / 1_000
    assert gap_is_positive(shares[:, 0])
    assert gap_is_positive(shares[:, 0] - shares[:, -1])
    assert (np.diff(shares.mean(axis=0)) <= 0).all()


@BOTH
def test_the_gap_to_lucb_at_the_horizon_shrinks_with_alpha(instance: Instance) -> None:
    base = outcomes(instance)["LUCB"].measures["regret"][:, -1]
    gaps = [clucb(instance, alpha).measures["regret"][:, -1] - base for alpha in ALPHAS]
    assert gap_is_positive(gaps[0] - gaps[-1])
    means = [gap.mean() for gap in gaps]
    errors = [gap.std(ddof=1) / np.sqrt(RUNS) for gap in gaps]
    for i in range(len(gaps) - 1):
        assert means[i + 1] <= means[i] + SIGMAS * np.hypot(errors[i], errors[i + 1])
