"""`plan`: the worlds it draws, the answers it gives."""

import json
import math

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.simulation.plan import PlanWorld, plan

COMMON = {"dim": 3, "actions": 8, "noise": 0.1, "baseline_reward": 0.4, "gain": 0.25, "per_day": 300.0}


def test_planned_worlds_have_the_baseline_and_the_gain_asked_for() -> None:
    world = PlanWorld(dim=3, actions=8, baseline_reward=0.4, gain=0.25)
    for realisation in world.realisations(0, range(50)):
        block = realisation.take(1)
        assert block.baselines[0] == 0
        assert block.means[0, 0] == pytest.approx(0.4)
        assert block.means[0].max() == pytest.approx(0.5)
        assert block.means[0].min() >= 0
        assert np.linalg.norm(block.features[0], axis=1).max() <= realisation.feature_bound * (1 + 1e-12)
        assert np.linalg.norm(realisation.theta) <= realisation.theta_bound * (1 + 1e-12)


@pytest.mark.parametrize("known", [True, False])
def test_a_larger_alpha_frees_the_learner_sooner_and_gains_more(known: bool) -> None:
    found = plan(**COMMON, alphas=[0.05, 0.4], days=20, runs=30, known=known)  # type: ignore[arg-type]
    careful, bold = found.answers
    assert bold.free_round < careful.free_round
    assert bold.free_day == pytest.approx(bold.free_round / 300)
    assert bold.gained > careful.gained
    assert careful.violations == bold.violations == 0
    for answer in found.answers:
        assert answer.worst_seen_share <= answer.alpha == answer.at_stake_share
        assert answer.baseline_rounds <= answer.bound_rounds
        assert 0 < answer.gained_share < 0.25


def test_a_learner_that_is_not_free_in_time_is_said_to_be_so() -> None:
    found = plan(**{**COMMON, "noise": 2.0}, alphas=[0.01], days=1, runs=5)  # type: ignore[arg-type]
    (answer,) = found.answers
    assert answer.free_share == 0.0
    assert math.isinf(answer.free_round)
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert data["answers"][0]["free_round"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"per_day": 0.0}, "`per_day > 0` must hold"),
        ({"gain": -0.1}, "`gain > 0` must hold"),
        ({"baseline_reward": 0.0}, "`baseline_reward > 0` must hold"),
        ({"alphas": []}, "`alphas` must hold at least one alpha"),
        ({"alphas": [1.5]}, "`0 < alpha < 1` must hold"),
        ({"runs": 1}, "`runs` must be a whole number >= 2"),
        ({"dim": 1}, "`dim` must be a whole number >= 2"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(**{**COMMON, "alphas": [0.1], **change})  # type: ignore[arg-type]
