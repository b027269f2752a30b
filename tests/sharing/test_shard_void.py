"""Rounds of shards that were not played as decided: moved under their lease, handed in as they were played."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from surefoot.leases import Shard

import surefoot
from surefoot.audit import SharedReport, audit_shards
from surefoot.errors import DecisionError
from tests.experiment.tampering import Row, load, rehashed, save
from tests.leases.shards import ALPHA, BOUNDED, World, new_coordinator
from tests.leases.test_sharded_experiment import RESERVE, Fleet, play


def all_findings(report: SharedReport) -> list[Any]:
    return [(one.what, one.text) for each in (report.hub, *report.shards.values()) for one in each.findings]


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
                        told: dict[str, Any] = {
                            "baseline": world.baseline,
                            "action": made.action,
                            "source": made.source,
                        }
                        shard.void(made.round, world.rows, **told, played=played)
                        moved += 1
                true += float(means[played] - (1 - ALPHA) * means[world.baseline])
                shard.observe(made.round, world.played(played))
            given = shard.hand_in(moment)
            assert float(world.theta @ given.question) >= given.level
            shard.renew(coordinator.take(given, now=moment))
            assert coordinator.proved <= true + 1e-9
            assert coordinator.leased <= max(coordinator.pot, coordinator.leased - shard.lease.amount)
    assert moved > 10


def test_a_shard_that_goes_on_from_its_state_hands_in_the_same() -> None:
    world, coordinator = World(np.random.default_rng(5)), new_coordinator(constraint=RESERVE)
    shard = Shard(coordinator.join("a", now=0.0))
    for number in range(1, 9):
        made = shard.decide(world.rows, baseline=0, moment=float(number))
        assert made.source == "learner"
    shard.void(8, world.rows, baseline=0, action=made.action, source="learner", played=1)
    shard.decide(world.rows, baseline=0, moment=9.0, hold=True)
    again = Shard.from_state(shard.state())
    first, second = (one.hand_in(10.0) for one in (shard, again))
    assert first.moved > 0
    assert (first.level, first.moved) == (second.level, second.moved)
    assert first.question.tolist() == second.question.tolist()
    assert [made.is_learner for made in first.rounds] == [True] * 8 + [False]
    coordinator.take(first, now=10.0)
    with pytest.raises(DecisionError, match="handed in"):
        shard.void(7, world.rows, baseline=0, action=made.action, source="learner", played=1)


def test_once_the_learner_was_proved_again_nothing_is_given_away() -> None:
    world, coordinator = World(np.random.default_rng(5)), new_coordinator(constraint=RESERVE)
    shard = Shard(coordinator.join("a", now=0.0))
    made = [shard.decide(world.rows, baseline=0, moment=float(number)) for number in range(3)][-1]
    shard.void(3, world.rows, baseline=0, action=made.action, source="learner", played=0)
    assert shard.policy.moved > 0
    assert shard.decide(world.rows, baseline=0, moment=4.0).source == "learner"
    given = shard.hand_in(5.0)
    assert given.moved == 0
    assert given.level >= -shard.lease.amount


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
        lead = [made for made in ids if made.source == "learner" and a._shard_state(lambda state: state.since)]
        for n, made in enumerate(lead[-2:]):
            if a._shard_state(lambda state: state.may_move)(made.round):
                assert a.void(made.decision_id, (None, 1)[n % 2], reason="sold out")
        for made in ids:
            found = a.find(made.decision_id)
            a.reward(made.decision_id, world.played(found.action))
        if turn == 2:
            a = fleet.join("a")
        play(world, b, 3)
    a.renew()
    b.renew()
    return fleet


def test_shards_that_move_rounds_have_no_findings(tmp_path: Path) -> None:
    fleet = voided(tmp_path)
    report = audit_shards(fleet.hub, "shop", fleet.journals)
    assert all_findings(report) == []
    assert report.shards["a"].tally.voided > 5
    fleet.close()


def say_nothing_of_it(rows: list[Row]) -> None:
    """Hand in the round as it was decided, which was worth more."""
    given = next(row["payload"] for row in rows if row["kind"] == "handed_in" and row["payload"].get("moved"))
    given["level"] += given.pop("moved") + 0.1


def move_a_round_back(rows: list[Row]) -> None:
    given = next(row["payload"] for row in rows if row["kind"] == "handed_in" and row["payload"].get("moved"))
    number = max(index for index, made in enumerate(given["rounds"]) if not made[4])
    given["rounds"][number][4] = True


def move_it_after_it_was_handed_in(rows: list[Row]) -> None:
    """A void that is written behind the end of the lease."""
    at = next(index for index, row in enumerate(rows) if row["kind"] == "voided")
    end = next(index for index in range(at, len(rows)) if rows[index]["kind"] == "lease_ended")
    rows.insert(end, rows.pop(at))


def move_it_to_another_action(rows: list[Row]) -> None:
    next(row for row in rows if row["kind"] == "voided")["payload"]["action"] = 4


@pytest.mark.parametrize(
    ("name", "forge", "what"),
    [
        ("hub", say_nothing_of_it, "level"),
        ("hub", move_a_round_back, "rounds"),
        ("a", move_it_after_it_was_handed_in, "voided"),
        ("a", move_it_to_another_action, "rounds"),
    ],
)
def test_who_hides_what_was_moved_is_found_out(
    tmp_path: Path, name: str, forge: Callable[[list[Row]], None], what: str
) -> None:
    fleet = voided(tmp_path)
    fleet.hub.close()
    fleet.close()
    path = tmp_path / f"{name}.db"
    rows = load(path)
    forge(rows)
    rows = rehashed(rows)
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]))
    with (
        surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub,
        surefoot.open_journal(f"sqlite:///{tmp_path}/a.db") as a,
        surefoot.open_journal(f"sqlite:///{tmp_path}/b.db") as b,
    ):
        assert what in [found for found, _ in all_findings(audit_shards(hub, "shop", {"a": a, "b": b}))]
