"""Rounds that were decided by a wrong clock count, and are not learned: nobody knows their order."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.errors import AssumptionError
from surefoot.experiment import Experiment
from surefoot.experiment.lease_renewal import Leases
from surefoot.journal import Journal
from surefoot.sharing.merging import Member, Members
from tests.experiment.tampering import Row
from tests.sharing.experiments import Away, Fleet, at, play
from tests.sharing.forgery import audited
from tests.sharing.shards import World


def learned(shop: Experiment) -> tuple[int, int]:
    found: tuple[int, int] = at(shop, lambda it: (it.policy.rounds, it.policy.ridge.count))
    return found


def test_rounds_of_a_clock_that_was_wrong_at_a_hand_in_are_not_learned(tmp_path: Path, hub: Journal) -> None:
    timed: Any = Away(hub)
    fleet, world = Fleet(tmp_path, timed), World(np.random.default_rng(1))
    timed.told = fleet.clock
    behind = [0.0]
    shop = fleet.join("a", every=10**6, clock=lambda: fleet.clock() - behind[0])
    shop.leases.renew()
    shop.leases.renewal_lock.acquire()  # no renewal between these rounds
    play(world, shop, 4)
    behind[0] = 3600.0
    open_ = shop.decide(world.rows, baseline=3)
    shop.leases.renewal_lock.release()
    with pytest.raises(AssumptionError, match="clock"):
        shop.leases.renew()
    assert shop.leases.hub._state is not None  # what was refused costs no replay
    behind[0] = 0.0  # somebody sets it
    shop.leases.renew()
    shop.reward(open_.decision_id, 0.5)
    shop.leases.renewal_lock.acquire()
    play(world, shop, 3)
    shop.leases.renewal_lock.release()
    for _ in range(2):
        fleet.clock.time += 1.0
        shop.leases.renew()
    assert learned(shop) == (8, 3)
    assert fleet.audit().is_clean
    fleet.close()


def test_rounds_of_a_clock_that_was_set_under_a_lease_are_not_learned(
    tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, world = Fleet(tmp_path, hub), World(np.random.default_rng(1))
    fleet.clock.time = time.time()
    shop = fleet.join("a", every=10**6, clock=time.time)
    shop.leases.hub._clock = time.time
    shop.leases.renewal_lock.acquire()
    play(world, shop, 4)
    shop.leases.renewal_lock.release()
    moved = time.monotonic  # the system's clock has been set, by as much as this one seems to have moved
    with monkeypatch.context() as patched:
        patched.setattr("surefoot.experiment.lease_renewal.time.monotonic", lambda: moved() - 60.0)
        shop.leases.renew()
    shop.leases.renew()
    assert learned(shop) == (4, 0)
    assert fleet.audit().is_clean
    fleet.close()


def test_a_shard_that_is_ahead_of_the_declared_skew_is_found(
    tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: Any = Away(hub)
    fleet, world = Fleet(tmp_path, timed), World(np.random.default_rng(1))
    timed.told = fleet.clock
    honest = Members.check

    def check(members: Members, given: Any, rounds: list[Any], now: float, sent: float) -> Member:
        return honest(members, given, rounds, max(now, given.through), max(now, given.through))

    monkeypatch.setattr(Members, "check", check)  # a hub that does not look at clocks
    monkeypatch.setattr(Leases, "_is_untimed", lambda leases: False)
    ahead = [0.0]
    shops = [fleet.join("a"), fleet.join("b", clock=lambda: fleet.clock() + ahead[0])]
    ahead[0] = 3600.0
    for shop in shops * 2:
        play(world, shop, 5)
        shop.leases.renew()
    found = [one for one in fleet.audit().hub.findings if one.what == "clock"]
    assert found
    assert all("'b'" in one.text for one in found)
    fleet.close()


def test_a_shard_that_joins_ahead_of_the_declared_skew_is_found(honest: Path, tmp_path: Path) -> None:
    def join_ahead(rows: list[Row]) -> None:
        joined = next(row for row in rows if row["kind"] == "joined")
        joined["payload"]["since"] = joined["time"] + 0.6  # skew is 1

    assert "clock" in {one.what for one in audited(honest, "hub", join_ahead, tmp_path).hub.findings}


def test_a_shard_that_joins_where_others_have_merged_ahead_is_honest(tmp_path: Path, hub: Journal) -> None:
    timed: Any = Away(hub)
    fleet, world = Fleet(tmp_path, timed), World(np.random.default_rng(1))
    timed.told = lambda: fleet.clock.time
    shop = fleet.join("a", clock=lambda: fleet.clock() + 0.5)  # just within half of the skew
    play(world, shop, 5)
    shop.leases.leave()
    fleet.join("b")
    joined = [event.time for event in hub.read("shop") if event.kind == "joined"]
    watermark = at(shop, lambda it: it.watermark)
    assert watermark > joined[-1] + 0.49
    report = fleet.audit()
    assert [one.text for one in report.hub.findings] == []
    fleet.close()
