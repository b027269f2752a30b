"""A fleet that was honest, and what an audit says after a careful forger, who computes all hashes anew."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import surefoot
from surefoot.audit import SharedReport, audit_shards
from tests.experiment.tampering import Row, load, rehashed, save
from tests.sharing.experiments import NAME, Fleet, play
from tests.sharing.shards import World


def played(folder: Path, **settings: Any) -> Fleet:
    """Three shards that share a floor; one leaves, one is lost and comes back."""
    hub = surefoot.open_journal(f"sqlite:///{folder}/hub.db")
    fleet, world = Fleet(folder, hub, **settings), World(np.random.default_rng(13))
    world.is_bounded = "reward_bounds" in settings
    shops = {name: fleet.join(name) for name in ("a", "b", "c")}
    for _ in range(12):
        for name, rounds in (("a", 9), ("b", 4), ("c", 2)):
            play(world, shops[name], rounds)
    shops["c"].leases.leave()
    open_ = shops["a"].decide(world.rows, baseline=world.baseline)
    shops["a"].abandon(open_.decision_id, reason="never shown")
    shops["a"].leases.hub.lose("b", reason="its machine is gone")
    for _ in range(5):
        play(world, shops["a"], 9)
    back = fleet.join("b")
    play(world, back, 12)
    back.leases.renew()
    shops["a"].leases.renew()
    assert world.least > -1e-9
    return fleet


def forge(path: Path, tamper: Callable[[list[Row]], None]) -> None:
    rows = load(path)
    tamper(rows)
    rows = rehashed(rows)
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]))


def audited(folder: Path, name: str, tamper: Callable[[list[Row]], None], to: Path) -> SharedReport:
    """What the audit says of a copy, in which one of the chains was forged."""
    shutil.copytree(folder, to, dirs_exist_ok=True)
    forge(to / f"{name}.db", tamper)
    journals = {path.stem: surefoot.open_journal(f"sqlite:///{path}") for path in sorted(to.glob("*.db"))}
    report = audit_shards(journals.pop("hub"), NAME, journals)
    for journal in journals.values():
        journal.close()
    return report


def last(rows: list[Row], kind: str, at: int = -1) -> Row:
    payload: Row = [row for row in rows if row["kind"] == kind][at]["payload"]
    return payload
