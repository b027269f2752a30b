"""What fit_baseline declares and doubts, on logs whose truth is known: bounds hold, and tests keep their level."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from surefoot.errors import AssumptionError
from surefoot.replay.baseline_fit import Fit, fit_baseline
from surefoot.replay.doubts import SURE, LinearityTest, SampleRatio
from surefoot.replay.log import ContextLog, classification, ratings
from surefoot.replay.theta_bound import TAIL, RidgeSums
from tests.replay.linear_worlds import World, linear_world

# At least a hundred rewarded rows: of fewer clicks no fit could say how long theta is within a factor of three.
INFORMED = [(0.0, 500), (0.0, 2_000), (0.02, 8_000), (0.1, 2_000), (0.1, 8_000), (0.3, 500), (0.3, 2_000)]
TESTS = ("No drift", "Linearity", "Independence", "Light tails", "Propensities")


def fitted(world: World) -> Fit:
    return fit_baseline(world.log, reward_bounds=None if world.kind.startswith("rate 0,") else (0.0, 1.0))


@pytest.mark.parametrize("logs", [42, pytest.param(210, marks=pytest.mark.long)])
def test_the_declared_length_of_theta_is_never_short_and_loose_without_a_doubt_in_few_logs(logs: int) -> None:
    shares, doubts = [], []
    for seed in range(logs):
        rate, rows = INFORMED[seed % len(INFORMED)]
        world = linear_world(seed, rate=rate, rows=rows)
        fit = fitted(world)
        shares.append(fit.declared.theta_bound / float(np.linalg.norm(world.theta)))
        doubts.append(any(doubt.is_doubtful for doubt in fit.doubts if doubt.assumption.startswith("Length")))
        # Columns that hardly differ are doubted, and nothing else is.
        assert doubts[-1] == world.kind.endswith("collinear"), world.kind
    loose = np.array(shares)[~np.array(doubts)]
    assert min(shares) >= 1
    assert np.mean(loose > 3) <= 0.25
    assert loose.max() <= 7


@pytest.mark.parametrize("rate", [0.004, 0.02])
def test_the_declared_length_is_not_short_where_hardly_anybody_clicks(rate: float) -> None:
    for seed in range(12):
        world = linear_world(seed, rate=rate, rows=500)
        assert fitted(world).declared.theta_bound >= np.linalg.norm(world.theta), world.kind


def test_a_direction_that_no_row_has_a_part_in_costs_nothing() -> None:
    rng = np.random.default_rng(1)
    rows, rewards = rng.random((500, 2)), rng.random(500)
    plain, wide = RidgeSums(2), RidgeSums(7)
    plain.add(rows, rewards)
    wide.add(np.hstack([rows, np.zeros((500, 5))]), rewards)
    found = [sums.theta_length((0.0, 1.0)).norm.high for sums in (plain, wide)]
    assert found[0] == pytest.approx(found[1])
    # Offered but never played, its theta is as long as the range of means allows.
    wide.offer(np.eye(7))
    assert wide.theta_length((0.0, 1.0)).norm.high >= np.sqrt(5)


def test_an_action_that_is_offered_late_and_never_played_counts() -> None:
    rng = np.random.default_rng(2)
    sums, rows = RidgeSums(3), np.hstack([rng.random((500, 2)), np.zeros((500, 1))])
    sums.add(rows, rng.random(500))
    sums.offer(rows)
    before = sums.theta_length((0.0, 1.0)).norm.high
    sums.offer(np.array([[0.1, 0.1, 0.0], [0.0, 0.0, 0.2], [0.0, 0.0, 0.1]]))
    assert sums.theta_length((0.0, 1.0)).norm.high >= 1 / 0.2 > before


def test_the_length_of_theta_is_what_its_definition_says() -> None:
    """By plain matrices: estimate, noise and pull in the units of the features, and the ends as roots of a search."""
    rng = np.random.default_rng(3)
    rows, sums = rng.normal(size=(40, 3)) * [1.0, 0.5, 0.02], RidgeSums(3)
    rewards = np.clip(0.5 + rows @ [0.2, -0.1, 1.0] + 0.05 * rng.normal(size=40), 0, 1)
    sums.add(rows, rewards)
    offered = rng.normal(size=(25, 3)) * 0.3
    sums.offer(offered)
    found = sums.theta_length((0.0, 1.0))
    leverage = np.diag(offered @ np.linalg.inv(offered.T @ offered) @ offered.T) / 3
    design = sum(share * np.outer(x, x) for share, x in zip(leverage, offered, strict=True))
    noise = sums.reward_variance((0.0, 1.0))
    spread = np.linalg.inv(rows.T @ rows / noise + design)
    estimate, error = spread @ rows.T @ rewards / noise, spread @ rows.T @ rows @ spread / noise
    pull = np.sqrt(np.linalg.eigvalsh(spread @ design @ spread)[-1])
    square, x, most = estimate @ estimate, np.log(1 / TAIL), np.linalg.eigvalsh(error)[-1]

    lengths = np.linspace(0, 60, 6_000_001)
    middle = lengths**2 + np.trace(error)
    steps = 2 * np.sqrt(x * ((error**2).sum() + 2 * most * lengths**2))
    high, low = lengths[middle - steps <= square].max(), lengths[middle + steps + 2 * most * x >= square].min()
    assert found.norm.high == pytest.approx(high + pull, abs=1e-4)
    assert found.norm.low == pytest.approx(max(0.0, low - pull), abs=1e-4)
    assert abs(found.direction @ np.linalg.eigh(spread)[1][:, -1]) == pytest.approx(1.0)


def test_a_table_of_ratings_is_fitted_on_every_action_and_not_on_the_baselines_alone() -> None:
    rng = np.random.default_rng(2)
    users = np.abs(rng.normal(size=(400, 2)))
    # The baseline's item pleases everybody alike; the others are what theta is long for.
    slopes = np.array([[0.0, 0.0], [3.0, -3.0], [-3.0, 3.0]])
    table = 5 + users @ slopes.T
    log = ratings(users, table, baselines=0)
    longest = float(np.linalg.norm(users, axis=1).max())
    truth = np.linalg.norm(slopes) * longest / (table.max() - table.min())
    assert fit_baseline(log).declared.theta_bound >= truth


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-5.0, 5.0)])
def test_declared_noise_is_half_the_range_and_never_more(bounds: tuple[float, float]) -> None:
    for seed in range(5):
        world = linear_world(seed, rate=0.3, rows=500)
        assert fit_baseline(world.log, reward_bounds=bounds).declared.noise == (bounds[1] - bounds[0]) / 2


@pytest.mark.parametrize("logs", [60, pytest.param(1_000, marks=pytest.mark.long)])
def test_in_exactly_linear_logs_no_doubt_is_raised_more_often_than_its_level(logs: int) -> None:
    raised: Counter[str] = Counter()
    for seed in range(logs):
        for doubt in fitted(linear_world(seed)).doubts:
            raised[next((name for name in TESTS if doubt.assumption.startswith(name)), "")] += doubt.is_doubtful
    most = binom.ppf(1 - 1e-4 / len(TESTS), logs, SURE)
    assert all(raised[name] <= most for name in TESTS), raised


def test_rare_clicks_are_not_taken_for_rows_that_shun_each_other() -> None:
    """Two clicks in a row are so rare that there are none: that is no negative correlation."""
    for seed in range(12):
        found = fitted(linear_world(seed, rate=0.02, rows=2_000)).doubts
        assert not any(doubt.is_doubtful for doubt in found if doubt.assumption.startswith("Independence"))


@pytest.mark.parametrize(("rate", "rows"), [(0.0, 2_000), (0.1, 8_000), (0.3, 8_000)])
def test_a_bend_is_found_in_most_logs_that_have_one(rate: float, rows: int) -> None:
    found = sum(fitted(linear_world(seed, rate=rate, rows=rows, bent=2.5)).is_linearity_doubtful for seed in range(10))
    assert found >= 8


def test_bounded_rewards_are_not_asked_for_light_tails() -> None:
    world = linear_world(3, rate=0.02, rows=2_000)  # kurtosis near fifty
    (tails,) = [doubt for doubt in fitted(world).doubts if doubt.assumption.startswith("Light tails")]
    assert (tails.is_doubtful, tails.seen) == (False, "rewards are bounded")


def test_the_score_of_linearity_is_that_of_the_textbook_formula() -> None:
    """White's variance of the guess, once the features are taken out of it, by plain matrices."""
    rng = np.random.default_rng(4)
    rows = np.hstack([np.ones((256, 1)), rng.random((256, 2))])
    rewards = rows @ [0.2, 0.3, 0.1] + (rows[:, 1] - 0.5) ** 2 + rng.normal(size=256) * 0.1
    learned, aside = RidgeSums(3), RidgeSums(3)
    learned.add(rows[:128], rewards[:128])
    aside.add(rows[128:], rewards[128:])
    test = LinearityTest(learned, aside, lows=rows.min(axis=0), highs=rows.max(axis=0))
    test.learn(rows[:128], rewards[:128])
    test.judge(rows[128:160], rewards[128:160], together=1)
    test.judge(rows[160:], rewards[160:], together=1)
    x, y = rows[128:], rewards[128:]
    theta = np.linalg.lstsq(rows[:128], rewards[:128], rcond=None)[0]
    guess = test._cells.guess(np.column_stack([x @ theta, x]))
    hat = x @ np.linalg.inv(x.T @ x) @ x.T
    missed, beside = y - hat @ y, guess - hat @ guess
    expected = (guess @ missed) / np.sqrt(((beside * missed) ** 2).sum() * 128 / 125)
    assert test.score == pytest.approx(expected, rel=1e-9)


def test_wrong_propensities_are_found_and_right_ones_left_alone() -> None:
    rng = np.random.default_rng(5)
    drawn = rng.choice(4, size=1_000, p=[0.7, 0.1, 0.1, 0.1])
    even, right = SampleRatio(4, 0.25), SampleRatio(4, 0.1)
    even.add(drawn, np.full(1_000, 4.0), 1_000.0)
    for part in np.array_split(np.arange(1_000), 3):
        right.add(drawn[part], 1 / np.where(drawn[part] == 0, 0.7, 0.1), float(part.size))
    assert even.p_value < 1e-12
    action, mean = even.worst_of(slice(None))
    assert action == 0
    assert mean == pytest.approx(2.8, rel=0.1)
    assert right.p_value > SURE


def test_the_bets_against_propensities_have_mean_one() -> None:
    """The wealth after two rows, over all that can be drawn: its mean is 1, so that its tail is what Ville says."""
    odds = np.array([0.5, 0.3, 0.2])
    mean = 0.0
    for first in range(3):
        for second in range(3):
            ratio, drawn = SampleRatio(3, 0.2), np.array([first, second])
            ratio.add(drawn, 1 / odds[drawn], 2.0)
            mean += float(odds[drawn].prod() * np.exp(ratio.wealth).mean())
    assert mean == pytest.approx(1.0, rel=1e-12)


def test_a_table_of_labels_in_bands_is_found_not_to_be_linear() -> None:
    rng = np.random.default_rng(6)
    corners = rng.integers(0, 2, size=(3_000, 2)).astype(float)
    points = corners + 0.1 * rng.normal(size=corners.shape)
    band = np.digitize(points.sum(axis=1), [0.5, 1.5])
    assert fit_baseline(classification(points, band, baselines=0)).is_linearity_doubtful


def test_a_negative_baseline_has_no_declaration() -> None:
    world = linear_world(0, rate=0.3, rows=500)
    batch = next(world.log.batches())
    paid = batch.rewards[:, 0] - 1
    log = ContextLog(contexts=world.log._contexts, phi=world.log.phi, rewards=paid, actions=batch.actions, baselines=0)
    with pytest.raises(AssumptionError, match="must not be negative"):
        _ = fit_baseline(log).declared
