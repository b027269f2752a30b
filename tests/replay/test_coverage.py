"""Every interval that a replay or a fit shows covers what is true, from 0.4% of clicks to 30%, by simulation."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import binom
from threadpoolctl import threadpool_limits

from surefoot.linear.features import Disjoint
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.estimates import Estimate
from surefoot.replay.evaluation import EvaluatorName, replay
from surefoot.replay.log import ContextLog, Log
from surefoot.replay.propensities import Propensities
from surefoot.replay.replayed_policy import IMPORTANCE, REJECTION, Declared, ReplayedPolicy, problem_of
from surefoot.simulation.policy_specs import Spec

LEVEL, PROMISED = 0.95, 0.93
RATES, ROWS, SKEWED = (0.004, 0.02, 0.1, 0.3), (2_000, 10_000, 50_000), (False, True)
SHORT = [(rate, 2_000, skewed, 60) for rate in RATES for skewed in SKEWED]
LONG = [pytest.param(rate, rows, skewed, 200, marks=pytest.mark.long)
        for rate in RATES for skewed in SKEWED for rows in ROWS]  # fmt: skip
THETA = np.array([[1.0, 0.2], [0.8, 0.9], [1.3, -0.4]])
SPEC = Spec("LUCB")


def clicks(rate: float, rows: int, skewed: bool, seed: int) -> tuple[ContextLog, np.ndarray]:
    """A log of three actions and the chance of a click for each of them in every row."""
    rng = np.random.default_rng([93, int(rate * 1e4), rows, skewed, seed])
    contexts = rng.random((rows, 1))
    means = rate * np.hstack([np.ones((rows, 1)), contexts]) @ THETA.T
    odds = np.tile([0.15, 0.25, 0.6] if skewed else [1 / 3] * 3, (rows, 1))
    if skewed:  # by the context, too
        odds = np.where(contexts > 0.5, odds, odds[:, ::-1])
    played = (rng.random((rows, 1)) > np.cumsum(odds, axis=1)).sum(axis=1).clip(0, 2)
    at = np.arange(rows)
    clicked = (rng.random(rows) < means[at, played]).astype(float)
    phi = Disjoint(actions=3, context_dim=1, context_bound=1.0)
    log = ContextLog(
        contexts=contexts, phi=phi, rewards=clicked, actions=played, baselines=0, propensities=odds[at, played]
    )
    return log, means


def decisions(log: Log, declared: Declared, evaluator: str) -> tuple[np.ndarray, np.ndarray]:
    """What the policy chooses in every row, and which rows count; -1 for a row that it is not asked in."""
    chances, mode = Propensities(log, evaluator, False, 0), REJECTION if evaluator == "rejection" else IMPORTANCE
    player = ReplayedPolicy(SPEC, problem_of(declared, log), mode=mode)
    played = [player.play(batch, batch.rewards, chances.usable(chances.of(batch))) for batch in log.batches()]
    return np.concatenate([part.chosen for part in played]), np.concatenate([part.fates for part in played]) > 0


def shown(log: ContextLog, means: np.ndarray) -> Iterator[tuple[str, Estimate, float]]:
    """Every interval with what is true."""
    at, baseline = np.arange(len(means)), float(means[:, 0].mean())
    declared = Declared(noise=0.5, theta_bound=1.0, baseline_reward=baseline, reward_bounds=(0.0, 1.0))
    yield "fit baseline", fit_baseline(log, level=LEVEL, reward_bounds=(0.0, 1.0)).baseline_reward, baseline
    evaluators: tuple[EvaluatorName, ...] = ("rejection", "importance")
    for evaluator in evaluators:
        (found,) = replay(log, [SPEC], declared=declared, evaluator=evaluator, level=LEVEL)
        chosen, counted = decisions(log, declared, evaluator)
        asked = chosen >= 0
        worth = means[at, np.maximum(chosen, 0)]
        truth = {
            "reward": float(worth[counted].mean()),
            "baseline": baseline,
            "gain": float((worth - means[:, 0])[asked].mean()),
        }
        for name, estimates in found.estimates.items():
            for what, estimate in estimates.items():
                if estimate.method != "none":
                    yield f"{name} {what}", estimate, truth[what]


@pytest.mark.parametrize(("rate", "rows", "skewed", "runs"), [*SHORT, *LONG])
def test_every_shown_interval_covers(rate: float, rows: int, skewed: bool, runs: int) -> None:
    hits: Counter[str] = Counter()
    # Products of so few columns are over before other threads wake: on a busy machine they would take most of the time.
    with threadpool_limits(1):
        for seed in range(runs):
            for name, estimate, truth in shown(*clicks(rate, rows, skewed, seed)):
                hits[name] += estimate.low <= truth <= estimate.high
    # By chance alone, an interval that covers as promised falls below this once in 10,000 suites.
    least = binom.ppf(1e-4 / (len(hits) * len(SHORT + LONG)), runs, PROMISED)
    assert min(hits.values()) >= least, dict(hits)
