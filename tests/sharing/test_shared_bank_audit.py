"""The audit of a shared bank: a careful forger, who computes all hashes anew, is found in every chain."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import surefoot
from surefoot.audit import audit_shards
from surefoot.journal import Journal
from tests.experiment.tampering import Row
from tests.sharing.experiments import NAME, GuardFleet, GuardWorld, findings, of_shard, seeded_coins
from tests.sharing.forgery import audited, forge, last


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("banks")
    with pytest.MonkeyPatch.context() as patch, surefoot.open_journal(f"sqlite:///{folder}/hub.db") as hub:
        seeded_coins(patch, 5)
        fleet, world = GuardFleet(folder, hub), GuardWorld(14)
        shops = [fleet.join(name) for name in ("a", "b")]
        for _ in range(8):
            for shop in shops:
                world.play(shop, 9)
        for shop in shops:
            shop.leases.renew()
        world.play(shops[0], 3)
        shops[0].leases.renew()
        fleet.close()
    return folder


def drawn(rows: list[Row], at: int = -1) -> list[float]:
    """A round that was handed in with a coin."""
    return handed(rows)[at]


def handed(rows: list[Row]) -> list[list[float]]:
    """All that were."""
    given = [row["payload"] for row in rows if row["kind"] == "handed_in"]
    return [made for one in given for made in one["rounds"] if made[4] is not None]


def paid(rows: list[Row]) -> Row:
    """The last that was handed in with rewards."""
    given: list[Row] = [row["payload"] for row in rows if row["kind"] == "handed_in" and row["payload"]["rewards"]]
    return given[-1]


def raise_a_lease(rows: list[Row]) -> None:
    last(rows, "leased")["amounts"][0] += 50.0


def lend_less_than_nothing(rows: list[Row]) -> None:
    last(rows, "leased")["amounts"][0] = -1.0


def forget_a_metric(rows: list[Row]) -> None:
    last(rows, "leased")["amounts"] = []


def improve_a_reward(rows: list[Row]) -> None:
    paid(rows)["rewards"][0][1] = {"reward": 0.9999}


def leave_a_round_out(rows: list[Row]) -> None:
    paid(rows)["rounds"].pop()


def lower_a_share(rows: list[Row]) -> None:
    drawn(rows)[3] *= 0.5


def turn_a_coin(rows: list[Row]) -> None:
    made = drawn(rows)
    made[2] = not made[2]


def say_that_nothing_was_at_stake(rows: list[Row]) -> None:
    drawn(rows)[5] = False


def count_rounds_that_have_not_entered(rows: list[Row]) -> None:
    last(rows, "leased")["learned"] += 1


def merge_too_far(rows: list[Row]) -> None:
    last(rows, "leased")["watermark"] += 10.0


def hand_in_twice(rows: list[Row]) -> None:
    at = max(place for place, row in enumerate(rows) if row["kind"] == "handed_in")
    rows.insert(at + 1, {**rows[at], "key": None})


HUB = [
    raise_a_lease, lend_less_than_nothing, forget_a_metric, improve_a_reward, leave_a_round_out, lower_a_share,
    turn_a_coin, say_that_nothing_was_at_stake, count_rounds_that_have_not_entered, merge_too_far, hand_in_twice,
]  # fmt: skip


def spend_more_than_the_lease(rows: list[Row]) -> None:
    record = last(rows, "round")
    record["share"], record["draw"], record["source"] = 0.97, 0.5, "learner"


def take_another_lease(rows: list[Row]) -> None:
    last(rows, "leased")["amounts"][0] += 50.0


def forget_a_reward(rows: list[Row]) -> None:
    rows.remove(next(row for row in rows if row["kind"] == "reward"))


def play_on_after_the_lease(rows: list[Row]) -> None:
    at = next(place for place, row in enumerate(rows) if row["kind"] == "leased" and place > len(rows) // 2)
    ended = {**rows[at], "kind": "lease_ended", "key": None, "payload": {"lease": rows[at]["payload"]["number"]}}
    rows.insert(at + 1, ended)


def write_a_better_bank(rows: list[Row]) -> None:
    last(rows, "round")["certificate"]["banks"][0]["carried"] += 1.0


SHARD = [spend_more_than_the_lease, take_another_lease, forget_a_reward, play_on_after_the_lease, write_a_better_bank]


def test_the_copy_of_an_honest_fleet_is_clean(honest: Path, tmp_path: Path) -> None:
    report = audited(honest, "hub", lambda rows: None, tmp_path)
    assert report.is_clean
    assert report.hub.tally.learned > 100
    assert report.hub.tally.learner > 20


@pytest.mark.parametrize("tamper", HUB, ids=lambda tamper: tamper.__name__)
def test_a_forged_bank_is_found(honest: Path, tmp_path: Path, tamper: Callable[[list[Row]], None]) -> None:
    assert len(audited(honest, "hub", tamper, tmp_path).hub.findings) > 0


@pytest.mark.parametrize("tamper", SHARD, ids=lambda tamper: tamper.__name__)
def test_a_forged_shard_is_found(honest: Path, tmp_path: Path, tamper: Callable[[list[Row]], None]) -> None:
    report = audited(honest, "a", tamper, tmp_path)
    assert len(report.hub.findings) + len(report.shards["a"].findings) > 0


def test_true_and_1_are_two_actions_to_the_audit_as_well(tmp_path: Path, hub: Journal) -> None:
    fleet = GuardFleet(tmp_path, hub)
    shop = fleet.join("a")
    assert shop.decide(baseline=True, proposal=1).share > 0.0
    assert shop.decide(baseline=1, proposal=1.0).share == 0.0
    shop.leases.renew()
    assert findings(fleet.audit()) == []
    fleet.close()


def test_a_shard_that_lost_what_its_lease_knew_is_not_accused(tmp_path: Path, hub: Journal) -> None:
    fleet, world = GuardFleet(tmp_path, hub), GuardWorld(3)
    shop = fleet.join("a", every=1000)
    world.play(shop, 5)
    shop.leases.renew()
    world.play(shop, 5)
    digest = of_shard(shop, lambda shard: shard.lease.digest)
    fleet.journals["a"].transact(NAME, lambda transaction: transaction.detach(digest))
    shop = fleet.join("a", every=1000)
    made = [shop.decide(baseline="old", proposal=proposal) for proposal in ("new", "old")]
    assert [one.share for one in made] == [0.0, 0.0]
    shop.set_mode("paused")
    shop.decide(baseline="old", proposal="new")
    shop.leases.renew()
    shop.set_mode("guarded")
    assert shop.decide(baseline="old", proposal="new").share > 0.0
    shop.leases.renew()
    assert findings(fleet.audit()) == []
    fleet.close()


def spend_too_much(rows: list[Row]) -> None:
    for one in handed(rows):
        if not one[2]:  # the baseline played, but the shares were more than the lease could pay
            one[3:5] = [0.97, 0.98]


@pytest.mark.parametrize(
    ("tamper", "what"), [(spend_too_much, "gate"), (turn_a_coin, "draw"), (say_that_nothing_was_at_stake, "draw")]
)
def test_what_was_handed_in_is_checked_where_the_journals_of_shards_are_missing(
    honest: Path, tmp_path: Path, tamper: Callable[[list[Row]], None], what: str
) -> None:
    shutil.copytree(honest, tmp_path, dirs_exist_ok=True)
    forge(tmp_path / "hub.db", tamper)
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        report = audit_shards(hub, NAME, {})
    assert set(report.missing) == {"a", "b"}
    assert report.hub.findings.counts[what] > 0
