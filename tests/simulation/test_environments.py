"""Worlds are what they say: the paper's laws, bounds that hold, and the same rounds however they are taken."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from surefoot.errors import ConfigError, InputError
from surefoot.simulation.rewards import Bernoulli, Bounded, Gaussian
from surefoot.simulation.worlds import (
    ArmsWorld,
    Baseline,
    Block,
    ContextualWorld,
    DriftingWorld,
    FunctionWorld,
    MisspecifiedWorld,
    PaperWorld,
    Realisation,
    World,
)

Rows = NDArray[np.float64]
FLUKE = 1e-6  # chance that a right law fails one of the seeded tests


def small_rows(rng: np.random.Generator) -> Rows:
    return rng.uniform(-0.4, 0.6, size=(6, 3))


def logistic(rows: Rows) -> Rows:
    chance: Rows = 1 / (1 + np.exp(-rows @ np.array([1.0, -2.0, 0.5])))
    return chance


def widest(rows: Rows) -> int:
    return int(rows[:, 1].argmax())


def function_world(**more: Any) -> FunctionWorld:
    given: dict[str, Any] = {
        "dim": 3,
        "actions": 6,
        "baseline": Baseline(rank=2),
        "function": small_rows,
        "theta": (0.3, -0.2, 0.5),
        "feature_bound": 1.1,
    }
    return FunctionWorld(**given | more)


WORLDS: dict[str, World] = {
    "paper, normalized": PaperWorld(actions=30),
    "paper, as written": PaperWorld(instance="as-written"),
    "paper, clicks": PaperWorld(rewards=Bernoulli()),
    "paper, late": PaperWorld(dim=6, actions=12, rewards=Bounded(width=0.3), delay=0.7),
    "nonnegative": ContextualWorld(rewards=Gaussian(sigma=0.3)),
    "nonnegative, late clicks": ContextualWorld(dim=5, rewards=Bernoulli(), delay=4.0),
    "any sign": ContextualWorld(dim=33, actions=11, sign="any"),
    "any sign, a policy of one's own": ContextualWorld(
        dim=2, actions=5, sign="any", baseline=Baseline(policy=widest), rewards=Bounded()
    ),
    "arms": ArmsWorld(low=0.2, high=0.9, rewards=Bernoulli()),
    "arms, late": ArmsWorld(actions=4, dim=4, high=3.0, baseline=Baseline(action=1), delay=20.0),
    "drifting": DriftingWorld(dim=4, actions=6, period=37.0, rewards=Bernoulli()),
    "drifting, jumps, late": DriftingWorld(dim=3, actions=5, period=20.5, drift="jump", delay=2.0),
    "misspecified": MisspecifiedWorld(dim=4, actions=6, epsilon=0.2, rewards=Bernoulli()),
    "misspecified, not declared": MisspecifiedWorld(dim=3, actions=5, epsilon=0.01, waves=9.0, declared=False),
    "function": function_world(),
    "function, not linear": function_world(means=logistic, rewards=Bernoulli(), delay=1.0),
}
LINEAR = {name: world for name, world in WORLDS.items() if not isinstance(world, DriftingWorld | MisspecifiedWorld)}
every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())


def joined(blocks: list[Block]) -> list[NDArray[Any]]:
    """Everything in the blocks, round by round; what is fixed is repeated."""
    whole = []
    for name in ("features", "means", "baselines", "draws", "delays"):
        parts = [getattr(block, name) for block in blocks]
        sizes = [block.draws.size for block in blocks]
        whole.append(np.concatenate([np.broadcast_to(p, (n, *p.shape[1:])) for p, n in zip(parts, sizes, strict=True)]))
    return whole


def assert_same_rounds(first: list[Block], second: list[Block]) -> None:
    for one, other in zip(joined(first), joined(second), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


def run(world: World, *, seed: int = 5, number: int = 0) -> Any:
    return world.realisations(seed, [number])[0]


# ------------------------------------------------------------------------------------------- same seed, same rounds


@every_world
@pytest.mark.parametrize("sizes", [[7, 13], [1] * 20, [19, 1]], ids=str)
def test_blocks_of_any_size_are_the_same_rounds_to_the_bit(world: World, sizes: list[int]) -> None:
    in_parts, at_once = run(world), run(world)
    assert_same_rounds([in_parts.take(size) for size in sizes], [at_once.take(20)])


@every_world
def test_a_run_is_the_same_whichever_others_are_asked_for(world: World) -> None:
    alone = run(world, seed=9, number=3)
    among = world.realisations(9, [5, 0, 3])
    for other in among[:2]:
        other.take(11)
    assert alone.theta.tobytes() == among[2].theta.tobytes()
    ours, theirs = alone.take(15), among[2].take(15)
    assert alone.problem(ours) == among[2].problem(theirs)
    assert_same_rounds([ours], [theirs])


@every_world
def test_the_same_seed_sequence_draws_the_same_world_again(world: World) -> None:
    seed = np.random.SeedSequence(4)
    assert_same_rounds([world.realise(seed).take(9)], [world.realise(seed).take(9)])
    assert seed.n_children_spawned == 0


def test_a_realisation_made_by_hand_leaves_its_seed_alone() -> None:
    seed = np.random.SeedSequence(4)
    given: dict[str, Any] = {"theta": np.ones(3), "theta_bound": 2.0, "feature_bound": 1.0, "delay": 3.0, "seed": seed}
    first, second = (
        Realisation(rows=np.eye(3), rewards=Gaussian(), baseline=Baseline(rank=1), **given) for _ in range(2)
    )
    assert_same_rounds([first.take(9)], [second.take(9)])


@every_world
def test_other_runs_and_other_seeds_are_other_worlds(world: World) -> None:
    seeds = [(5, 0), (5, 1), (6, 0)]
    draws = [run(world, seed=seed, number=number).take(9).draws for seed, number in seeds]
    assert len({tuple(draw) for draw in draws}) == len(seeds)


def test_noise_and_delays_leave_the_features_alone() -> None:
    plain = run(ContextualWorld())
    late = run(ContextualWorld(delay=5.0))
    clicks = run(ContextualWorld(rewards=Bernoulli(), delay=2.0))
    blocks = [realisation.take(30) for realisation in (plain, late, clicks)]
    assert blocks[0].features.tobytes() == blocks[1].features.tobytes() == blocks[2].features.tobytes()
    assert blocks[0].draws.tobytes() == blocks[1].draws.tobytes()
    assert not blocks[0].delays.any()
    assert blocks[1].delays.any()


# ------------------------------------------------------------------------------------------------ bounds and means


@every_world
def test_the_bounds_that_a_policy_is_told_hold(world: World) -> None:
    for realisation in world.realisations(2, range(20)):
        block = realisation.take(50)
        settings = realisation.problem(block).settings(ridge=0.7, delta=0.01)
        assert np.linalg.norm(realisation.theta) <= settings["theta_bound"] * (1 + 1e-12)
        assert np.linalg.norm(block.features, axis=2).max() <= settings["feature_bound"] * (1 + 1e-12)
        assert (settings["noise"], settings["ridge"], settings["delta"]) == (world.rewards.noise, 0.7, 0.01)


@every_world
def test_blocks_have_the_shapes_they_promise(world: World) -> None:
    block = run(world).take(8)
    rounds = 1 if world.fixed else 8
    assert block.features.shape == (rounds, world.actions, world.dim)
    assert block.means.shape == (rounds, world.actions)
    assert block.baselines.shape == block.draws.shape == block.delays.shape == (8,)
    assert block.features.flags.c_contiguous
    assert block.delays.min() >= 0


@pytest.mark.parametrize("world", LINEAR.values(), ids=LINEAR.keys())
def test_means_are_linear_unless_a_function_says_otherwise(world: World) -> None:
    realisation = run(world)
    block = realisation.take(10)
    truth = getattr(world, "means", None)
    expected = block.features @ realisation.theta if truth is None else [truth(rows) for rows in block.features]
    assert np.allclose(block.means, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("sign", ["nonnegative", "any"])
@pytest.mark.parametrize("dim", [2, 8])
def test_contextual_means_lie_in_the_unit_interval_and_rows_on_the_sphere(sign: Any, dim: int) -> None:
    for realisation in ContextualWorld(dim=dim, sign=sign).realisations(3, range(10)):
        block = realisation.take(100)
        assert block.means.min() >= -1e-12
        assert block.means.max() <= 1 + 1e-12
        lengths = np.linalg.norm(block.features, axis=2)
        assert np.allclose(lengths, 1.0, atol=1e-12)
        assert lengths.max() <= realisation.feature_bound
        if sign == "nonnegative":
            assert block.features.min() >= 0
        else:
            assert np.allclose(block.features[:, :, 0], 1 / math.sqrt(2))
            assert block.features[:, :, 1:].min() < 0


def test_contextual_rows_are_new_in_every_round() -> None:
    features = run(ContextualWorld()).take(40).features.reshape(40, -1)
    assert len(np.unique(features, axis=0)) == 40


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.2, 3.0)])
def test_arms_are_one_hot_with_means_uniform_between_their_bounds(low: float, high: float) -> None:
    runs = ArmsWorld(low=low, high=high).realisations(8, range(300))
    means = np.concatenate([realisation.take(1).means[0] for realisation in runs])
    assert (runs[0].take(1).features[0] == np.eye(10)).all()
    assert stats.kstest(means, stats.uniform(low, high - low).cdf).pvalue > FLUKE


# ------------------------------------------------------------------------------------------------------- the paper


@pytest.mark.parametrize("instance", ["normalized", "as-written"])
def test_the_papers_means_are_positive_and_its_bounds_tight(instance: Any) -> None:
    for realisation in PaperWorld(instance=instance).realisations(1, range(200)):
        means = realisation.take(1).means[0]
        assert means.min() > 0
        assert realisation.theta_bound == pytest.approx(np.linalg.norm(realisation.theta), rel=1e-13)
        lengths = np.linalg.norm(realisation.take(1).features[0], axis=1)
        assert realisation.feature_bound == pytest.approx(lengths.max(), rel=1e-13)
        if instance == "normalized":
            assert means.max() == pytest.approx(1.0, rel=1e-12)


def test_normalizing_divides_theta_by_the_best_mean_and_changes_nothing_else() -> None:
    for number in range(20):
        written = run(PaperWorld(instance="as-written"), number=number)
        normalized = run(PaperWorld(), number=number)
        block = written.take(5)
        assert block.features.tobytes() == normalized.take(5).features.tobytes()
        assert np.allclose(normalized.theta * block.means.max(), written.theta, rtol=1e-12)


@pytest.mark.parametrize("instance", ["normalized", "as-written"])
def test_nine_actions_of_the_paper_beat_its_baseline(instance: Any) -> None:
    for realisation in PaperWorld(instance=instance).realisations(6, range(50)):
        block = realisation.take(4)
        assert len(set(block.baselines)) == 1
        assert (block.means[0] > block.means[0, block.baselines[0]]).sum() == 9


def test_the_papers_theta_is_standard_normal() -> None:
    world = PaperWorld(actions=2, baseline=Baseline(rank=1), instance="as-written")
    thetas = np.array([realisation.theta for realisation in world.realisations(11, range(2_000))])
    assert stats.kstest(thetas.ravel(), "norm").pvalue > FLUKE
    squares = (thetas**2).sum()
    assert FLUKE < stats.chi2(thetas.size).cdf(squares) < 1 - FLUKE
    crossed = (thetas[:, 0] * thetas[:, 1]).mean() * math.sqrt(len(thetas))
    assert abs(crossed) < stats.norm.isf(FLUKE / 2)


def test_the_papers_features_are_standard_normal_given_a_positive_mean() -> None:
    """Along theta a row is then half-normal; across it, normal as ever."""
    along, across = [], []
    for realisation in PaperWorld(instance="as-written").realisations(12, range(100)):
        rows, theta = realisation.take(1).features[0], realisation.theta
        turned = np.linalg.qr(np.column_stack([theta, np.eye(4)[:, :3]]))[0]
        along.append(rows @ theta / np.linalg.norm(theta))
        across.append((rows @ turned[:, 1:]).ravel())
    assert stats.kstest(np.concatenate(along), "halfnorm").pvalue > FLUKE
    assert stats.kstest(np.concatenate(across), "norm").pvalue > FLUKE


# ---------------------------------------------------------------------------------------------- baselines and delays


@pytest.mark.parametrize("rank", [1, 4, 20])
def test_a_baseline_of_a_rank_keeps_it_in_every_round(rank: int) -> None:
    block = run(ContextualWorld(baseline=Baseline(rank=rank))).take(60)
    own = block.means[np.arange(60), block.baselines]
    assert ((block.means > own[:, None]).sum(axis=1) == rank - 1).all()
    assert len(set(block.baselines)) > 5


def test_among_equal_means_the_first_action_ranks_first() -> None:
    means = np.tile([0.5, 0.9], 40)
    rows = [Baseline(rank=rank).row(np.eye(80), means) for rank in range(1, 81)]
    assert rows == [*range(1, 80, 2), *range(0, 80, 2)]


def test_a_baseline_of_an_action_always_plays_it() -> None:
    assert (run(ContextualWorld(baseline=Baseline(action=7))).take(30).baselines == 7).all()
    assert (run(PaperWorld(baseline=Baseline(action=99))).take(30).baselines == 99).all()


def test_a_baseline_policy_sees_the_features_of_its_round() -> None:
    block = run(ContextualWorld(baseline=Baseline(policy=widest))).take(30)
    assert (block.baselines == block.features[:, :, 1].argmax(axis=1)).all()


@pytest.mark.parametrize("row", [-1, 20, 10**6])
def test_a_baseline_policy_that_leaves_the_actions_is_refused(row: int) -> None:
    realisation = run(ContextualWorld(baseline=Baseline(policy=lambda rows: row)))
    with pytest.raises(InputError, match=rf"`0 <= row < 20` must hold for a baseline's policy, but it returned {row}"):
        realisation.take(1)


@pytest.mark.parametrize("delay", [0.05, 1.0, 12.5, 300.0])
def test_delays_are_geometric_with_the_declared_mean(delay: float) -> None:
    rounds = 100_000
    delays = run(PaperWorld(actions=10, delay=delay)).take(rounds).delays
    law = stats.geom(1 / (1 + delay), loc=-1)
    assert law.mean() == pytest.approx(delay)
    limit = stats.norm.isf(FLUKE / 2) * law.std() / math.sqrt(rounds)
    assert abs(delays.mean() - delay) < limit
    for least in (1, 1 + int(delay), 1 + int(3 * delay)):
        chance = law.sf(least - 1)
        assert FLUKE < stats.binom(rounds, chance).cdf((delays >= least).sum()) < 1 - FLUKE


# --------------------------------------------------------------------------------------------------------- refusals


def bad_function(shape: tuple[int, ...]) -> Callable[[], object]:
    return lambda: run(function_world(function=lambda rng: np.ones(shape))).take(1)


REFUSALS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "two baselines": (lambda: Baseline(rank=1, action=2), ConfigError, "exactly one of `rank`, `action` and `policy`"),
    "no baseline": (lambda: Baseline(), ConfigError, "exactly one of `rank`, `action` and `policy`"),
    "rank 0": (lambda: Baseline(rank=0), ConfigError, "`rank` must be a whole number >= 1, but got rank=0"),
    "half a rank": (lambda: Baseline(rank=1.5), ConfigError, "`rank` must be a whole number >= 1"),  # type: ignore[arg-type]
    "action -1": (lambda: Baseline(action=-1), ConfigError, "`action` must be a whole number >= 0"),
    "half an action": (lambda: Baseline(action=1.5), ConfigError, "`action` must be a whole number"),  # type: ignore[arg-type]
    "rank above actions": (
        lambda: PaperWorld(actions=9),
        ConfigError,
        "`1 <= rank <= 9` must hold for 9 actions, but got rank=10",
    ),
    "action above actions": (
        lambda: PaperWorld(actions=9, baseline=Baseline(action=9)),
        ConfigError,
        "`0 <= action < 9` must hold for 9 actions, but got 9",
    ),
    "one dimension": (lambda: PaperWorld(dim=1), ConfigError, "`dim` must be a whole number >= 2, but got dim=1"),
    "one action": (lambda: PaperWorld(actions=1), ConfigError, "`actions` must be a whole number >= 2"),
    "negative delay": (lambda: PaperWorld(delay=-1), ConfigError, "`delay >= 0` must hold, but got -1"),
    "delay nan": (lambda: PaperWorld(delay=math.nan), ConfigError, "`delay >= 0` must hold, but got nan"),
    "endless delay": (lambda: PaperWorld(delay=math.inf), ConfigError, "`delay >= 0` must hold, but got inf"),
    "instance": (
        lambda: PaperWorld(instance="scaled"),  # type: ignore[arg-type]
        ConfigError,
        "`instance` must be 'as-written' or 'normalized', but got 'scaled'",
    ),
    "sign": (
        lambda: ContextualWorld(sign="both"),  # type: ignore[arg-type]
        ConfigError,
        "`sign` must be 'nonnegative' or 'any', but got 'both'",
    ),
    "arms of another dimension": (
        lambda: ArmsWorld(dim=4),
        ConfigError,
        "`dim == actions` must hold for plain arms, but got 4 and 10",
    ),
    "arms upside down": (
        lambda: ArmsWorld(low=0.5, high=0.5),
        ConfigError,
        "`0 <= low < high` must hold, but got low=0.5",
    ),
    "negative arms": (lambda: ArmsWorld(low=-0.1), ConfigError, "`0 <= low < high` must hold, but got low=-0.1"),
    "no function": (lambda: function_world(function=None), ConfigError, "`function` must be given"),
    "short theta": (lambda: function_world(theta=(1.0, 2.0)), ConfigError, "`theta` must have `dim` entries"),
    "no bound": (lambda: function_world(feature_bound=0.0), ConfigError, "`feature_bound > 0` must hold"),
    "theta nan": (lambda: run(function_world(theta=(1.0, math.nan, 0.0))), InputError, "`theta` must be finite"),
    "too few rows": (bad_function((5, 3)), InputError, "`function` must return shape (6, 3), but returned (5, 3)"),
    "too many features": (bad_function((6, 4)), InputError, "`function` must return shape (6, 3), but returned (6, 4)"),
    "a vector for rows": (bad_function((6,)), InputError, "`features` must have 2 dimension(s), but got shape (6,)"),
    "rows nan": (
        lambda: run(function_world(function=lambda rng: np.full((6, 3), np.nan))).take(1),
        InputError,
        "`features` must be finite, but entry (0, 0) is nan",
    ),
    "too few means": (
        lambda: run(function_world(means=lambda rows: rows[:4, 0])).take(2),
        InputError,
        "`means` must return 6 numbers, but returned 4",
    ),
    "a matrix of means": (
        lambda: run(function_world(means=lambda rows: rows)).take(1),
        InputError,
        "`means` must have 1 dimension(s)",
    ),
    "means nan": (
        lambda: run(function_world(means=lambda rows: rows[:, 0] * np.nan)).take(1),
        InputError,
        "`means` must be finite",
    ),
    "clicks above one": (
        lambda: run(PaperWorld(instance="as-written", rewards=Bernoulli())).take(1),
        ConfigError,
        "Mean rewards must lie in [0, 1] for Bernoulli rewards",
    ),
    "bounded above one": (
        lambda: run(ArmsWorld(low=1.0, high=2.0, rewards=Bounded())).take(1),
        ConfigError,
        "Mean rewards must lie in [0, 1] for Bounded rewards",
    ),
}


@pytest.mark.parametrize(("act", "error", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_no_world_can_be_is_refused_with_its_rule(
    act: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        act()
    assert message in str(caught.value)
