"""The audit of shards that share a floor: clean where all is honest, and a finding where anything is not."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.audit import SharedReport, audit_shards
from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from tests.experiment.tampering import Row, load, rehashed, save
from tests.leases.shards import BOUNDED, World
from tests.leases.test_sharded_experiment import Fleet, play

every_set = pytest.mark.parametrize("settings", [{}, {"radius": "dual"}, BOUNDED], ids=["amm", "dual", "best"])


def played(folder: Path, **settings: Any) -> Fleet:
    """Three shards that share a floor; one leaves, one is lost and comes back."""
    hub = surefoot.open_journal(f"sqlite:///{folder}/hub.db")
    fleet, world = Fleet(folder, hub, **settings), World(np.random.default_rng(13))
    world.is_bounded = "reward_bounds" in settings
    shops = {name: fleet.join(name) for name in ("a", "b", "c")}
    for _ in range(12):
        for name, rounds in (("a", 9), ("b", 4), ("c", 2)):
            play(world, shops[name], rounds)
    shops["c"].leave()
    open_ = shops["a"].decide(world.rows, baseline=world.baseline)
    shops["a"].abandon(open_.decision_id, reason="never shown")
    shops["a"].lose("b", reason="its machine is gone")
    for _ in range(5):
        play(world, shops["a"], 9)
    back = fleet.join("b")
    play(world, back, 12)
    back.renew()
    shops["a"].renew()
    assert world.least > -1e-9
    return fleet


@every_set
def test_honest_shards_have_no_findings(tmp_path: Path, settings: dict[str, Any]) -> None:
    fleet = played(tmp_path, **settings)
    report = audit_shards(fleet.hub, "shop", fleet.journals)
    for one in (report.hub, *report.shards.values()):
        assert [(found.event, found.what, found.text) for found in one.findings] == []
    assert report.is_clean
    assert report.hub.tally.decisions > 200
    assert sum(one.tally.decisions for one in report.shards.values()) >= report.hub.tally.decisions
    assert sum(one.tally.learner for one in report.shards.values()) > (0 if "reward_bounds" in settings else 60)
    fleet.close()


def last(rows: list[Row], kind: str, at: int = -1) -> Row:
    payload: Row = [row for row in rows if row["kind"] == kind][at]["payload"]
    return payload


def raise_a_lease(rows: list[Row]) -> None:
    last(rows, "leased")["amount"] += 1e3


def claim_a_better_proof(rows: list[Row]) -> None:
    given = last(rows, "handed_in")
    given["proved"] += 5.0
    given["proof"]["value"] += 5.0
    given["proof"]["pieces"][0]["bound"] += 5.0


def claim_a_better_certificate(rows: list[Row]) -> None:
    last(rows, "handed_in", 10)["level"] += 2.0


def improve_a_reward(rows: list[Row]) -> None:
    given = last(rows, "handed_in", 10)
    given["rewards"][0][1] += 0.5


def leave_a_round_out(rows: list[Row]) -> None:
    given = last(rows, "handed_in", 10)
    given["rounds"].pop()


def say_that_the_baseline_played(rows: list[Row]) -> None:
    given = next(
        row["payload"] for row in rows if row["kind"] == "handed_in" and any(r[4] for r in row["payload"]["rounds"])
    )
    made = next(made for made in given["rounds"] if made[4])
    made[2], made[4] = made[3], False


def freeze_another_set(rows: list[Row]) -> None:
    last(rows, "leased")["observations"] -= 1


def merge_too_far(rows: list[Row]) -> None:
    last(rows, "leased")["watermark"] += 10.0


def hand_in_a_shard_twice(rows: list[Row]) -> None:
    at = max(place for place, row in enumerate(rows) if row["kind"] == "handed_in")
    rows.insert(at + 1, {**rows[at], "key": None})


HUB = [
    raise_a_lease,
    claim_a_better_proof,
    claim_a_better_certificate,
    improve_a_reward,
    leave_a_round_out,
    say_that_the_baseline_played,
    freeze_another_set,
    merge_too_far,
    hand_in_a_shard_twice,
]


def spend_more_than_the_lease(rows: list[Row]) -> None:
    record = last(rows, "decision")
    record["source"], record["action"] = "learner", record["certificate"]["proposal"]
    record["certificate"]["guaranteed"] = record["certificate"]["required"]


def take_another_lease(rows: list[Row]) -> None:
    last(rows, "leased")["amount"] += 1e3


def forget_a_reward(rows: list[Row]) -> None:
    rows.remove(next(row for row in rows if row["kind"] == "reward"))


def play_on_after_the_lease(rows: list[Row]) -> None:
    at = next(place for place, row in enumerate(rows) if row["kind"] == "decision" and place > len(rows) // 2)
    before = max(place for place, row in enumerate(rows[:at]) if row["kind"] == "leased")
    record = last(rows[:at], "leased")
    ended = {**rows[before], "kind": "lease_ended", "payload": {"lease": record["number"]}}
    rows.insert(before + 1, ended)


SHARD = [spend_more_than_the_lease, take_another_lease, forget_a_reward, play_on_after_the_lease]


def audited(folder: Path, name: str, tamper: Callable[[list[Row]], None], to: Path) -> SharedReport:
    """What the audit says after a careful forger, who computes all hashes anew, was at one of the chains."""
    shutil.copytree(folder, to, dirs_exist_ok=True)
    rows = load(to / f"{name}.db")
    tamper(rows)
    rows = rehashed(rows)
    save(to / f"{name}.db", rows, head=(rows[-1]["number"], rows[-1]["hash"]))
    journals = {path.stem: surefoot.open_journal(f"sqlite:///{path}") for path in sorted(to.glob("*.db"))}
    report = audit_shards(journals.pop("hub"), "shop", journals)
    for journal in journals.values():
        journal.close()
    return report


def test_the_copy_of_an_honest_fleet_is_clean(honest: Path, tmp_path: Path) -> None:
    assert audited(honest, "hub", lambda rows: None, tmp_path).is_clean


@pytest.mark.parametrize("tamper", HUB, ids=lambda tamper: tamper.__name__)
def test_a_forged_ledger_is_found(honest: Path, tmp_path: Path, tamper: Callable[[list[Row]], None]) -> None:
    assert len(audited(honest, "hub", tamper, tmp_path).hub.findings) > 0


@pytest.mark.parametrize("tamper", SHARD, ids=lambda tamper: tamper.__name__)
def test_a_forged_shard_is_found(honest: Path, tmp_path: Path, tamper: Callable[[list[Row]], None]) -> None:
    report = audited(honest, "a", tamper, tmp_path)
    assert len(report.hub.findings) + len(report.shards["a"].findings) > 0


def test_a_journal_that_is_not_there_is_said(honest: Path, tmp_path: Path) -> None:
    hub = surefoot.open_journal(f"sqlite:///{honest}/hub.db")
    report = audit_shards(hub, "shop", {})
    assert set(report.missing) == {"a", "b", "c"}
    assert not report.is_clean
    assert report.hub.is_clean
    hub.close()


def command(folder: Path, *options: str) -> Any:
    return CliRunner().invoke(app, ["audit", f"{folder}/hub.db", "--experiment", "shop", *options])


def test_the_command_line_audits_shards_together(honest: Path) -> None:
    shards = [option for name in "abc" for option in ("--shard", f"{name}={honest}/{name}.db")]
    clean = command(honest, *shards)
    assert clean.exit_code == 0, clean.output
    assert clean.output.count("CLEAN") == 4
    missing = command(honest, *shards[:4])
    assert missing.exit_code == 1
    assert "'c'" in missing.output
    alone = command(honest).exception
    assert isinstance(alone, ConfigError)
    assert "--shard" in str(alone)
    assert isinstance(command(honest, "--shard", "a").exception, ConfigError)
