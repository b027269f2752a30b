"""The bank of a guard, leased to shards: it is that of a slow reference, and no adversary spends it twice."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.core.native import available
from surefoot.errors import AssumptionError, ConfigError, DecisionError, InputError
from surefoot.rounds.events import PairHanded, PairHandIn
from surefoot.sharing.coordinator import Coordinator
from surefoot.sharing.pots import PairPot
from tests.policies.guard_reference import Bank
from tests.policies.safe_runs import most_allowed
from tests.sharing.shards import Shard, lease_twice, leave

ALPHA, DELTA = 0.1, 0.05


def new_coordinator(**extra: Any) -> Coordinator:
    return Coordinator(surefoot.Guard(**{"alpha": ALPHA, "delta": DELTA, "ramp": "gate", **extra}), skew=1e9)


class World:
    """Visits of a fleet, whose slack is counted by the truth."""

    def __init__(self, seed: int, shards: int, change: Callable[[Coordinator], Any] = id, **extra: Any) -> None:
        self.rng, self.now, self.slack, self.least = np.random.default_rng(seed), 0.0, 0.0, 0.0
        self.coordinator = new_coordinator(**extra)
        change(self.coordinator)
        self.shards = [Shard(self.coordinator.join(f"s{k}", now=0.0), seed=1000 * seed + k) for k in range(shards)]

    def visit(self, shard: Shard, learner: float, baseline: float, *, is_paid: bool = True) -> None:
        self.now += 1.0
        made = shard.decide(baseline="old", proposal="new", moment=self.now)
        self.slack += made.share * learner + (ALPHA - made.share) * baseline
        self.least = min(self.least, self.slack)
        reward = float(self.rng.random() < (learner if made.source == "learner" else baseline))
        if is_paid:
            shard.observe(made.round, reward)

    def renew(self, shard: Shard) -> None:
        self.now += 0.5
        shard.meet(self.coordinator, self.now)
        assert sum(self.coordinator.leased) <= max(0.0, sum(self.coordinator.pot.totals()))


class NotedPot(PairPot):
    """Notes what each round was booked with, in the order of learning."""

    def __init__(self, guard: surefoot.Guard) -> None:
        super().__init__(guard)
        self.order: list[tuple[str, PairHanded]] = []
        self.numbers: dict[int, tuple[str, int]] = {}
        self.expected: dict[tuple[str, int], tuple[list[float], float]] = {}

    def recall(self, shard: str, handed: PairHanded) -> int:
        self.order.append((shard, handed))
        round_ = super().recall(shard, handed)
        self.numbers[round_] = shard, handed.number
        return round_

    def observe(self, round_: int, values: Any) -> None:
        plan = np.frombuffer(self.policy.settlement.find(round_)[0]).tolist()
        self.expected[self.numbers[round_]] = plan[2:], values["reward"]
        super().observe(round_, values)


def note(coordinator: Coordinator) -> None:
    coordinator.pot = NotedPot(coordinator.policy)


def test_what_was_merged_is_the_bank_of_the_slow_reference() -> None:
    world = World(5, 3, note)
    for turn in range(240):
        shard = world.shards[int(world.rng.integers(3))]
        for _ in range(5):
            world.visit(shard, 0.6, 0.4)
        if turn % 2:
            world.renew(shard)
    for shard in world.shards:
        world.renew(shard)
    pot = world.coordinator.pot
    assert isinstance(pot, NotedPot)
    reference = Bank(1.0, ALPHA, 0.0, 1.0, DELTA)
    moments = [made.moment for _, made in pot.order]
    assert moments == sorted(moments)
    for name, made in pot.order:
        if (name, made.number) not in pot.expected:  # from here on rounds are open, or wait for one that is
            break
        (a, of_a, b, of_b), reward = pot.expected[name, made.number]
        reference.enter(made.share, (a, of_a), (b, of_b), made.is_learner, reward)
    (bank,) = pot.policy.bank_records
    assert bank.entered > 1000
    assert bank.wealth == pytest.approx(reference.wealth, rel=1e-9, abs=1e-9)
    assert bank.bound == pytest.approx(reference.bound(), rel=1e-6, abs=1e-6)
    assert world.least >= 0.0
    assert max(made.share for _, made in pot.order) > 0.5


RESERVE = 20.0


def betrayed(seed: int, shining: int, change: Callable[[Coordinator], Any] = id) -> float:
    """Proposals shine for a while, then earn nothing in every shard at once; the least slack."""
    world = World(seed, 4, change, reserve=RESERVE)
    for _ in range(shining):
        for shard in world.shards:
            for _ in range(10):
                world.visit(shard, 0.9, 0.5)
        world.now += 0.5
        for shard in world.shards:
            shard.meet(world.coordinator, world.now)
    for _ in range(300):  # nobody hands in: each spends what it has
        for shard in world.shards:
            world.visit(shard, 0.0, 1.0, is_paid=False)
    return world.least


def test_an_adversary_who_betrays_all_shards_at_once_stays_above_the_floor() -> None:
    runs = 20
    below = sum(betrayed(seed, seed % 5) < -RESERVE for seed in range(runs))
    assert below <= most_allowed(runs, DELTA)
    assert betrayed(0, 0) < -0.9 * RESERVE  # it spends what it can
    assert betrayed(0, 0, lease_twice) < -3.0 * RESERVE


def test_a_shard_spends_its_lease_and_then_what_is_free() -> None:
    world = World(2, 2, reserve=5.0)
    first, second = world.shards
    assert first.lease.amounts[0] == pytest.approx(4.0)
    assert second.lease.amounts[0] == pytest.approx(1.0)
    assert first.policy.share > 0.9
    for _ in range(100):
        world.visit(first, 0.0, 1.0, is_paid=False)
        world.visit(second, 0.0, 1.0, is_paid=False)
    assert first.policy.share == pytest.approx(ALPHA)
    assert -5.0 <= world.least < -4.5
    world.renew(first)
    assert first.lease.amounts[0] == pytest.approx(0.0, abs=1e-9)  # its rounds are open, at their worst


def test_rounds_that_wait_for_the_watermark_are_charged_meanwhile() -> None:
    world = World(3, 2, reserve=5.0)
    first, _ = world.shards
    world.visit(first, 0.0, 1.0)
    world.renew(first)  # the other one has handed in nothing, so nothing is merged
    assert world.coordinator.policy.rounds == 0
    assert world.coordinator.pot.totals()[0] < 5.0 - 0.8
    settings, bank = world.coordinator.policy.step_settings.metrics[0], world.coordinator.policy.bank_records[0]
    assert available(settings, bank) == pytest.approx(5.0)


def test_a_lost_shard_costs_its_lease_and_may_come_back() -> None:
    world = World(4, 2, reserve=5.0)
    first, second = world.shards
    for _ in range(20):
        world.visit(first, 0.8, 0.2)
        world.visit(second, 0.8, 0.2)
    world.coordinator.lose("s1")
    world.renew(first)
    held = world.coordinator.leased[0]
    assert held >= second.lease.amounts[0]
    before = world.coordinator.policy.bank_records[0].entered
    world.renew(second)  # its rounds count at their worst now
    assert world.coordinator.policy.rounds == 40
    assert world.coordinator.policy.bank_records[0].entered >= before
    assert world.least >= -5.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": 0.9, "draw": 0.95}, {"share": 0.2, "draw": 0.1}, {"share": math.nan}, {"moment": -1.0}, {"number": 2},
        {"share": 0.05, "draw": None}, {"share": -0.1},
    ],
)  # fmt: skip
def test_a_hand_in_that_cannot_be_true_changes_nothing(wrong: dict[str, Any]) -> None:
    coordinator = new_coordinator()
    coordinator.join("a", now=0.0)
    honest = PairHanded(number=1, moment=1.0, is_learner=False, share=0.05, draw=0.5, teaches=True)

    def given(one: PairHanded, rewards: list[Any], through: float = 2.0) -> PairHandIn:
        return PairHandIn(shard="a", token="", lease=1, rounds=[one], rewards=rewards, through=through)

    with pytest.raises(InputError):
        coordinator.take(given(msgspec.structs.replace(honest, **wrong), []), now=2.0)
    for error, rewards in ((AssumptionError, [(1, {"reward": 2.0})]), (InputError, [(2, {"reward": 0.5})])):
        with pytest.raises(error):
            coordinator.take(given(honest, rewards), now=2.0)
    assert (coordinator.policy.rounds, coordinator.members.find("a").rounds) == (0, 0)
    assert coordinator.take(given(honest, [(1, {"reward": 0.5})]), now=2.0)[0].number == 2
    with pytest.raises(InputError, match="once"):
        coordinator.take(given(honest, [], 3.0), now=3.0)


def test_several_metrics_are_leased_each_for_itself() -> None:
    metrics = {"revenue": surefoot.floor(0.0, 2.0, alpha=0.1), "refunds": surefoot.ceiling(0.0, 1.0, alpha=0.1)}
    coordinator = Coordinator(surefoot.Guard(metrics=metrics, delta=DELTA), skew=1e9)
    shard = Shard(coordinator.join("a", now=0.0), seed=1)
    for number in range(1, 200):
        made = shard.decide(baseline=0, proposal=1, moment=float(number))
        shard.observe(made.round, {"revenue": 1.0, "refunds": 0.5})
        if number % 20 == 0:
            shard.meet(coordinator, number + 0.5)
    assert len(shard.lease.amounts) == 2
    assert all(out <= max(0.0, whole) for out, whole in zip(coordinator.leased, coordinator.pot.totals(), strict=True))
    assert coordinator.policy.rounds == 180


def test_what_cannot_be_shared_is_refused() -> None:
    for settings in ({"promise": "played", "reserve": 9.0}, {"seed": 1}, {"settle_after": 5}, {"unit_window": 5}):
        with pytest.raises(ConfigError, match="share"):
            new_coordinator(**settings)
    with pytest.raises(ConfigError, match="Guard"):
        Coordinator(surefoot.UCB(arms=2), skew=1.0)  # type: ignore[arg-type]
    shard = Shard(new_coordinator().join("a", now=5.0))
    made = shard.decide(baseline=0, proposal=1, moment=6.0)
    with pytest.raises(AssumptionError):
        shard.observe(made.round, 2.0)
    shard.observe(made.round, 1.0)
    with pytest.raises(DecisionError, match="pending"):
        shard.observe(made.round, 1.0)
    shard.hand_in(7.0)
    assert (shard.policy.share, shard.decide(baseline=0, proposal=1, moment=8.0).source) == (0.0, "baseline")


def test_a_shard_that_has_left_hands_in_nothing_more() -> None:
    coordinator = new_coordinator(reserve=10.0)
    shard = Shard(coordinator.join("a", now=0.0), seed=1)
    shard.decide(baseline="old", proposal="new", moment=1.0)
    leave(coordinator, shard.hand_in(2.0), now=2.0)
    with pytest.raises(InputError, match="none any more"):
        coordinator.take(PairHandIn(shard="a", token="", lease=1, rounds=[], rewards=[], through=3.0), now=3.0)
    with pytest.raises(InputError, match="NoneType"):
        coordinator.take(None, now=3.0)
    assert coordinator.leased == (0.0,)
    assert coordinator.policy.rounds == 1
