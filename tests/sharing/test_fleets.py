"""Fleets of shards with stale sets, dead shards, skewed traffic and clocks that differ: one floor over all of them."""

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.simulation import ArmsWorld, Baseline, ContextualWorld, PaperWorld, Spec, simulate
from tests.policies.safe_runs import most_allowed
from tests.sharing.fleet import Fleet, simulate_fleet

DELTA = 0.1
FLEETS = {
    2: Fleet(shards=2, every=40, dying=1, patience=200, clocks=3.0),
    8: Fleet(shards=8, every=20, traffic=1.0, dying=3, patience=100, clocks=3.0),
    64: Fleet(shards=64, every=8, traffic=0.7, dying=20, patience=100, clocks=3.0),
}
WORLDS = {
    "fixed": PaperWorld(actions=20, baseline=Baseline(rank=1), delay=5.0),
    "fresh": ContextualWorld(dim=4, actions=8, baseline=Baseline(rank=1), delay=5.0),
    "arms": ArmsWorld(dim=5, actions=5, baseline=Baseline(rank=1), delay=5.0),
}
every_fleet = pytest.mark.parametrize("shards", FLEETS)
every_world = pytest.mark.parametrize("world", WORLDS)


def spec(*, delta: float = DELTA) -> Spec:
    return Spec("SafeLUCB", alpha=0.2, delta=delta, reward_range=(0.0, 1.0))


def runs_below(shards: int, world: str, *, runs: int, horizon: int) -> tuple[int, float]:
    found = simulate_fleet(WORLDS[world], spec(), FLEETS[shards], horizon=horizon, runs=runs, seed=29)
    return sum(run.is_below for run in found), float(np.mean([run.conservative for run in found]))


@every_world
@every_fleet
def test_a_fleet_keeps_one_floor(shards: int, world: str) -> None:
    below, conservative = runs_below(shards, world, runs=8, horizon=400)
    assert below <= most_allowed(8, DELTA)
    assert conservative < 400  # the learner did play


@pytest.mark.long
@every_world
@every_fleet
def test_a_thousand_fleets_keep_one_floor(shards: int, world: str) -> None:
    below, conservative = runs_below(shards, world, runs=1000, horizon=1500)
    print(f"{shards} shards, {world}: {below} of 1,000 below the floor, {conservative:.0f} conservative rounds")
    assert below <= most_allowed(1000, DELTA)


def test_what_leases_cost_grows_with_shards_and_with_the_age_of_their_sets() -> None:
    world, horizon, runs = PaperWorld(actions=20), 1000, 2
    (alone,) = simulate(world, [spec()], runs=runs, horizon=horizon, seed=3)
    one_ledger = float(alone.measures["baseline_rounds"][:, -1].mean())
    cost = {}
    for fleet in (Fleet(1, every=1), Fleet(8, every=5), Fleet(8, every=80)):
        found = simulate_fleet(world, spec(), fleet, horizon=horizon, runs=runs, seed=3)
        cost[fleet] = float(np.mean([run.conservative for run in found]))
    often, eight, stale = cost.values()
    assert one_ledger < often < eight < stale < horizon


def test_dead_shards_cost_their_leases_and_nothing_else() -> None:
    fleet = Fleet(shards=8, every=10, dying=4, patience=50)
    (found,) = simulate_fleet(PaperWorld(actions=20), spec(), fleet, horizon=1500, seed=2)
    assert found.rounds == 1500
    assert found.conservative < 1200
    assert not found.is_below


def test_the_same_seed_gives_the_same_fleet() -> None:
    one, two = (simulate_fleet(WORLDS["fixed"], spec(), FLEETS[8], horizon=200, seed=5) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("bad", [{"shards": 0}, {"shards": 2, "dying": 2}, {"shards": 2, "traffic": -1.0}])
def test_a_fleet_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises((ConfigError, ValueError)):
        Fleet(**bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="SafeLUCB"):
        simulate_fleet(WORLDS["fixed"], Spec("CLUCB", alpha=0.1), Fleet(2), horizon=10)
