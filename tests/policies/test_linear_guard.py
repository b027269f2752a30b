"""A guard that also believes a linear model: quicker where the model is true, with proofs of either kind."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import surefoot
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.policies import LinearGuard
from surefoot.policies.linear_guard import MODEL

ROWS = np.eye(2)


def model(**more: Any) -> surefoot.SafeLUCB:
    told = {"dim": 2, "alpha": 0.1, "delta": 0.1, "noise": 0.5, "theta_bound": 1.5, "feature_bound": 1.0}
    return surefoot.SafeLUCB(**{**told, **more})


def play(guard: surefoot.Guard, rounds: int, seed: int, theta: Any, rows: Any = ROWS) -> tuple[float, list[Any]]:
    rng, slack, worst, decisions = np.random.default_rng(seed), 0.0, 0.0, []
    means = np.asarray(rows) @ np.asarray(theta)
    for _ in range(rounds):
        decision = guard.decide(baseline=rows[0], proposal=rows[1])
        slack += decision.share * (means[1] - means[0]) + 0.1 * means[0]
        worst = min(worst, slack)
        guard.observe(decision, float(rng.random() < means[int(decision.source == "learner")]))
        decisions.append(decision)
    return worst, decisions


def test_the_model_opens_sooner_than_the_bank_and_every_proof_holds() -> None:
    rows = np.array([[0.8, 0.1], [0.9, 0.2]])
    linear = LinearGuard(also=model(feature_bound=1.0), alpha=0.1, delta=0.2, seed=1)
    plain = surefoot.Guard(alpha=0.1, delta=0.2, seed=1)
    worst, decisions = play(linear, 1500, 1, [0.6, 0.3], rows)
    assert worst >= 0.0
    for decision in decisions:
        surefoot.check(decision.certificate.proof)
    by_model = [decision for decision in decisions if decision.certificate.binds == MODEL]
    assert len(by_model) > 100
    assert "if everything that the linear model declares is true" in by_model[0].certificate.explain()
    _, unaided = play(plain, 1500, 1, [0.6, 0.3], rows)
    assert sum(1.0 - d.share for d in decisions) < 0.8 * sum(1.0 - d.share for d in unaided)


@pytest.mark.parametrize("theta", [(0.5, 0.3), (0.3, 0.5), (0.6, 0.0)])
def test_the_floor_holds_where_the_model_is_true(theta: tuple[float, float]) -> None:
    runs = 40
    broken = sum(
        play(LinearGuard(also=model(), alpha=0.1, delta=0.2, seed=seed), 300, seed, theta)[0] < -1e-9
        for seed in range(runs)
    )
    assert broken <= int(binom.ppf(1 - 1e-4, runs, 0.2))


def test_state_and_pickle_continue_to_the_bit() -> None:
    guard = LinearGuard(also=model(), alpha=0.1, delta=0.2, seed=3)
    play(guard, 60, 3, (0.4, 0.5))
    pending = [guard.decide(baseline=ROWS[0], proposal=ROWS[1]) for _ in range(3)]
    guard.observe(pending[1], 1.0)
    twin = copy.deepcopy(guard)
    for other in (pickle.loads(pickle.dumps(guard)), LinearGuard.from_state(guard.state())):
        again = copy.deepcopy(twin)
        for one in (other, again):
            one.observe(pending[0].round, 0.0)
            one.abandon(pending[2].round)
            play(one, 40, 4, (0.4, 0.5))
        assert (other._question == again._question).all()
        assert (other.state()["banks"] == again.state()["banks"]).all()
        assert other._model.ridge.count == again._model.ridge.count


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most half of delta"):
        LinearGuard(also=model(), alpha=0.1, delta=0.1)
    with pytest.raises(ConfigError, match="one metric and no units"):
        LinearGuard(also=model(), alpha=0.1, delta=0.2, unit_window=3)
    guard = LinearGuard(also=model(), alpha=0.1, delta=0.2)
    with pytest.raises(InputError, match="dim=2"):
        guard.decide(baseline=[1.0], proposal=[0.0])
    with pytest.raises(AssumptionError, match="was declared"):
        guard.decide(baseline=[3.0, 0.0], proposal=[0.0, 1.0])
    assert guard.rounds == 0
    with pytest.raises(ConfigError, match="plain Guard"):
        surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", guard)
