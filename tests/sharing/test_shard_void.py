"""Rounds of shards that were not played as decided: moved under their lease, handed in as they were played."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit_shards
from surefoot.errors import DecisionError
from surefoot.policies.policy import Policy
from surefoot.sharing.pots import RowsPot
from tests.experiment.tampering import Row
from tests.sharing.experiments import RESERVE, Fleet, findings, of_shard, play
from tests.sharing.forgery import forge
from tests.sharing.shards import ALPHA, BOUNDED, Shard, World, new_coordinator


@pytest.mark.parametrize("settings", [{}, {"radius": "dual"}, BOUNDED], ids=["amm", "dual", "best"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_of_all_rounds_stays_true_whatever_was_moved(settings: dict[str, Any], seed: int) -> None:
    """A third of the learner's rounds are played as something else, most often worse."""
    rng = np.random.default_rng(100 + seed)
    world = World(rng, is_bounded="reward_bounds" in settings)
    coordinator = new_coordinator(constraint=RESERVE, **settings)
    shards = [Shard(coordinator.join(name, now=0.0)) for name in "ab"]
    means, true, moment, moved = world.rows @ world.theta, 0.0, 0.0, 0
    for _ in range(60):
        for shard in shards:
            for _ in range(int(rng.integers(1, 8))):
                moment += 1.0
                made = shard.decide(world.rows, baseline=world.baseline, moment=moment)
                played = made.action
                if made.source == "learner" and rng.random() < 1 / 3:
                    played = int(rng.integers(5))
                    if played != made.action:
                        shard.void(made.round, world.rows, baseline=3, action=made.action, played=played)
                        moved += 1
                true += float(means[played] - (1 - ALPHA) * means[world.baseline])
                shard.observe(made.round, world.played(played))
            given = shard.hand_in(moment)
            assert float(world.theta @ np.array(given.question)) >= given.level
            shard.renew(coordinator.take(given, now=moment))
            assert isinstance(coordinator.pot, RowsPot)
            (total,), (leased,) = coordinator.pot.totals(), coordinator.leased
            assert coordinator.pot.proved <= true + 1e-9
            assert leased <= max(total, leased - shard.amount)
    assert moved > 10


def test_a_shard_that_goes_on_from_its_state_hands_in_the_same() -> None:
    world, coordinator = World(np.random.default_rng(5)), new_coordinator(constraint=RESERVE)
    shard = Shard(coordinator.join("a", now=0.0))
    for number in range(1, 9):
        made = shard.decide(world.rows, baseline=0, moment=float(number))
        assert made.source == "learner"
    shard.void(8, world.rows, baseline=0, action=made.action, played=1)
    shard.decide(world.rows, baseline=0, moment=9.0, hold=True)
    again: Any = Policy.from_state(shard.policy.state())
    second = again.hand_in(shard.lease, shard.since, token="", through=10.0)
    first = shard.hand_in(10.0)
    assert first.moved > 0
    assert first == second
    assert [made.is_learner for made in first.rounds] == [True] * 8 + [False]
    coordinator.take(first, now=10.0)
    with pytest.raises(DecisionError, match="handed in"):
        shard.void(7, world.rows, baseline=0, action=made.action, played=1)


def test_once_the_learner_was_proved_again_nothing_is_given_away() -> None:
    world, coordinator = World(np.random.default_rng(5)), new_coordinator(constraint=RESERVE)
    shard = Shard(coordinator.join("a", now=0.0))
    made = [shard.decide(world.rows, baseline=0, moment=float(number)) for number in range(3)][-1]
    shard.void(3, world.rows, baseline=0, action=made.action, played=0)
    assert shard.policy.moved > 0
    assert shard.decide(world.rows, baseline=0, moment=4.0).source == "learner"
    given = shard.hand_in(5.0)
    assert given.moved == 0
    assert given.level >= -shard.amount


def voided(folder: Path) -> Fleet:
    """Two shards, one of which moves rounds under its leases, and is read anew from its first event on."""
    fleet = Fleet(folder, surefoot.open_journal(f"sqlite:///{folder}/hub.db"))
    world = World(np.random.default_rng(13))
    a, b = fleet.join("a"), fleet.join("b")
    for _ in range(12):
        play(world, a, 9)
        play(world, b, 5)
    for turn in range(6):
        ids = [a.decide(world.rows, baseline=world.baseline, decision_id=f"{turn}-{n}") for n in range(7)]
        lead = [made for made in ids if made.source == "learner"]
        for n, made in enumerate(lead[-2:]):
            if of_shard(a, lambda shard: shard.holds)(made.round):
                assert a.void(made.decision_id, (None, 1)[n % 2], reason="sold out")
        for made in ids:
            found = a.find(made.decision_id)
            a.reward(made.decision_id, world.played(found.action))
        if turn == 2:
            a = fleet.join("a")
        play(world, b, 3)
    a.leases.renew()
    b.leases.renew()
    return fleet


def test_shards_that_move_rounds_have_no_findings(tmp_path: Path) -> None:
    fleet = voided(tmp_path)
    report = fleet.audit()
    assert findings(report) == []
    assert report.shards["a"].tally.voided > 5
    fleet.close()


def say_nothing_of_it(rows: list[Row]) -> None:
    """Hand in the round as it was decided, which was worth more."""
    given = next(row["payload"] for row in rows if row["kind"] == "handed_in" and row["payload"].get("moved"))
    given["level"] += given.pop("moved") + 0.1


def move_a_round_back(rows: list[Row]) -> None:
    given = next(row["payload"] for row in rows if row["kind"] == "handed_in" and row["payload"].get("moved"))
    number = max(index for index, made in enumerate(given["rounds"]) if not made[2])
    given["rounds"][number][2] = True


def move_it_after_it_was_handed_in(rows: list[Row]) -> None:
    """A void that is written behind the end of the lease."""
    at = next(index for index, row in enumerate(rows) if row["kind"] == "voided")
    end = next(index for index in range(at, len(rows)) if rows[index]["kind"] == "lease_ended")
    rows.insert(end, rows.pop(at))


def move_it_to_another_action(rows: list[Row]) -> None:
    next(row for row in rows if row["kind"] == "voided")["payload"]["action"] = 4


@pytest.mark.parametrize(
    ("name", "tamper", "what"),
    [
        ("hub", say_nothing_of_it, "level"),
        ("hub", move_a_round_back, "rounds"),
        ("a", move_it_after_it_was_handed_in, "voided"),
        ("a", move_it_to_another_action, "rounds"),
    ],
)
def test_who_hides_what_was_moved_is_found_out(
    tmp_path: Path, name: str, tamper: Callable[[list[Row]], None], what: str
) -> None:
    fleet = voided(tmp_path)
    fleet.hub.close()
    fleet.close()
    forge(tmp_path / f"{name}.db", tamper)
    with (
        surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub,
        surefoot.open_journal(f"sqlite:///{tmp_path}/a.db") as a,
        surefoot.open_journal(f"sqlite:///{tmp_path}/b.db") as b,
    ):
        assert what in [found for _, found, _ in findings(audit_shards(hub, "shop", {"a": a, "b": b}))]
