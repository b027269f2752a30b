"""Adversaries that choose what a policy learns, with every declaration true: the floor must hold all the same.

A set is valid for rewards that are learned in the order of their decisions, by a rule that is settled when they are
decided. Then rows may follow whatever happened, and rewards may come whenever and in whatever order they like.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefoot
from surefoot.client import Client
from surefoot.errors import DecisionError
from surefoot.experiment import Experiment
from surefoot.policies import Policy
from surefoot.service.settings import Settings
from tests.experiment.worlds import PAPER, POLICIES, World
from tests.policies.adversaries import (
    WORTH,
    Direct,
    InOrder,
    Journaled,
    Luck,
    Player,
    Served,
    a_change_after_luck,
    a_stack,
    bad_news_late,
    bad_news_of_the_learner_late,
    runs_below,
)
from tests.policies.safe_runs import GATES, most_allowed
from tests.service.servers import running

LUCK = {0.2: Luck(odds=0.13, streak=2, visits=300), 0.01: Luck(odds=0.15, streak=4, visits=3000)}
RUNS = {0.2: 40, 0.01: 20}
COIN = Luck(odds=0.5)
LOSS = Luck(odds=0.5, visits=3500, mean=-WORTH)
RADII = ("amm", "logdet", "dual", "residual")

every_radius = pytest.mark.parametrize("radius", RADII)
every_gate = pytest.mark.parametrize("gate", GATES)
every_delta = pytest.mark.parametrize("delta", LUCK)
every_set = pytest.mark.parametrize(  # at the small delta, which takes long, not every pair
    ("radius", "gate", "delta"),
    [(radius, gate, 0.2) for radius in RADII for gate in GATES]
    + [(radius, gate, 0.01) for radius in RADII for gate in GATES if radius == "amm" or gate == "facts"],
)


def safe(luck: Luck, delta: float, **extra: Any) -> Callable[[int], Player]:
    return lambda _: Direct(surefoot.SafeLUCB(**luck.declared(delta, **extra)))


def latest(luck: Luck, delta: float, **extra: Any) -> Callable[[int], Player]:
    return lambda _: Direct(surefoot.CLUCB2(**luck.declared(delta, nesting="latest", **extra)))


def known(luck: Luck, delta: float) -> Callable[[int], Player]:
    return lambda _: Direct(surefoot.CLUCB(**luck.declared(delta)))


@every_set
def test_a_stack_of_rewards_newest_first_does_not_break_the_floor(radius: str, gate: str, delta: float) -> None:
    """The order never looks at a reward; the rows do, and so a reward says something of those that came before it."""
    player = safe(LUCK[delta], delta, radius=radius, gate=gate)
    below = runs_below(a_stack, player, LUCK[delta], runs=RUNS[delta], seed=41)
    assert below <= most_allowed(RUNS[delta], delta)


@every_gate
@every_radius
def test_the_same_visits_with_the_oldest_reward_first_do_not_break_the_floor(radius: str, gate: str) -> None:
    """The control: it is the order that breaks it, and not the visits."""
    player = safe(LUCK[0.2], 0.2, radius=radius, gate=gate)
    below = runs_below(partial(a_stack, newest_first=False), player, LUCK[0.2], runs=40, seed=41)
    assert below <= most_allowed(40, 0.2)


@every_delta
@pytest.mark.parametrize("radius", ["amm", "logdet", "residual"])
def test_a_stack_does_not_break_the_floor_of_an_unknown_baseline(radius: str, delta: float) -> None:
    player = latest(LUCK[delta], delta, radius=radius)
    below = runs_below(a_stack, player, LUCK[delta], runs=RUNS[delta], seed=42)
    assert below <= most_allowed(RUNS[delta], delta)


def test_a_stack_at_an_early_end_of_the_day_does_not_break_the_papers_policy() -> None:
    """The paper's radius counts visits that show nothing; without them a streak of four prizes is enough."""
    luck = Luck(odds=0.2, streak=4, visits=1500)
    below = runs_below(partial(a_stack, early=True), latest(luck, 0.2), luck, runs=40, seed=43)
    assert below <= most_allowed(40, 0.2)


@every_set
def test_bad_news_that_come_late_do_not_break_the_floor(radius: str, gate: str, delta: float) -> None:
    """What is learned is all that happened up to some round, whoever chooses the round."""
    player = safe(COIN, delta, radius=radius, gate=gate)
    assert runs_below(bad_news_late, player, COIN, runs=40, seed=44) <= most_allowed(40, delta)


@every_delta
@every_radius
def test_bad_news_that_hold_up_good_ones_do_not_break_the_floor(radius: str, delta: float) -> None:
    """The control: the same arrivals, each held back by the caller until all earlier ones have come."""
    player = safe(COIN, delta, radius=radius)
    below = runs_below(bad_news_late, lambda index: InOrder(player(index)), COIN, runs=40, seed=44)
    assert below <= most_allowed(40, delta)


@pytest.mark.parametrize("policy", ["CLUCB", "SafeLUCB"])
def test_bad_news_of_the_learners_own_rounds_do_not_break_the_floor(policy: str) -> None:
    """Where the baseline is known only these teach; and the realised sum, a fact of its own, must be in order too."""
    player = safe(LOSS, 0.01, realised_share=0.3) if policy == "SafeLUCB" else known(LOSS, 0.01)
    assert runs_below(bad_news_of_the_learner_late, player, LOSS, runs=10, seed=49) <= most_allowed(10, 0.01)


@every_set
@pytest.mark.parametrize("is_told", [True, False], ids=["known", "unknown"])
def test_a_baseline_that_changes_after_luck_does_not_break_the_floor(
    radius: str, gate: str, delta: float, is_told: bool
) -> None:
    """Rewards of a baseline that is known and stays teach nothing; a change must not make old ones teach."""
    player = safe(LUCK[delta], delta, radius=radius, gate=gate)
    play = partial(a_change_after_luck, is_told=is_told)
    assert runs_below(play, player, LUCK[delta], runs=RUNS[delta], seed=45) <= most_allowed(RUNS[delta], delta)


def journaled(luck: Luck, delta: float) -> Callable[[int], Player]:
    def new(_: int) -> Player:
        policy = surefoot.SafeLUCB(**luck.declared(delta))
        return Journaled(Experiment.create(surefoot.open_journal("memory:"), "shop", policy, mode="guarded"))

    return new


SCENES: dict[str, tuple[Any, Luck, float]] = {
    "a stack": (a_stack, LUCK[0.2], 0.2),
    "a change after luck": (partial(a_change_after_luck, is_told=True), LUCK[0.2], 0.2),
    "bad news late": (bad_news_late, COIN, 0.01),
}


@pytest.mark.parametrize("scene", SCENES)
def test_no_adversary_breaks_the_floor_of_an_experiment(scene: str) -> None:
    """On arrival, without a window: the journal keeps what came when, the policy learns in the order of decisions."""
    play, luck, delta = SCENES[scene]
    below = runs_below(play, journaled(luck, delta), luck, runs=20, seed=46)
    assert below <= most_allowed(20, delta)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("adversaries")
    with running(Settings(database=str(folder / "shop.journal"))) as address, Client(address, patience=120) as client:
        yield client


def test_bad_news_that_come_late_do_not_break_the_floor_of_a_service(client: Client) -> None:
    def served(index: int) -> Player:
        client.create_experiment(f"shop-{index}", COIN.declared(0.01), mode="guarded")
        return Served(client, f"shop-{index}")

    assert runs_below(bad_news_late, served, COIN, runs=8, seed=47) <= most_allowed(8, 0.01)


ROUNDS = 14
LEARNERS = {name: POLICIES[name] for name in ("SafeLUCB", "CLUCB2 latest", "LUCB", "UCB", "ConservativeUCB")}
LEARNERS["CLUCB"] = lambda: surefoot.CLUCB(**{**PAPER, "alpha": 0.9})  # learns from the learner's rounds alone


def decided(name: str) -> tuple[Policy, list[float]]:
    """A policy with open rounds, and their rewards; of very different size, so that the order of sums shows."""
    policy, world = LEARNERS[name](), World(name, seed=48)
    rewards = world.rng.choice([-1.0, 1.0], size=ROUNDS) * 10.0 ** world.rng.uniform(-9, 9, size=ROUNDS)
    sources = [policy.decide(**world.question()).source for _ in range(ROUNDS)]
    assert sources.count("learner") > 2 or name not in ("CLUCB", "SafeLUCB")
    return policy, rewards.tolist()


def learned(policy: Policy) -> bytes:
    state = policy.state()
    return bytes(state["ridge" if "ridge" in state else "arms"].tobytes())


def in_order(name: str) -> bytes:
    policy, rewards = decided(name)
    for index, reward in enumerate(rewards):
        policy.observe(index + 1, reward)
    return learned(policy)


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    order=st.permutations(range(ROUNDS)),
    repeated=st.sets(st.integers(0, ROUNDS - 1)),
    restart=st.integers(0, ROUNDS),
)
def test_any_order_of_arrival_teaches_the_same_to_the_bit(
    name: str, order: list[int], repeated: set[int], restart: int
) -> None:
    """With rewards that come twice, and a restart while some of them wait for earlier ones."""
    policy, rewards = decided(name)
    for arrival, index in enumerate(order):
        if arrival == restart:
            policy = Policy.from_state(policy.state())
        policy.observe(index + 1, rewards[index])
        if index in repeated:
            with pytest.raises(DecisionError):
                policy.observe(index + 1, rewards[index])
    assert policy.pending == ()
    assert learned(policy) == in_order(name)
