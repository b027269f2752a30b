"""What a hub may leave out, and an audit over all its shards finds nevertheless."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.audit import audit_shards
from surefoot.experiment import create_shared
from surefoot.experiment.state import State
from surefoot.journal import Journal
from tests.experiment.tampering import Row
from tests.sharing.experiments import Fleet, play
from tests.sharing.forgery import audited
from tests.sharing.shards import SETTINGS, World
from tests.sharing.test_shared_audit import command


def forget_shard_c(rows: list[Row]) -> None:
    rows[:] = [row for row in rows if row["payload"].get("shard") != "c"]


def remove_keys(rows: list[Row]) -> None:
    for row in rows:
        row["key"] = None


def go_back_in_time(rows: list[Row]) -> None:
    rows[-1]["time"] = rows[0]["time"] - 1.0


def give_no_reason(rows: list[Row]) -> None:
    next(row for row in rows if row["kind"] == "lost")["payload"]["reason"] = ""


def leave_and_stay(rows: list[Row]) -> None:
    next(row for row in rows if row["kind"] == "handed_in")["payload"]["leaves"] = True


@pytest.mark.parametrize(
    ("tamper", "what"),
    [(forget_shard_c, "unknown"), (remove_keys, "key"), (go_back_in_time, "time"), (give_no_reason, "lost"),
     (leave_and_stay, "lease")],
)  # fmt: skip
def test_what_is_left_out_at_the_hub_is_found(
    honest: Path, tmp_path: Path, tamper: Callable[[list[Row]], None], what: str
) -> None:
    assert what in {found.what for found in audited(honest, "hub", tamper, tmp_path).hub.findings}


def test_an_alarm_that_is_left_out_of_a_hand_in_is_found(
    tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, world = Fleet(tmp_path, hub, name="other"), World(np.random.default_rng(2))
    create_shared(
        hub, "shop", surefoot.SafeLUCB(**SETTINGS), mode="guarded", clock=fleet.clock, reward_bounds=(-1.0, 2.0)
    )
    honest = State.lease_ended

    def ended(state: State, record: Any) -> Any:
        due = msgspec.structs.replace(honest(state, record), alarm=None)
        assert state.shard is not None
        state.shard.due = due
        return due

    monkeypatch.setattr(State, "lease_ended", ended)
    shop = fleet.join("a")
    play(world, shop, 20)
    answer = shop.decide(world.rows, baseline=3)
    shop.reward(answer.decision_id, 2.5)
    shop.leases.renew()
    shop.leases.renew()
    found = audit_shards(hub, "shop", fleet.journals).hub.findings
    assert "alarm" in {one.what for one in found}
    fleet.close()


def test_expected_hashes_are_looked_for_in_every_chain(honest: Path) -> None:
    shards = [option for name in "abc" for option in ("--shard", f"{name}={honest}/{name}.db")]
    with surefoot.open_journal(f"sqlite:///{honest}/b.db") as journal:
        head = journal.view("shop").head.hash
    assert command(honest, *shards, "--expect", head).exit_code == 0
    missing = command(honest, *shards, "--expect", "0" * 64)
    assert missing.exit_code == 1
    assert "no event has the hash" in missing.output
