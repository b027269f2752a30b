"""The bank of a guard, shared by experiments: journals of their own, servers that come, go and die, and one audit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot.errors import ConfigError, InputError, JournalUnavailableError
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import Journal
from surefoot.sharing import hub as hub_module
from surefoot.sharing.coordinator import Coordinator
from surefoot.sharing.pots import PairPot
from tests.sharing.experiments import GUARD, NAME, Away, GuardFleet, GuardWorld, at, findings, seeded_coins
from tests.sharing.shards import ALPHA

RESERVE = GUARD["reserve"]


@pytest.fixture(autouse=True)
def coins(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded_coins(monkeypatch, 11)


@pytest.fixture
def fleet(tmp_path: Path, hub: Journal) -> Iterator[GuardFleet]:
    fleet = GuardFleet(tmp_path, hub)
    yield fleet
    fleet.close()


def test_shards_earn_together_and_no_lease_is_more_than_the_bank(tmp_path: Path, hub: Journal) -> None:
    fleet = GuardFleet(tmp_path, hub, ramp="auto")
    world, shops = GuardWorld(3), [fleet.join(name) for name in ("berlin", "tokyo", "lima")]
    for turn in range(90):
        world.play(shops[turn % 3], 8, 0.9, 0.5)
    for shop in shops:
        shop.leases.renew()
    rounds, leased, pot = at(shops[0], lambda it: (it.policy.rounds, it.leased, it.pot.totals()))
    assert rounds == 720
    assert 0.0 < leased[0] <= pot[0]
    assert pot[0] > RESERVE + 10.0  # the proposal earned it
    assert world.least >= -RESERVE
    assert shops[0].status().guard.allowed > 0.9
    assert findings(fleet.audit()) == []
    fleet.close()


def test_a_shard_that_is_opened_again_goes_on_under_what_is_left_of_its_lease(fleet: GuardFleet) -> None:
    world, shop = GuardWorld(5), fleet.join("a", every=1000)
    for _ in range(3):
        world.visit(shop, 0.0, 1.0, is_paid=False)
    open_, before = shop.decide(baseline="old", proposal="new"), shop.status()
    again = fleet.join("a", every=1000)
    assert again.status().guard == before.guard
    assert 0.0 < again.status().guard.metrics["reward"].bank < 2.0
    assert again.find(open_.decision_id).action == open_.action
    assert again.reward(open_.decision_id, 1.0).is_accepted
    again.leases.renew()
    assert findings(fleet.audit()) == []


def test_while_the_hub_is_away_a_shard_spends_its_lease_and_then_only_what_is_free(
    tmp_path: Path, hub: Journal
) -> None:
    away: Any = Away(hub)
    fleet, world = GuardFleet(tmp_path, away), GuardWorld(6)
    shop = fleet.join("a")
    away.is_away = True
    shares = [world.visit(shop, 0.0, 1.0, is_paid=False).share for _ in range(60)]
    assert shares[0] > 0.9
    assert shares[-1] == pytest.approx(ALPHA, abs=1e-6)
    assert -RESERVE <= world.least < -0.7 * RESERVE
    with pytest.raises(JournalUnavailableError):
        shop.leases.renew()
    away.is_away = False
    shop.leases.renew()
    assert at(shop, lambda it: it.policy.rounds) == 60
    assert findings(fleet.audit()) == []
    fleet.close()


def test_a_lost_shard_costs_its_lease_and_may_come_back_and_another_leaves(fleet: GuardFleet) -> None:
    world, a, b, c = GuardWorld(8), fleet.join("a"), fleet.join("b"), fleet.join("c")
    for shop in (a, b, c):
        world.play(shop, 25)
    fleet.journals["b"].close()
    entered = at(a, lambda it: it.policy.bank_records[0].entered)
    a.leases.hub.lose("b", reason="its machine is gone")
    c.leases.leave()
    assert world.visit(c, 0.8, 0.6).share == 0.0
    world.play(a, 40)
    assert at(a, lambda it: it.policy.bank_records[0].entered) > entered + 20
    assert at(a, lambda it: (it.members.find("c").amounts, bool(it.members.find("b").amounts))) == ((), True)
    back = fleet.join("b")
    world.play(back, 25)
    back.leases.renew()
    a.leases.renew()
    assert at(a, lambda it: it.policy.rounds) > 130
    assert world.least >= -RESERVE
    assert findings(fleet.audit()) == []


def test_windows_several_metrics_and_predictions_come_through(tmp_path: Path, hub: Journal) -> None:
    metrics = {
        "revenue": surefoot.floor(0.0, 2.0, alpha=0.1, reserve=4.0, default=0.5),
        "refunds": surefoot.ceiling(0.1, 1.0, alpha=0.2, reserve=3.0),
    }
    settings: dict[str, Any] = {"alpha": None, "reserve": 0.0, "metrics": metrics}
    fleet, world = GuardFleet(tmp_path, hub, reward_window=5.0, **settings), GuardWorld(9)
    shops = [fleet.join(name) for name in ("a", "b")]
    for n in range(120):
        shop = shops[n % 2]
        answer = shop.decide(baseline=["old"], proposal=["new", n % 7], prediction={"revenue": 1.5})
        fleet.clock.time += 0.1
        if n % 5:  # the others are settled by their window alone
            rewards = {"revenue": float(world.rng.uniform(1.0, 2.0)), "refunds": 0.15}
            assert shop.reward(answer.decision_id, rewards).is_accepted
        elif n % 10 == 0:
            shop.abandon(answer.decision_id, reason="never shown")
    fleet.clock.time += 10.0
    for shop in shops:
        shop.close_windows()
        shop.leases.renew()
    assert at(shops[0], lambda it: (it.policy.pending, len(it.leased))) == ((), 2)
    assert findings(fleet.audit()) == []
    fleet.close()


def test_what_was_really_played_may_be_said_of_a_guard_s_round(fleet: GuardFleet) -> None:
    world, shop = GuardWorld(10), fleet.join("a")
    answer = shop.decide(baseline="old", proposal="new")
    shop.leases.renew()
    assert shop.void(answer.decision_id, "old" if answer.source == "learner" else "new") is True
    shop.book(baseline="old", proposal="new", decision_id="visit-9")
    world.play(shop, 5)
    shop.leases.renew()
    assert findings(fleet.audit()) == []


def test_the_hub_s_snapshot_goes_on_to_the_bit(tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "SNAPSHOT_ROUNDS", 100)
    fleet, world = GuardFleet(tmp_path, hub), GuardWorld(12)
    a, b = fleet.join("a"), fleet.join("b")
    for _ in range(15):
        world.play(a, 10)
        world.play(b, 1)
    world.visit(b, 0.8, 0.6, is_paid=False)
    assert "snapshot" in [event.kind for event in hub.read(NAME)]

    def state(it: Coordinator) -> Any:
        coordinator = it.state()
        return (
            coordinator["members"],
            coordinator["rounds"],
            coordinator["early"],
            coordinator["pot"],
            it.pot.totals(),
            it.policy.state()["banks"].tolist(),
        )

    resumed = at(fleet.join("c"), state)
    assert resumed == at(a, state)
    monkeypatch.setattr("surefoot.sharing.hub.HubState._resume", lambda self, view: None)
    assert at(fleet.join("c"), state) == resumed
    assert findings(fleet.audit()) == []
    fleet.close()


def betrayed(fleet: GuardFleet, rounds: int) -> float:
    """Proposals that earn nothing in every shard at once, while the baseline would earn all; the least slack."""
    world, shops = GuardWorld(13), [fleet.join(name, every=1000) for name in ("a", "b", "c")]
    for _ in range(rounds):
        for shop in shops:
            world.visit(shop, 0.0, 1.0, is_paid=False)
    return world.least


def test_an_adversary_who_betrays_all_shards_at_once_stays_above_the_floor(
    tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = GuardFleet(tmp_path, hub)
    assert -RESERVE <= betrayed(fleet, 25) < -0.9 * RESERVE  # it spends what it can
    fleet.close()
    (tmp_path / "wrong").mkdir()
    monkeypatch.setattr(PairPot, "amounts", lambda pot, part, leased: tuple(max(0.0, one) for one in pot.totals()))
    with surefoot.open_journal("memory:") as other:
        wrong = GuardFleet(tmp_path / "wrong", other)
        assert betrayed(wrong, 25) < -1.2 * RESERVE
        assert wrong.audit().hub.findings.counts["leases"] > 0
        wrong.close()


def test_what_cannot_be_shared_is_refused(fleet: GuardFleet) -> None:
    settings: dict[str, Any]
    for settings in ({"promise": "played", "reserve": 9.0}, {"seed": 1}, {"settle_after": 5}, {"unit_window": 5}):
        with pytest.raises(ConfigError, match="share"):
            create_shared(fleet.hub, "other", surefoot.Guard(alpha=ALPHA, delta=0.1, **settings))
    with pytest.raises(ConfigError, match="join"):
        Experiment.open(fleet.hub, NAME)
    assert fleet.hub.names() == [NAME]
    shop = fleet.join("a")
    with pytest.raises(InputError):
        shop.decide([[0.1], [0.2]], baseline=0)
    with pytest.raises(ConfigError, match="its own"):
        Experiment.join(fleet.hub, NAME, fleet.journals["a"], shard="b")
    assert shop.status().rounds == 0
