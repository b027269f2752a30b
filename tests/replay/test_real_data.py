"""Real data that others collected: floors hold, gains are there, and each missing package is a skip that names it."""

import importlib.util
from collections.abc import Callable

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.replay import datasets
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.evaluation import replay
from surefoot.replay.log import ContextLog, ratings
from surefoot.replay.replayed_policy import PLAYABLE, Declared
from surefoot.simulation.policy_specs import Spec


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"the package {package} is not installed")


def specs(alpha: float) -> list[Spec]:
    return [Spec(name, alpha=None if name == "LUCB" else alpha) for name in PLAYABLE]


@needs("lifelines")
def test_actg175_is_the_trial_and_one_pass_of_it_keeps_every_floor() -> None:
    log = datasets.actg175()
    assert (log.rows, len(log.actions), log.propensity_range) == (2_139, 4, (0.25, 0.25))
    fit = fit_baseline(log)
    assert fit.actions == dict(zip(datasets.ARMS, (532, 522, 524, 561), strict=True))
    free, *kept = replay(log.shuffled(0), specs(0.2), declared=fit.declared)
    assert abs(free.rounds - 2_139 / 4) < 5 * np.sqrt(2_139 * 3 / 16)
    assert free.main["gain"].low > 0  # two drugs were better than one, and the learner finds it in one pass
    for outcome in kept:
        assert outcome.below == {0.2: 0}


@needs("lifelines")
def test_actg175_as_a_world_is_learned_without_a_breach() -> None:
    log = datasets.actg175()
    free, *kept = replay(log.resampled(100_000, seed=0), specs(0.2), declared=fit_baseline(log).declared)
    assert free.below[0.2] > 0
    for outcome in kept:
        assert outcome.below == {0.2: 0}, outcome.spec
        assert outcome.main["gain"].low > 0
    assert any(outcome.free_from is not None for outcome in kept)


@needs("sklearn")
def test_digits_as_a_bandit_lucb_breaks_the_floor_for_long_and_no_other_does() -> None:
    log = datasets.digits()
    batch = next(log.batches())
    rate = float(batch.rewards[np.arange(len(batch)), batch.baselines].mean())
    assert 0.6 < rate < 0.7
    declared = fit_baseline(log).declared
    free, *kept = replay(log.resampled(8_000, seed=0), specs(0.2), declared=declared, evaluator="full")
    assert free.below[0.2] > 4_000
    for outcome in kept:
        assert outcome.below == {0.2: 0}, outcome.spec
        assert outcome.learner_rounds > 0
        assert outcome.worst_share >= 0.8


@needs("sklearn")
def test_wine_as_a_bandit_is_learned_above_the_floor() -> None:
    log = datasets.wine()
    declared = fit_baseline(log).declared
    free, *kept = replay(log.resampled(20_000, seed=0), specs(0.2), declared=declared, evaluator="full")
    assert free.main["gain"].low > 0
    for outcome in kept:
        assert outcome.below == {0.2: 0}, outcome.spec
        assert outcome.learner_rounds > 0


@needs("statsmodels")
def test_rand_is_read_and_its_dependence_and_drift_are_doubted() -> None:
    log = datasets.rand_hie()
    assert log.rows == 20_190
    doubts = {doubt.assumption.split(":")[0]: doubt.is_doubtful for doubt in fit_baseline(log).doubts}
    assert doubts["Independence"]  # rows of one person follow one another
    assert doubts["No drift"]
    assert not doubts["Light tails"]
    declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.555, reward_bounds=(0, 1))
    free, *kept = replay(log.shuffled(0), specs(0.2), declared=declared)
    assert free.main["gain"].low > 0  # with care free of charge, more people see a doctor
    assert all(outcome.below == {0.2: 0} for outcome in kept)


def test_a_table_of_ratings_is_a_bandit() -> None:
    rng = np.random.default_rng(0)
    users = np.abs(rng.normal(size=(300, 2)))
    table = 1 + 4 / (1 + np.exp(-users @ rng.normal(size=(2, 6))))
    log = ratings(users, table, baselines=2)
    declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=float(next(log.batches()).rewards[:, 2].mean()))
    free, *kept = replay(log.resampled(6_000, seed=1), specs(0.3), declared=declared, evaluator="full")
    assert free.main["gain"].low > 0
    assert all(outcome.below == {0.3: 0} for outcome in kept)


@pytest.mark.parametrize(
    ("load", "package"),
    [(datasets.actg175, "lifelines"), (datasets.digits, "scikit-learn"), (datasets.rand_hie, "statsmodels")],
)
def test_a_missing_package_is_named(
    load: Callable[[], ContextLog], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("surefoot.replay.datasets.importlib.import_module", refuse)
    with pytest.raises(ConfigError, match=f"needs {package}, which is not installed: pip install {package}"):
        load()
