"""The audit of shards that share a floor: clean where all is honest, and a finding where anything is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.audit import audit_shards
from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from tests.experiment.tampering import Row
from tests.sharing.forgery import audited, last, played
from tests.sharing.shards import BOUNDED

every_set = pytest.mark.parametrize("settings", [{}, {"radius": "dual"}, BOUNDED], ids=["amm", "dual", "best"])


@every_set
def test_honest_shards_have_no_findings(tmp_path: Path, settings: dict[str, Any]) -> None:
    fleet = played(tmp_path, **settings)
    report = fleet.audit()
    for one in (report.hub, *report.shards.values()):
        assert [(found.event, found.what, found.text) for found in one.findings] == []
    assert report.is_clean
    assert report.hub.tally.decisions > 200
    assert sum(one.tally.decisions for one in report.shards.values()) >= report.hub.tally.decisions
    assert sum(one.tally.learner for one in report.shards.values()) > (0 if "reward_bounds" in settings else 60)
    fleet.close()


def raise_a_lease(rows: list[Row]) -> None:
    last(rows, "leased")["amounts"][0] += 1e3


def claim_a_better_proof(rows: list[Row]) -> None:
    given = last(rows, "handed_in")
    given["proved"] += 5.0
    given["proof"]["value"] += 5.0
    given["proof"]["pieces"][0]["bound"] += 5.0


def claim_a_better_certificate(rows: list[Row]) -> None:
    last(rows, "handed_in", 10)["level"] += 2.0


def improve_a_reward(rows: list[Row]) -> None:
    given = last(rows, "handed_in", 10)
    given["rewards"][0][1]["reward"] += 0.5


def leave_a_round_out(rows: list[Row]) -> None:
    given = last(rows, "handed_in", 10)
    given["rounds"].pop()


def say_that_the_baseline_played(rows: list[Row]) -> None:
    given = next(
        row["payload"] for row in rows if row["kind"] == "handed_in" and any(r[2] for r in row["payload"]["rounds"])
    )
    made = next(made for made in given["rounds"] if made[2])
    made[3], made[2] = made[4], False


def freeze_another_set(rows: list[Row]) -> None:
    last(rows, "leased")["learned"] -= 1


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
    record = last(rows, "round")
    record["source"], record["action"] = "learner", record["certificate"]["proposal"]
    record["certificate"]["guaranteed"] = record["certificate"]["required"]


def take_another_lease(rows: list[Row]) -> None:
    last(rows, "leased")["amounts"][0] += 1e3


def forget_a_reward(rows: list[Row]) -> None:
    rows.remove(next(row for row in rows if row["kind"] == "reward"))


def play_on_after_the_lease(rows: list[Row]) -> None:
    at = next(place for place, row in enumerate(rows) if row["kind"] == "round" and place > len(rows) // 2)
    before = max(place for place, row in enumerate(rows[:at]) if row["kind"] == "leased")
    record = last(rows[:at], "leased")
    ended = {**rows[before], "kind": "lease_ended", "payload": {"lease": record["number"]}}
    rows.insert(before + 1, ended)


SHARD = [spend_more_than_the_lease, take_another_lease, forget_a_reward, play_on_after_the_lease]


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
