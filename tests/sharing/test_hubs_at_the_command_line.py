"""A hub at the command line: it is not restored, it is listed as shared, and it is audited with its shards."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from surefoot.experiment import Experiment, create_shared, fork
from surefoot.experiment.restore import restore
from surefoot.sharing.hub import Hub
from tests.sharing.experiments import NAME, GuardFleet, GuardWorld
from tests.sharing.shards import SETTINGS

OPS = ("--by", "ops", "--reason", "the disk died")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A hub with an experiment that two shards share, and one that has its own ledger."""
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        fleet, world = GuardFleet(tmp_path, hub), GuardWorld(1)
        for shop in (fleet.join("a"), fleet.join("b")):
            world.play(shop, 12)
            shop.leases.renew()
        Experiment.create(hub, "alone", surefoot.UCB(arms=2), mode="guarded")
        fleet.close()
    return tmp_path


def command(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_a_hub_is_not_restored_and_nothing_is_put_in_place(folder: Path) -> None:
    assert command("backup", folder / "hub.db", folder / "copy.db").exit_code == 0
    (folder / "hub.db").rename(folder / "old.db")
    before = sorted(path.name for path in folder.iterdir())
    asked = ("restore", folder / "hub.db", "--from", folder / "copy.db", "--accept-loss", *OPS)
    refused = command(*asked).exception
    assert isinstance(refused, ConfigError)
    assert f"{NAME!r}" in str(refused)
    assert "alone" not in str(refused)
    assert "start a new experiment" in str(refused)
    assert sorted(path.name for path in folder.iterdir()) == before
    # As the message says.
    assert command("experiment", "archive", folder / "copy.db", NAME, folder / "shared.db", *OPS).exit_code == 0
    assert command(*asked).exit_code == 0
    with surefoot.open_journal(f"sqlite:///{folder}/hub.db") as journal:
        assert journal.names() == ["alone"]
        assert Experiment.open(journal, "alone").status().mode == "paused"


def test_a_hub_that_was_put_in_place_otherwise_is_not_taken_into_use(folder: Path) -> None:
    with surefoot.open_journal(f"sqlite:///{folder}/hub.db") as journal:
        heads = {name: journal.head(name) for name in journal.names()}
        with pytest.raises(ConfigError, match="start a new experiment"):
            restore(journal, by="ops", reason="the disk died", accept_loss=True)
        assert {name: journal.head(name) for name in journal.names()} == heads


def test_an_audit_asks_for_the_journals_of_the_shards(folder: Path) -> None:
    for asked in (("hub.db",), ("hub.db", "--experiment", NAME), ("a.db",)):
        refused = command("audit", folder / asked[0], *asked[1:]).exception
        assert isinstance(refused, ConfigError)
        assert "--shard" in str(refused)
    assert "of shard 'a'" in str(refused)
    assert command("audit", folder / "hub.db", "--experiment", "alone").exit_code == 0
    together = [option for name in "ab" for option in ("--shard", f"{name}={folder}/{name}.db")]
    assert command("audit", folder / "hub.db", "--experiment", NAME, *together).exit_code == 0


def test_a_hub_without_servers_of_its_own_is_audited_by_itself(tmp_path: Path) -> None:
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        GuardFleet(tmp_path, hub)
    assert command("audit", tmp_path / "hub.db", "--experiment", NAME).exit_code == 0


def test_a_hub_is_listed_as_shared(folder: Path) -> None:
    listed = command("experiment", "list", folder / "hub.db")
    assert listed.exit_code == 0, listed.output
    assert "shared" in listed.output
    alone, shop = json.loads(command("experiment", "list", folder / "hub.db", "--json").stdout)
    assert (alone["name"], "is_shared" in alone) == ("alone", False)
    assert (shop["name"], shop["policy"], shop["mode"], shop["shards"]) == (NAME, "Guard", "guarded", 2)
    with surefoot.open_journal(f"sqlite:///{folder}/hub.db") as hub:
        hub_of = Hub(hub, NAME, lambda: 1e9)
        told = hub_of.look(lambda state, _: (state.coordinator.policy.rounds, len(state.coordinator.policy.pending)))
        amounts = hub_of.look(lambda state, _: (state.coordinator.pot.totals(), state.coordinator.leased))
    assert (shop["rounds"], shop["pending"]) == told
    assert (shop["pots"], shop["leased"]) == tuple({"reward": one[0]} for one in amounts)
    assert told[0] > 0


def test_the_status_of_a_hub_has_its_shards_their_leases_and_the_sum(folder: Path) -> None:
    with surefoot.open_journal(f"sqlite:///{folder}/hub.db") as hub:
        hub_of = Hub(hub, NAME, lambda: 1e9)
        hub_of.lose("b", reason="its machine is gone")
        members = hub_of.look(lambda state, _: state.coordinator.members.all)
        total = hub_of.look(lambda state, _: state.coordinator.pot.totals())
    found = json.loads(command("experiment", "status", folder / "hub.db", NAME, "--json").stdout)
    assert found["pots"] == {"reward": total[0]}
    amounts = {one["name"]: one["amounts"]["reward"] for one in found["members"]}
    assert amounts == {name: one.amounts[0] for name, one in members.items()}
    assert sum(amounts.values()) == pytest.approx(found["leased"]["reward"])
    assert [(one["name"], one["rounds"], one["lease"] > 1, one["is_away"]) for one in found["members"]] == [
        ("a", 12, True, False),
        ("b", 12, True, True),
    ]
    shown = command("experiment", "status", folder / "hub.db", NAME)
    assert shown.exit_code == 0, shown.output
    for word in ("shared by shards", "pot", "leased", "may lose", "a ", "b ", "away"):
        assert word in shown.output
    assert command("experiment", "status", folder / "hub.db", "alone").exit_code == 0


def test_the_status_of_a_hub_that_shares_a_floor(tmp_path: Path) -> None:
    """And before any shard has joined."""
    policy = surefoot.SafeLUCB(**{**SETTINGS, "constraint": {"name": "reserve", "granted": 20.0}})
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        create_shared(hub, "shop", policy, mode="guarded", skew=1.0)
    found = json.loads(command("experiment", "status", tmp_path / "hub.db", "shop", "--json").stdout)
    assert (found["pots"], found["leased"], found["members"], found["shards"]) == (
        {"reward": 20.0},
        {"reward": 0.0},
        [],
        0,
    )
    shown = command("experiment", "status", tmp_path / "hub.db", "shop")
    assert shown.exit_code == 0, shown.output
    assert "highest reward" not in shown.output


@pytest.mark.parametrize("suffix", ["csv", "parquet", "dsjson"])
def test_decisions_are_exported_by_shard_and_a_hub_has_none(folder: Path, suffix: str) -> None:
    exported = command("experiment", "export", folder / "a.db", NAME, folder / f"a.{suffix}")
    assert exported.exit_code == 0, exported.exception
    assert "12" in exported.output
    refused = command("experiment", "export", folder / "hub.db", NAME, folder / f"hub.{suffix}")
    assert "journals of the shards" in str(refused.exception)
    assert not (folder / f"hub.{suffix}").exists()


@pytest.mark.parametrize("journal", ["a", "hub"])
def test_what_is_shared_is_not_forked(folder: Path, journal: str) -> None:
    refused = command("experiment", "fork", folder / f"{journal}.db", NAME, "bolder", *OPS)
    assert isinstance(refused.exception, ConfigError)
    assert "shared by shards" in str(refused.exception)
    linear = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    with surefoot.open_journal("memory:") as hub, surefoot.open_journal("memory:") as own:
        create_shared(hub, "shop", linear)
        Experiment.join(hub, "shop", own, shard="a", in_background=False)
        with pytest.raises(ConfigError, match="shared by shards"):
            fork(own if journal == "a" else hub, "shop", "bolder", reason="more may be risked")
        assert own.names() == ["shop"]
