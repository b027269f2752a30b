"""A hub at the command line: it is not restored, it is listed as shared, and it is audited with its shards."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from surefoot.experiment import Experiment
from surefoot.experiment.restored_journal import restore
from tests.leases.guard_fleet import NAME, GuardFleet, World

OPS = ("--by", "ops", "--reason", "the disk died")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A hub with an experiment that two shards share, and one that has its own ledger."""
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        fleet, world = GuardFleet(tmp_path, hub), World(1)
        for shop in (fleet.join("a"), fleet.join("b")):
            world.play(shop, 12)
            shop.renew()
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
