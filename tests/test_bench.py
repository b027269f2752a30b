"""The plain versions that speed is measured against decide as surefoot does: else the ratio would mean nothing."""

from typing import Any

import numpy as np
import pytest
from bench.plain import CachedCLUCB, PlainCLUCB, TextbookCLUCB, settings

import surefoot


@pytest.mark.parametrize("kind", [PlainCLUCB, TextbookCLUCB, CachedCLUCB])
@pytest.mark.parametrize(("alpha", "ridge"), [(0.9, 0.3), (0.1, 2.5)])
def test_a_plain_version_plays_the_same_actions(kind: Any, alpha: float, ridge: float) -> None:
    rng = np.random.default_rng(3)
    fixed, theta = np.abs(rng.normal(size=(12, 5))), np.full(5, 0.4)
    bound = 1.5 * float(np.linalg.norm(fixed, axis=1).max())
    told = settings(5, bound) | {"alpha": alpha, "ridge": ridge, "noise": 0.05}
    ours, plain = surefoot.CLUCB(**told), kind(fixed, **told) if kind is CachedCLUCB else kind(**told)
    # Before anything is learned surefoot knows the smaller ball.
    ours.warm_start(fixed[:1], [0.5])
    plain.observe(fixed[0], True, 0.5)
    learner = 0
    for draw in rng.normal(size=300):
        rows = fixed if kind is CachedCLUCB else fixed * rng.uniform(0.5, 1.5)
        means = rows @ theta
        decision = ours.decide(rows, baseline=3, baseline_reward=float(means[3]))
        action, is_learner = plain.decide(rows, 3, float(means[3]))
        assert (decision.action, decision.source == "learner") == (action, is_learner)
        reward = float(means[action] + 0.05 * draw)
        ours.observe(decision, reward)
        plain.observe(rows[action], is_learner, reward)
        learner += is_learner
    assert 100 < learner < 300
