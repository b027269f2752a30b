"""The bank of a guard, leased to shards: it is that of a slow reference, and no adversary spends it twice."""

import math
from typing import Any

import numpy as np
import pytest
from surefoot.leases import GuardCoordinator, GuardHandIn, GuardRound, GuardShard
from surefoot.leases.merging import Member

import surefoot
from surefoot.core.native import available
from surefoot.errors import AssumptionError, ConfigError, DecisionError, InputError
from tests.policies.guard_reference import Bank
from tests.policies.safe_runs import most_allowed

ALPHA, DELTA = 0.1, 0.05


def new_coordinator(kind: type[GuardCoordinator] = GuardCoordinator, **extra: Any) -> GuardCoordinator:
    return kind(surefoot.Guard(**{"alpha": ALPHA, "delta": DELTA, "ramp": "gate", **extra}), skew=1e9)


class World:
    """Visits of a fleet, whose slack is counted by the truth."""

    def __init__(self, seed: int, shards: int, kind: type[GuardCoordinator] = GuardCoordinator, **extra: Any) -> None:
        self.rng, self.now, self.slack, self.least = np.random.default_rng(seed), 0.0, 0.0, 0.0
        self.coordinator = new_coordinator(kind, **extra)
        self.shards = [GuardShard(self.coordinator.join(f"s{k}", now=0.0), seed=1000 * seed + k) for k in range(shards)]

    def visit(self, shard: GuardShard, learner: float, baseline: float, *, is_paid: bool = True) -> None:
        self.now += 1.0
        made = shard.decide(baseline="old", proposal="new", moment=self.now)
        self.slack += made.share * learner + (ALPHA - made.share) * baseline
        self.least = min(self.least, self.slack)
        reward = float(self.rng.random() < (learner if made.source == "learner" else baseline))
        if is_paid:
            shard.observe(made.round, reward)

    def renew(self, shard: GuardShard) -> None:
        self.now += 0.5
        shard.renew(self.coordinator.take(shard.hand_in(self.now), now=self.now))
        assert sum(self.coordinator.leased) <= max(0.0, sum(self.coordinator.pot))


class Noted(GuardCoordinator):
    """Notes what each round was booked with, in the order of learning."""

    def __init__(self, guard: surefoot.Guard, *, skew: float) -> None:
        super().__init__(guard, skew=skew)
        self.expected: dict[tuple[str, int], list[float]] = {}
        self.order: list[tuple[str, GuardRound]] = []

    def _count(self, name: str, made: Any) -> None:
        self.order.append((name, made))
        super()._count(name, made)

    def _reward(self, member: Any, key: tuple[str, int], reward: Any) -> None:
        if key in self._rounds:
            self.expected[key] = np.frombuffer(self.policy._settlement.find(self._rounds[key])[0]).tolist()[2:]
        super()._reward(member, key, reward)


def test_what_was_merged_is_the_bank_of_the_slow_reference() -> None:
    world, rewards = World(5, 3, Noted), dict[tuple[str, int], float]()
    for turn in range(240):
        shard = world.shards[int(world.rng.integers(3))]
        for _ in range(5):
            world.visit(shard, 0.6, 0.4)
        rewards |= {(shard.lease.shard, number): reward for number, reward in shard.policy._settled}
        if turn % 2:
            world.renew(shard)
    for shard in world.shards:
        world.renew(shard)
    coordinator = world.coordinator
    assert isinstance(coordinator, Noted)
    reference = Bank(1.0, ALPHA, 0.0, 1.0, DELTA)
    moments = [made.moment for _, made in coordinator.order]
    assert moments == sorted(moments)
    for name, made in coordinator.order:
        key = name, made.number
        if key not in coordinator.expected:  # from here on rounds are open, or wait for one that is
            break
        a, of_a, b, of_b = coordinator.expected[key]
        reference.enter(made.share, (a, of_a), (b, of_b), made.is_learner, rewards[key])
    (bank,) = coordinator.policy.bank_records
    assert bank.entered > 1000
    assert bank.wealth == pytest.approx(reference.wealth, rel=1e-9, abs=1e-9)
    assert bank.bound == pytest.approx(reference.bound(), rel=1e-6, abs=1e-6)
    assert world.least >= 0.0
    assert max(made.share for _, made in coordinator.order) > 0.5


class Doubled(GuardCoordinator):
    """What a coordinator must not do: lease the same money to each shard."""

    def _amount(self, member: Member) -> tuple[float, ...]:
        return tuple(max(0.0, amount) for amount in self.pot)


RESERVE = 20.0


def betrayed(seed: int, kind: type[GuardCoordinator], shining: int) -> float:
    """Proposals shine for a while, then earn nothing in every shard at once; the least slack."""
    world = World(seed, 4, kind, reserve=RESERVE)
    for _ in range(shining):
        for shard in world.shards:
            for _ in range(10):
                world.visit(shard, 0.9, 0.5)
        world.now += 0.5
        for shard in world.shards:
            shard.renew(world.coordinator.take(shard.hand_in(world.now), now=world.now))
    for _ in range(300):  # nobody hands in: each spends what it has
        for shard in world.shards:
            world.visit(shard, 0.0, 1.0, is_paid=False)
    return world.least


def test_an_adversary_who_betrays_all_shards_at_once_stays_above_the_floor() -> None:
    runs = 20
    below = sum(betrayed(seed, GuardCoordinator, seed % 5) < -RESERVE for seed in range(runs))
    assert below <= most_allowed(runs, DELTA)
    assert betrayed(0, GuardCoordinator, 0) < -0.9 * RESERVE  # it spends what it can
    assert betrayed(0, Doubled, 0) < -3.0 * RESERVE


def test_a_shard_spends_its_lease_and_then_what_is_free() -> None:
    world = World(2, 2, reserve=5.0)
    first, second = world.shards
    assert first.lease.amounts[0] == pytest.approx(4.0)
    assert second.lease.amounts[0] == pytest.approx(1.0)
    assert first.share > 0.9
    for _ in range(100):
        world.visit(first, 0.0, 1.0, is_paid=False)
        world.visit(second, 0.0, 1.0, is_paid=False)
    assert first.share == pytest.approx(ALPHA)
    assert -5.0 <= world.least < -4.5
    world.renew(first)
    assert first.lease.amounts[0] == pytest.approx(0.0, abs=1e-9)  # its rounds are open, at their worst


def test_rounds_that_wait_for_the_watermark_are_charged_meanwhile() -> None:
    world = World(3, 2, reserve=5.0)
    first, _ = world.shards
    world.visit(first, 0.0, 1.0)
    world.renew(first)  # the other one has handed in nothing, so nothing is merged
    assert world.coordinator.policy.rounds == 0
    assert world.coordinator.pot[0] < 5.0 - 0.8
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
        {"share": 0.05, "draw": math.nan}, {"share": -0.1},
    ],
)  # fmt: skip
def test_a_hand_in_that_cannot_be_true_changes_nothing(wrong: dict[str, Any]) -> None:
    coordinator = new_coordinator()
    coordinator.join("a", now=0.0)
    told: dict[str, Any] = {
        "number": 1, "moment": 1.0, "share": 0.05, "draw": 0.5, "is_learner": False, "teaches": True, **wrong
    }  # fmt: skip
    with pytest.raises(InputError):
        coordinator.take(GuardHandIn("a", 1, (GuardRound(**told),), (), 2.0), now=2.0)
    for rewards in (((1, 2.0),), ((2, 0.5),)):
        honest = GuardRound(1, 1.0, 0.05, 0.5, False, True)
        with pytest.raises(InputError):
            coordinator.take(GuardHandIn("a", 1, (honest,), rewards, 2.0), now=2.0)
    assert (coordinator.policy.rounds, coordinator.members.find("a").rounds) == (0, 0)
    honest = GuardRound(1, 1.0, 0.05, 0.5, False, True)
    assert coordinator.take(GuardHandIn("a", 1, (honest,), ((1, 0.5),), 2.0), now=2.0).number == 2
    with pytest.raises(InputError, match="once"):
        coordinator.take(GuardHandIn("a", 1, (honest,), (), 3.0), now=3.0)


def test_several_metrics_are_leased_each_for_itself() -> None:
    metrics = {"revenue": surefoot.floor(0.0, 2.0, alpha=0.1), "refunds": surefoot.ceiling(0.0, 1.0, alpha=0.1)}
    coordinator = GuardCoordinator(surefoot.Guard(metrics=metrics, delta=DELTA), skew=1e9)
    shard = GuardShard(coordinator.join("a", now=0.0), seed=1)
    for number in range(1, 200):
        made = shard.decide(baseline=0, proposal=1, moment=float(number))
        shard.observe(made.round, {"revenue": 1.0, "refunds": 0.5})
        if number % 20 == 0:
            now = number + 0.5
            shard.renew(coordinator.take(shard.hand_in(now), now=now))
    assert len(shard.lease.amounts) == 2
    assert all(out <= max(0.0, whole) for out, whole in zip(coordinator.leased, coordinator.pot, strict=True))
    assert coordinator.policy.rounds == 180


def test_what_cannot_be_shared_is_refused() -> None:
    for settings in ({"promise": "played", "reserve": 9.0}, {"seed": 1}, {"settle_after": 5}, {"unit_window": 5}):
        with pytest.raises(ConfigError, match="share"):
            new_coordinator(**settings)
    with pytest.raises(ConfigError, match="Guard"):
        GuardCoordinator(surefoot.UCB(arms=2), skew=1.0)  # type: ignore[arg-type]
    shard = GuardShard(new_coordinator().join("a", now=5.0))
    with pytest.raises(InputError, match="moment"):
        shard.decide(baseline=0, proposal=1, moment=4.0)
    made = shard.decide(baseline=0, proposal=1, moment=6.0)
    with pytest.raises(AssumptionError):
        shard.observe(made.round, 2.0)
    shard.observe(made.round, 1.0)
    with pytest.raises(DecisionError, match="pending"):
        shard.observe(made.round, 1.0)
    shard.hand_in(7.0)
    assert (shard.share, shard.decide(baseline=0, proposal=1, moment=8.0).source) == (0.0, "baseline")
    with pytest.raises(InputError, match="once"):
        shard.hand_in(9.0)


def test_a_shard_that_has_left_hands_in_nothing_more() -> None:
    coordinator = new_coordinator(reserve=10.0)
    shard = GuardShard(coordinator.join("a", now=0.0), seed=1)
    shard.decide(baseline="old", proposal="new", moment=1.0)
    given = shard.hand_in(2.0)
    coordinator.leave(given, now=2.0)
    for call in (coordinator.leave, coordinator.take):
        with pytest.raises(InputError, match="none any more"):
            call(GuardHandIn("a", 1, (), (), 3.0), now=3.0)
    for call in (coordinator.leave, coordinator.take):
        with pytest.raises(InputError, match="GuardHandIn"):
            call(None, now=3.0)  # type: ignore[arg-type]
    assert coordinator.leased == (0.0,)
    assert coordinator.policy.rounds == 1
