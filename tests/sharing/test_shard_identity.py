"""One shard, one journal, one hub: a lease is spent once, whatever copies of a journal there are."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import ConfigError
from surefoot.experiment import Experiment
from surefoot.journal import Journal
from tests.experiment.tampering import Row
from tests.sharing.experiments import RESERVE, Fleet, at, of_shard
from tests.sharing.forgery import audited

ROWS = np.array([[0.5, 0.0, 0.0], [0.0, 0.9, 0.0]])


def new_fleet(folder: Path, place: Journal) -> Fleet:
    folder.mkdir(exist_ok=True)
    return Fleet(folder, place, constraint=RESERVE)


def joined(fleet: Fleet, own: Journal, shard: str = "a", at: Journal | None = None) -> Any:
    told: dict[str, Any] = {"seconds": 1e9, "every": 10**6, "clock": fleet.clock, "in_background": False}
    return Experiment.join(at or fleet.hub, "shop", own, shard=shard, **told)


@pytest.mark.parametrize("leases", [0, 3])
def test_a_name_is_not_joined_with_a_second_journal(tmp_path: Path, hub: Journal, leases: int) -> None:
    fleet = new_fleet(tmp_path, hub)
    first = fleet.join("a")
    for _ in range(leases):
        first.leases.renew()
    events = len(list(hub.read("shop")))
    with pytest.raises(ConfigError, match="another one"):
        joined(fleet, surefoot.open_journal("memory:"))
    assert len(list(hub.read("shop"))) == events
    assert first.leases.renew()
    fleet.close()


def copied(fleet: Fleet, to: Path) -> Path:
    fleet.journals["a"].close()
    shutil.copy(fleet.folder / "a.db", to)
    return to


@pytest.mark.parametrize("leases", [1, 2])
def test_a_journal_from_a_backup_does_not_spend_a_lease_again(
    tmp_path: Path,
    hub: Journal,
    leases: int,
) -> None:
    fleet = new_fleet(tmp_path, hub)
    fleet.join("a")
    backup = copied(fleet, tmp_path / "backup.db")
    shop = fleet.join("a", every=10**6)
    for _ in range(leases):
        shop.decide(ROWS, baseline=0)
        shop.leases.renew()
    with surefoot.open_journal(f"sqlite:///{backup}") as old, pytest.raises(ConfigError, match="newest"):
        joined(fleet, old)
    assert shop.leases.renew()
    fleet.close()


def test_a_hand_in_that_differs_from_the_first_is_refused_and_leases_nothing(
    tmp_path: Path,
    hub: Journal,
) -> None:
    fleet = new_fleet(tmp_path, hub)
    fleet.join("a")
    backup = surefoot.open_journal(f"sqlite:///{copied(fleet, tmp_path / 'backup.db')}")
    shop, twin = fleet.join("a", every=10**6), joined(fleet, backup)  # both at lease 1, which nobody can tell apart
    shop.decide(ROWS, baseline=0)
    shop.leases.renew()
    twin.decide(ROWS, baseline=0)
    leased = at(shop, lambda it: it.leased)
    with pytest.raises(ConfigError, match="differs"):
        twin.leases.renew()
    assert twin.decide(ROWS, baseline=0).source == "baseline"
    assert at(shop, lambda it: it.leased) == leased > (0.0,)
    backup.close()
    fleet.close()


def test_a_lease_of_another_hub_of_the_same_name_is_refused(tmp_path: Path, hub: Journal) -> None:
    fleet = new_fleet(tmp_path, hub)
    fleet.join("a")
    with surefoot.open_journal("memory:") as other:
        new_fleet(tmp_path / "other", other)
        with pytest.raises(ConfigError, match="another one of the same name"):
            joined(fleet, fleet.journals["a"], at=other)
        assert [event.kind for event in other.read("shop")] == ["created"]
    fleet.close()


def test_a_shard_whose_first_answer_was_lost_gets_the_same_lease(tmp_path: Path, hub: Journal) -> None:
    fleet = new_fleet(tmp_path, hub)
    shop = fleet.join("a")
    shard, token = of_shard(shop, lambda shard: (shard.shard, shard.token))
    assert shop.leases.hub.join(shard, token).lease == of_shard(shop, lambda shard: shard.lease)
    fleet.close()


def declare(**changes: Any) -> Any:
    def tamper(rows: list[Row]) -> None:
        rows[0]["payload"]["settings"].update(changes)

    return tamper


def change(**changes: Any) -> Any:
    def tamper(rows: list[Row]) -> None:
        rows[0]["payload"].update(changes)

    return tamper


@pytest.mark.parametrize(
    "tamper",
    [declare(alpha=0.9), declare(reward_range=[0.2, 1.0]), declare(noise=0.01), change(skew=999.0), change(token="x"),
     change(hub="x"), change(shard="b"), change(reward_bounds=[-9.0, 9.0])],
    ids=["alpha", "range", "noise", "skew", "token", "hub", "shard", "bounds"],
)  # fmt: skip
def test_a_shard_that_declares_something_else_is_found(honest: Path, tmp_path: Path, tamper: Any) -> None:
    found = audited(honest, "a", tamper, tmp_path).hub.findings
    assert any(one.what == "created" for one in found)


def test_a_hand_in_by_another_journal_is_found(honest: Path, tmp_path: Path) -> None:
    def tamper(rows: list[Row]) -> None:
        next(row for row in rows if row["kind"] == "handed_in")["payload"]["token"] = "x"

    assert any(one.what == "token" for one in audited(honest, "hub", tamper, tmp_path).hub.findings)


def test_a_hub_that_was_put_back_is_noticed_and_pauses_all_shards(tmp_path: Path) -> None:
    """After a bare `pg_restore`, say: what was leased since the copy was made must not be leased again."""
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        fleet = new_fleet(tmp_path / "shards", hub)
        shops = {name: fleet.join(name, every=10**6) for name in ("a", "b")}
        for shop in shops.values():
            shop.leases.renew()
        with sqlite3.connect(tmp_path / "hub.db") as file:
            file.execute("VACUUM INTO ?", (str(tmp_path / "old.db"),))
        file.close()
        late = fleet.join("late", every=10**6)
        for shop in (*shops.values(), late):
            shop.decide(ROWS, baseline=0)
            shop.leases.renew()
    for name in ("a", "late", "b"):
        shutil.copy(tmp_path / "old.db", tmp_path / f"{name}.hub.db")
        with surefoot.open_journal(f"sqlite:///{tmp_path}/{name}.hub.db") as old:
            for _ in range(2):
                with pytest.raises(ConfigError, match="older copy took its place"):  # a server that starts
                    joined(fleet, fleet.journals[name], name, at=old)
            modes = [event for event in old.read("shop") if event.kind == "mode"]
            assert len(modes) == 1
            assert b"paused" in modes[0].payload
            fresh = joined(fleet, surefoot.open_journal("memory:"), "fresh", at=old)
            assert fresh.decide(ROWS, baseline=0).source == "baseline"
            assert fresh.status().mode == "paused"
    shutil.copy(tmp_path / "old.db", tmp_path / "running.db")
    with surefoot.open_journal(f"sqlite:///{tmp_path}/running.db") as old:
        running: Any = shops["b"]
        running.leases.hub._journal, running.leases.hub._state = old, None  # under a server that runs
        with pytest.raises(ConfigError, match="start a new experiment"):
            running.leases.renew()
        assert sum(event.kind == "mode" for event in old.read("shop")) == 1
    fleet.close()


def test_whoever_has_another_token_pauses_nobody(tmp_path: Path, hub: Journal) -> None:
    fleet = new_fleet(tmp_path, hub)
    shop: Any = fleet.join("a", every=10**6)
    with pytest.raises(ConfigError, match="joined with"):
        shop.leases.hub.confirm("a", "00" * 16, 7, is_ended=False)
    assert all(event.kind != "mode" for event in hub.read("shop"))
    fleet.close()
