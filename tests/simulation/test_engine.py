"""The engine equals the policy objects, decision by decision, on the same noise, and depends on its seed alone."""

from typing import Any

import numpy as np
import pytest

from surefoot.core import native
from surefoot.errors import ConfigError
from surefoot.simulation.engine import MEASURES, ObjectRunner, Runner, default_checkpoints, play_chunk, simulate
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rewards import Bernoulli, Bounded, Gaussian
from surefoot.simulation.worlds import ArmsWorld, Baseline, ContextualWorld, PaperWorld, World

SPECS = {
    "LUCB": Spec("LUCB", delta=0.05),
    "CLUCB": Spec("CLUCB", alpha=0.3, delta=0.05, ridge=0.3),
    "CLUCB2": Spec("CLUCB2", alpha=0.5, delta=0.05, ridge=0.3),
    "SafeLUCB": Spec("SafeLUCB", alpha=0.3, delta=0.05),
    "SafeLUCB, known": Spec("SafeLUCB", alpha=0.3, delta=0.05, knows_baseline=True, reward_range=(-9.0, 9.0)),
    "SafeLUCB, range": Spec("SafeLUCB", alpha=0.3, delta=0.05, ridge=0.3, reward_range=(-9.0, 9.0), optimism="facts"),
    "SafeLUCB, joint": Spec("SafeLUCB", alpha=0.3, delta=0.05, gate="joint", radius="paper", ridge=0.3),
    "SafeLUCB, ledger": Spec("SafeLUCB", alpha=0.3, delta=0.05, gate="ledger", radius="residual"),
    "SafeLUCB, dual": Spec("SafeLUCB", alpha=0.3, delta=0.05, radius="dual", ridge=0.3),
    "SafeLUCB, checkpoints": Spec(
        "SafeLUCB", alpha=0.3, delta=0.05, constraint={"name": "checkpoints", "every": 9}, radius="logdet"
    ),
    "SafeLUCB, realised path": Spec(
        "SafeLUCB", alpha=0.3, delta=0.05, constraint={"name": "realised_path", "lowest_reward": -0.4}
    ),
    "SafeLUCB, stagewise": Spec("SafeLUCB", alpha=0.5, delta=0.05, constraint="stagewise"),
    "UCB": Spec("UCB"),
    "ConservativeUCB": Spec("ConservativeUCB", alpha=0.55, delta=0.05),
    "ConservativeUCB, known": Spec("ConservativeUCB", alpha=0.55, delta=0.05, knows_baseline=True),
}
WORLDS: dict[str, World] = {
    "paper": PaperWorld(rewards=Gaussian(0.05), actions=12, dim=3, baseline=Baseline(rank=4)),
    "paper, late": PaperWorld(rewards=Gaussian(0.05), actions=12, dim=3, baseline=Baseline(rank=4), delay=6.0),
    "contextual": ContextualWorld(rewards=Gaussian(0.02), actions=5, dim=3, baseline=Baseline(rank=2)),
    "contextual, late, many dims": ContextualWorld(
        rewards=Bounded(0.05), actions=6, dim=14, baseline=Baseline(action=1), delay=4.0
    ),
    "arms": ArmsWorld(actions=5, dim=5, rewards=Gaussian(0.05), baseline=Baseline(rank=2), low=0.2),
    "clicks": ArmsWorld(actions=4, dim=4, rewards=Bernoulli(), baseline=Baseline(rank=2), low=0.2),
}


def trace(kind: Any, spec: Spec, world: World, *, run: int, rounds: int) -> tuple[list[int], Any]:
    realisation = world.realisations(3, [run])[0]
    first = realisation.take(rounds // 2)
    runner = kind(spec, realisation.problem(first), first.features[0] if world.fixed else None)
    tally = native.Tally([0.3])
    played: list[int] = []
    for block in (first, realisation.take(rounds - rounds // 2)):
        rows = np.zeros(block.draws.size, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.int64)
        runner.play(block, realisation, tally, nothing, np.zeros((0, tally.size)), rows)
        played.extend(rows.tolist())
    return played, tally.row()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", SPECS)
def test_the_engine_equals_the_policy_objects_decision_by_decision(name: str, world: str) -> None:
    spec, where = SPECS[name], WORLDS[world]
    if spec.policy in ("UCB", "ConservativeUCB") and not where.fixed:
        with pytest.raises(ConfigError, match="plays plain arms"):
            spec.check(where)
        return
    seen = set()
    for run in range(3):
        fast, fast_tally = trace(Runner, spec, where, run=run, rounds=700)
        slow, slow_tally = trace(ObjectRunner, spec, where, run=run, rounds=700)
        assert fast == slow
        assert fast_tally == pytest.approx(slow_tally, rel=1e-12)
        seen |= {row >= 0 for row in fast}
    assert True in seen or spec.constraint == "stagewise"
    if name.startswith("C") and world in ("paper", "arms"):
        assert False in seen, "both sources must have been compared"


def test_the_same_seed_gives_the_same_bits_whatever_the_threads_and_the_blocks() -> None:
    specs = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("CLUCB2", alpha=0.1)]
    for world in (PaperWorld(), ContextualWorld(delay=3.0)):
        one = simulate(world, specs, runs=45, horizon=300, seed=5, threads=1)
        two = simulate(world, specs, runs=45, horizon=300, seed=5, threads=2)
        for a, b in zip(one, two, strict=True):
            assert all(np.array_equal(a.measures[key], b.measures[key]) for key in a.measures)
            assert np.array_equal(a.violations, b.violations)
        common = {"runs": range(4), "horizon": 300, "seed": 5, "watched": [0.1], "checkpoints": np.array([7, 300])}
        long = play_chunk(world, specs, **common).counts  # type: ignore[arg-type]
        short = play_chunk(world, specs, blocks=13, **common).counts  # type: ignore[arg-type]
        assert all(np.array_equal(a, b) for a, b in zip(long, short, strict=True))
        other = simulate(world, specs, runs=45, horizon=300, seed=6, threads=2)
        assert not np.array_equal(one[0].measures["regret"], other[0].measures["regret"])


def test_counts_are_what_the_actions_say() -> None:
    world = PaperWorld()
    realisation = world.realisations(1, [0])[0]
    points = default_checkpoints(400)
    (found,) = simulate(world, [Spec("CLUCB", alpha=0.4)], runs=1, horizon=400, seed=1, watched=[0.05])
    block = realisation.take(400)
    assert isinstance(found.spec, Spec)
    runner = Runner(found.spec, realisation.problem(block), block.features[0])
    rows = np.zeros(400, dtype=np.int64)
    tally = native.Tally([])
    runner.play(block, realisation, tally, points[:0], np.zeros((0, tally.size)), rows)
    means = block.means[0]
    earned = np.cumsum(means[np.where(rows >= 0, rows, -1 - rows)])
    owed = np.cumsum(means[block.baselines])
    at = points - 1
    assert found.measures["regret"][0] == pytest.approx(np.cumsum(means.max() - np.diff(earned, prepend=0))[at])
    assert found.measures["baseline_rounds"][0] == pytest.approx(np.cumsum(rows < 0)[at])
    assert found.measures["worst_share"][0] == pytest.approx(np.minimum.accumulate(earned / owed)[at])
    for i, alpha in enumerate(found.watched):
        below = np.cumsum(earned < (1 - alpha) * owed * (1 - 1e-12))
        assert found.violations[0, :, i] == pytest.approx(below[at])


def test_memory_does_not_grow_with_the_horizon() -> None:
    for horizon in (500, 50_000):
        (found,) = simulate(PaperWorld(actions=10), [Spec("LUCB")], runs=2, horizon=horizon)
        assert found.measures["regret"].shape[1] <= 166


def test_features_longer_than_the_declared_bound_stop_the_run() -> None:
    from surefoot.simulation.worlds import FunctionWorld

    world = FunctionWorld(
        dim=2,
        actions=2,
        baseline=Baseline(action=0),
        function=lambda rng: np.array([[0.5, 0.5], [1.0, 1.0 + rng.random()]]),
        theta=(0.3, 0.3),
        feature_bound=1.5,
    )
    with pytest.raises(ConfigError, match=r"no longer than the world's feature_bound=1.5, but in round \d+ one is"):
        simulate(world, [Spec("LUCB")], runs=2, horizon=200)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"policy": "CLUCBB", "alpha": 0.1},
            r"`policy` must be one that can be simulated, but got 'CLUCBB'. Did you mean",
        ),
        ({"policy": "CLUCB"}, r"`alpha` must be given for CLUCB"),
        ({"policy": "LUCB", "alpha": 0.1}, r"`alpha` must not be given for LUCB"),
        ({"policy": "CLUCB", "alpha": 1.0}, r"`0 < alpha < 1` must hold"),
        ({"policy": "CLUCB2", "alpha": 0.1, "floor_share": 2.0}, r"`0 <= floor_share <= 1` must hold"),
        ({"policy": "UCB", "radius": "amm"}, r"`radius` must not be given for UCB: it is a setting of LUCB, CLUCB"),
        ({"policy": "ConservativeUCB", "alpha": 0.1, "ridge": 2.0}, r"`ridge` must not be given for ConservativeUCB"),
        ({"policy": "CLUCB", "alpha": 0.1, "floor_share": 0.5}, r"`floor_share` must not be given for CLUCB:"),
        ({"policy": "CLUCB", "alpha": 0.1, "exploration": 1.0}, r"`exploration` must not be given for CLUCB:"),
        ({"policy": "LUCB", "exploration": 0.0}, r"`exploration"),
        ({"policy": "LUCB", "exploration": 1.0, "radius": "amm"}, r"`radius` must not be given with `exploration`"),
        ({"policy": "CLUCB2", "alpha": 0.1, "knows_baseline": True}, r"`knows_baseline` must not be given for CLUCB2"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Spec(**wrong)


@pytest.mark.parametrize(("setting", "value"), [("runs", 0), ("horizon", 0), ("horizon", -5), ("runs", 2.5)])
def test_impossible_scales_are_refused(setting: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"`{setting}` must be a whole number >= 1"):
        simulate(PaperWorld(), [Spec("LUCB")], **{"runs": 2, "horizon": 10, setting: value})


@pytest.mark.parametrize("owed", [1.0, -1.0])  # a world without a floor may owe less than nothing
def test_violations_are_counted_for_every_alpha_that_is_watched(owed: float) -> None:
    alphas = [0.4, 0.05, 0.8, 0.1]  # in no order
    tally, rng = native.Tally(alphas), np.random.default_rng(5)
    earned, expected = 0.0, np.zeros(len(alphas))
    for round_ in range(1, 400):
        mean = float(rng.uniform(-0.8, 1.2) if round_ < 200 else rng.uniform(1.0, 3.0)) * owed
        tally.count(mean, 3.0, owed, True)
        earned += mean
        # Far from equality, as random numbers are, the slack for rounding is no matter.
        expected += [earned < (1 - alpha) * owed * round_ for alpha in alphas]
    assert tally.row()[len(MEASURES) :].tolist() == expected.tolist()
    assert len(set(expected)) == len(alphas)
    assert 0 < expected.min() < expected.max() < 399
