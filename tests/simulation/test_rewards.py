"""Rewards have the mean they are asked for, stay where they should, and are no wilder than the noise they declare."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from surefoot.errors import ConfigError
from surefoot.simulation.rewards import Bernoulli, Bounded, Gaussian, Rewards, reward_of

CELLS = 2_000
MIDPOINTS = (np.arange(CELLS) + 0.5) / CELLS  # stands for a uniform draw: exact for a law in steps of 1 / CELLS
MEANS = [0.0, 0.001, 0.1, 0.3, 0.5, 0.77, 0.95, 1.0]
TILTS = np.concatenate([-np.geomspace(0.01, 40, 40), np.geomspace(0.01, 40, 40)])
FLUKE = 1e-6  # chance that a right law fails one of the seeded tests

UNIT = [Bernoulli(), Bounded(), Bounded(width=0.2), Bounded(width=0.03)]


def law(rewards: Rewards, mean: float) -> NDArray[np.float64]:
    """The reward of every cell of a uniform draw, all equally likely."""
    return np.array([reward_of(rewards.kind, rewards.scale, mean, draw) for draw in MIDPOINTS])


def log_moment(values: NDArray[np.float64], tilt: float) -> float:
    """ln E exp(tilt x), all values equally likely."""
    top = (tilt * values).max()
    return float(top + np.log(np.exp(tilt * values - top).mean()))


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("rewards", UNIT, ids=repr)
def test_rewards_in_the_unit_interval_have_the_right_mean_and_support(rewards: Rewards, mean: float) -> None:
    values = law(rewards, mean)
    assert values.mean() == pytest.approx(mean, abs=1e-12)
    assert values.min() >= 0
    assert values.max() <= 1
    if isinstance(rewards, Bernoulli):
        assert set(values) <= {0.0, 1.0}
    if isinstance(rewards, Bounded):
        reach = min(rewards.width, mean, 1 - mean)
        assert np.ptp(values) == pytest.approx(2 * reach * (1 - 1 / CELLS), abs=1e-12)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("rewards", UNIT, ids=repr)
def test_the_declared_noise_bounds_every_exponential_moment(rewards: Rewards, mean: float) -> None:
    values = law(rewards, mean) - mean
    # A cell of the uniform law is 2 width / CELLS wide: beside its midpoint the moment grows by less than this.
    beside = np.abs(TILTS) / CELLS
    for tilt, slack in zip(TILTS, beside**2, strict=True):
        assert log_moment(values, tilt) <= tilt**2 * rewards.noise**2 / 2 + slack + 1e-12


def test_a_smaller_noise_would_be_wrong_for_clicks() -> None:
    values = law(Bernoulli(), 0.5) - 0.5
    assert log_moment(values, 0.1) > 0.1**2 * 0.49**2 / 2


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.0])
def test_gaussian_rewards_have_exactly_the_moments_of_their_noise(sigma: float) -> None:
    rewards = Gaussian(sigma=sigma)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    values = np.array([reward_of(rewards.kind, rewards.scale, 0.4, node) for node in nodes]) - 0.4
    for tilt in (-1.5, -0.3, 0.7, 1.5):
        moment = np.log(weights @ np.exp(tilt * values) / weights.sum())
        assert moment == pytest.approx(tilt**2 * rewards.noise**2 / 2, rel=1e-9)


def test_gaussian_draws_are_standard_normal_and_the_others_uniform() -> None:
    normal = Gaussian(sigma=3.0).draw(np.random.default_rng(1), 20_000)
    assert stats.kstest(normal, "norm").pvalue > FLUKE
    for rewards in UNIT:
        uniform = rewards.draw(np.random.default_rng(2), 20_000)
        assert stats.kstest(uniform, "uniform").pvalue > FLUKE


@pytest.mark.parametrize("rewards", [*UNIT, Gaussian(sigma=0.7)], ids=repr)
def test_drawn_rewards_average_to_their_mean(rewards: Rewards) -> None:
    rounds, mean = 20_000, 0.3
    draws = rewards.draw(np.random.default_rng(3), rounds)
    values = [reward_of(rewards.kind, rewards.scale, mean, draw) for draw in draws]
    off = rewards.noise * np.sqrt(2 * np.log(2 / FLUKE) / rounds)  # Hoeffding, by the declared noise
    assert abs(np.mean(values) - mean) <= off


@pytest.mark.parametrize("width", [0.0, -0.1, 0.51, float("nan")])
def test_a_width_that_leaves_the_unit_interval_is_refused(width: float) -> None:
    with pytest.raises(ConfigError, match=r"`0 < width <= 0\.5` must hold, but got"):
        Bounded(width=width)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("inf")])
def test_a_sigma_that_is_no_deviation_is_refused(sigma: float) -> None:
    with pytest.raises(ConfigError, match=r"`sigma > 0` must hold and be finite, but got sigma="):
        Gaussian(sigma=sigma)


@pytest.mark.parametrize("rewards", UNIT, ids=repr)
def test_means_outside_the_unit_interval_are_refused_but_for_rounding(rewards: Rewards) -> None:
    rewards.check(np.array([[-1e-12, 1 + 1e-12]]))
    Gaussian().check(np.array([[-3.0, 7.0]]))
    for means in ([0.5, 1.1], [-0.1, 0.5], [0.5, np.nan]):
        with pytest.raises(ConfigError, match=r"Mean rewards must lie in \[0, 1\] for B\w+ rewards, but they range"):
            rewards.check(np.array([means]))
