"""Shards as experiments: journals of their own, one ledger where they meet, and servers that come, go and die."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.errors import AlarmError, AssumptionError, ConfigError, DecisionError, JournalUnavailableError
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import Journal
from tests.sharing.experiments import RESERVE, Away, Fleet, GuardFleet, GuardWorld, at, findings, of_shard, play
from tests.sharing.shards import ALPHA, World


@pytest.fixture
def fleet(tmp_path: Path, hub: Journal) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, hub)
    yield fleet
    fleet.close()


def test_shards_learn_together_and_keep_one_floor(fleet: Fleet) -> None:
    world = World(np.random.default_rng(3))
    shops = [fleet.join(name) for name in ("berlin", "tokyo", "lima")]
    learner = sum(play(world, shops[int(world.rng.integers(3))], 7) for _ in range(120))
    assert learner > 400
    assert world.least > -1e-9
    for shop in shops:
        shop.leases.renew()
    rounds, pending = at(shops[0], lambda it: (it.policy.rounds, it.policy.pending))
    assert rounds >= 830
    assert len(pending) <= 10
    leased, pot = at(shops[1], lambda it: (it.leased, it.pot.totals()))
    assert (0.0,) < leased <= pot
    # One transaction where they meet for about ten decisions; the first leases are shorter.
    assert len(list(fleet.hub.read("shop"))) < 2 * 840 / 7


def test_while_the_hub_is_away_a_shard_goes_on_within_its_lease_and_then_plays_the_baseline(
    tmp_path: Path, hub: Journal
) -> None:
    away: Any = Away(hub)
    fleet = Fleet(tmp_path, away, constraint=RESERVE)
    rows = np.array([[0.5, 0.0, 0.0], [0.0, 0.9, 0.0]])
    shop = fleet.join("a")
    away.is_away = True
    sources = [shop.decide(rows, baseline=0).source for _ in range(60)]
    spent = sources.index("baseline")
    assert 10 < spent < 60  # a reserve of 16 by rounds that may cost 0.9 each
    assert sources[spent:].count("learner") <= ALPHA * 60  # but for what is free where no mean is negative
    with pytest.raises(JournalUnavailableError):
        shop.leases.renew()
    away.is_away = False
    shop.leases.renew()
    assert at(shop, lambda it: it.policy.rounds) == 60
    fleet.close()


@pytest.mark.parametrize("kind", ["rows", "pair"])
def test_a_hand_in_whose_answer_was_lost_counts_once_and_meanwhile_the_baseline_plays(
    kind: str, tmp_path: Path, hub: Journal
) -> None:
    away: Any = Away(hub)
    fleet: Fleet = GuardFleet(tmp_path, away) if kind == "pair" else Fleet(tmp_path, away, constraint=RESERVE)
    rows, pairs = World(np.random.default_rng(6)), GuardWorld(7)

    def may_play(shop: Any) -> bool:
        if kind == "pair":
            return bool(pairs.visit(shop, 0.8, 0.6).share > 0.5)
        return bool(shop.decide(rows.rows, baseline=3).source == "learner")

    shop = fleet.join("a", every=1000)
    assert may_play(shop)
    away.loses_answers = True
    with pytest.raises(JournalUnavailableError):
        shop.leases.renew()
    assert not may_play(shop)  # the lease may be somebody else's by now
    away.loses_answers = False
    again = fleet.join("a", every=1000)  # the server has died since
    assert may_play(again)
    again.leases.renew()
    assert at(again, lambda it: it.policy.rounds) == 3
    kinds = [event.kind for event in hub.read("shop")]
    assert kinds[:5] == ["created", "joined", "leased", "handed_in", "leased"]
    assert kinds.count("handed_in") == kinds.count("leased") - 1
    assert findings(fleet.audit()) == []
    fleet.close()


def test_a_lost_shard_is_not_waited_for_and_may_come_back(fleet: Fleet) -> None:
    world = World(np.random.default_rng(7))
    a, b = fleet.join("a"), fleet.join("b")
    play(world, a, 30)
    play(world, b, 30)
    fleet.journals["b"].close()
    play(world, a, 30)
    learned = at(a, lambda it: it.policy.ridge.count)
    a.leases.hub.lose("b", reason="its machine is gone")
    play(world, a, 30)
    assert at(a, lambda it: it.policy.ridge.count) > learned + 20
    back = fleet.join("b")
    play(world, back, 30)
    back.leases.renew()
    a.leases.renew()
    assert at(a, lambda it: it.policy.rounds) > 140
    assert world.least > -1e-9


def test_a_clock_that_is_wrong_is_refused_and_the_baseline_plays(tmp_path: Path, hub: Journal) -> None:
    fleet, world = Fleet(tmp_path, hub, constraint=RESERVE), World(np.random.default_rng(9))
    shop = fleet.join("a", every=1000)
    behind = fleet.clock.time
    shop.clock = lambda: behind + 50.0
    assert shop.decide(world.rows, baseline=3).source == "learner"
    shop.leases.hub._clock = lambda: behind
    with pytest.raises(AssumptionError, match="clock"):
        shop.leases.renew()
    assert shop.decide(world.rows, baseline=3).source == "baseline"
    shop.leases.hub._clock = lambda: behind + 50.0
    assert shop.leases.renew()
    assert shop.decide(world.rows, baseline=3).source == "learner"
    fleet.close()


def test_what_is_not_a_shard_s_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    fleet.join("a")
    with pytest.raises(ConfigError, match="join"):
        Experiment.open(fleet.hub, "shop")
    with pytest.raises(ConfigError, match="its own"):
        Experiment.join(fleet.hub, "shop", fleet.journals["a"], shard="b")
    Experiment.create(fleet.hub, "plain", surefoot.UCB(arms=2))
    with pytest.raises(ConfigError, match="sharded"):
        Experiment.join(fleet.hub, "plain", fleet.journals["a"], shard="a")
    with pytest.raises(ConfigError, match="SafeLUCB"):
        create_shared(fleet.hub, "arms", surefoot.UCB(arms=2))  # type: ignore[arg-type]


def test_a_clock_that_is_a_little_behind_is_no_trouble(tmp_path: Path, hub: Journal) -> None:
    timed: Any = Away(hub)
    fleet, world = Fleet(tmp_path, timed, constraint=RESERVE), World(np.random.default_rng(10))
    timed.told = fleet.clock
    shop = fleet.join("a", every=5, clock=lambda: fleet.clock() - 0.45)  # a skew of 1 was declared: half of it
    ahead = fleet.join("b", every=5, clock=lambda: fleet.clock() + 0.05)
    for _ in range(6):
        play(world, shop, 5)
        play(world, ahead, 5)
    fleet.clock.time += 2.0  # nothing is learned beyond the moment that the clock behind has come to
    for one in (shop, ahead):
        assert one.leases.renew()
    assert at(shop, lambda it: it.policy.ridge.count) == 60
    assert fleet.audit().is_clean
    fleet.close()


def test_a_shard_that_has_lost_its_set_plays_the_baseline_until_it_has_another(tmp_path: Path, hub: Journal) -> None:
    fleet, world = Fleet(tmp_path, hub, constraint=RESERVE), World(np.random.default_rng(11))
    shop = fleet.join("a", every=1000)
    for _ in range(3):
        assert shop.decide(world.rows, baseline=3).source == "learner"
    shop.leases.renew()
    assert shop.decide(world.rows, baseline=3).source == "learner"
    lease = of_shard(shop, lambda state: state.lease)
    fleet.journals["a"].transact("shop", lambda transaction: transaction.detach(lease.digest))
    again = fleet.join("a", every=1000)
    assert again.decide(world.rows, baseline=3).source == "baseline"
    again.leases.renew()
    handed_in = [msgspec.json.decode(event.payload) for event in hub.read("shop") if event.kind == "handed_in"]
    (level,) = (one["level"] for one in handed_in if one["lease"] == lease.number)
    assert -lease.amounts[0] <= level < 0  # what was played by the set that is lost was not free
    assert again.decide(world.rows, baseline=3).source == "learner"
    fleet.close()


def test_an_alarm_ends_all_leases_and_the_audit_knows_why(tmp_path: Path, hub: Journal) -> None:
    fleet, world = Fleet(tmp_path, hub, constraint=RESERVE), World(np.random.default_rng(12))
    a, b = fleet.join("a"), fleet.join("b")
    play(world, a, 12)
    play(world, b, 12)
    a.decide(world.rows, baseline=0, baseline_reward=[0.99, 1.0])  # more than its features allow
    a.leases.renew()
    b.leases.renew()
    assert at(a, lambda it: it.policy.alarm) is not None
    assert b.decide(world.rows, baseline=3).source == "baseline"
    with pytest.raises(AlarmError, match="shared floor"):
        b.acknowledge("renew", reason="it was a mistake")
    assert b.decide(world.rows, baseline=3).source == "baseline"
    report = fleet.audit()
    assert report.is_clean
    assert len(report.hub.tally.alarms) == 1
    fleet.close()


def test_a_round_of_a_shard_that_was_handed_in_cannot_be_moved(fleet: Fleet) -> None:
    shop = fleet.join("a")
    answer = shop.decide(World(np.random.default_rng(1)).rows, baseline=3)
    with pytest.raises(DecisionError, match="handed in"):
        shop.void(answer.decision_id, 1)
    assert shop.find(answer.decision_id).action == answer.action
