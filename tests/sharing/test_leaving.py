"""A shard that leaves holds nobody up and gets no other lease; and somebody is told where a lease is not renewed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.errors import DecisionError, InputError, JournalUnavailableError
from surefoot.experiment import Experiment
from surefoot.journal import Journal
from tests.sharing.experiments import RESERVE, Away, Fleet, at, play
from tests.sharing.shards import World


def new_fleet(folder: Path, hub: Journal) -> tuple[Any, Fleet, World]:
    away: Any = Away(hub)
    return away, Fleet(folder, away, constraint=RESERVE), World(np.random.default_rng(8))


def member(shop: Experiment, name: str) -> Any:
    return at(shop, lambda it: it.members.all[name])


def test_a_shard_does_not_leave_while_rounds_are_open(tmp_path: Path, hub: Journal) -> None:
    _, fleet, world = new_fleet(tmp_path, hub)
    a, b = fleet.join("a"), fleet.join("b", every=10**6)
    open_ = b.decide(world.rows, baseline=3)
    b.leases.renew()
    with pytest.raises(DecisionError, match="open"):
        b.leases.leave()
    assert b.decide(world.rows, baseline=3, decision_id="y").source == "learner"  # nothing has changed
    for id_ in (open_.decision_id, "y"):
        b.abandon(id_, reason="never shown")
    b.leases.leave()
    fleet.clock.time += 1.0
    play(world, a, 20)
    a.leases.renew()
    assert at(a, lambda it: it.policy.ridge.count) == 20
    assert fleet.audit().is_clean
    fleet.close()


@pytest.mark.parametrize("is_handed_in", [False, True])
def test_the_hub_lets_nobody_leave_with_open_rounds(tmp_path: Path, hub: Journal, is_handed_in: bool) -> None:
    _, fleet, world = new_fleet(tmp_path, hub)
    shop = fleet.join("a", every=10**6)
    shop.leases.renew()
    shop.leases.renewal_lock.acquire()
    shop.decide(world.rows, baseline=3)
    shop.leases.renewal_lock.release()
    if is_handed_in:
        shop.leases.renew()
    with pytest.raises(InputError, match="open"):  # a round that was decided while the shard was leaving
        shop.leases._hand_in(leaves=True)
    shop.leases.renew()
    assert shop.decide(world.rows, baseline=3).source == "learner"
    fleet.close()


@pytest.mark.parametrize("lost", ["the hand-in before", "the leave"])
def test_a_shard_leaves_although_an_answer_was_lost(tmp_path: Path, hub: Journal, lost: str) -> None:
    away, fleet, world = new_fleet(tmp_path, hub)
    a, b = fleet.join("a"), fleet.join("b", every=10**6)
    play(world, b, 3)
    away.loses_answers = True
    with pytest.raises(JournalUnavailableError):
        b.leases.renew() if lost == "the hand-in before" else b.leases._hand_in(leaves=True)
    away.loses_answers = False
    b.leases.leave()
    found = member(a, "b")
    assert found.is_away
    assert found.amounts == ()
    assert fleet.audit().is_clean
    fleet.close()


def test_a_shard_that_has_left_gets_no_other_lease(tmp_path: Path, hub: Journal) -> None:
    _, fleet, world = new_fleet(tmp_path, hub)
    a, b = fleet.join("a"), fleet.join("b")
    play(world, b, 3)
    b.leases.leave()
    play(world, b, 5)
    b.leases.renew()
    assert b.decide(world.rows, baseline=3).source == "baseline"
    again = fleet.join("b")
    play(world, again, 5)
    again.leases.renew()
    assert again.decide(world.rows, baseline=3).source == "baseline"
    assert member(a, "b").is_away
    assert member(a, "b").amounts == ()
    fleet.close()


def test_why_a_lease_was_not_renewed_is_told(tmp_path: Path, hub: Journal, caplog: pytest.LogCaptureFixture) -> None:
    away, fleet, world = new_fleet(tmp_path, hub)
    shop = fleet.join("a", every=1)
    away.is_away = True
    shop.decide(world.rows, baseline=3)
    assert "must answer" in str(shop.leases.error)
    assert "not renewed" in caplog.text
    away.is_away = False
    shop.leases.renew()
    assert shop.leases.error is None
    fleet.close()
