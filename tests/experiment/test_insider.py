"""An insider who may write to the database, and computes every hash anew: found by a head that somebody else kept."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from surefoot.audit import ExpectedHead, audit, audit_journal
from surefoot.cli.commands import app
from surefoot.experiment import Experiment
from surefoot.journal import Journal, canonical, open_journal
from surefoot.journal.events import JOURNAL, START, next_event
from surefoot.journal.journal_chain import note_heads
from surefoot.rounds.format import pack, unpack
from tests.experiment.honest import played, safe
from tests.experiment.tampering import Row, load, rehashed, save

Forgery = Callable[[list[Row]], list[Row]]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("insider") / "shop.db"
    with open_journal(path) as journal:
        played(safe(), 40, journal=journal)
    return path


def kept(path: Path, number: int | None = None) -> ExpectedHead:
    """A receipt, as a client keeps it: of the newest event, or of the one of that number."""
    row = load(path)[-1 if number is None else number - 1]
    return ExpectedHead("shop", row["number"], row["hash"])


def rewrite(path: Path, forge: Forgery) -> None:
    rows = rehashed(forge(load(path)))
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]))


def invented_rewards(rows: list[Row]) -> list[Row]:
    """An honest run on invented data, which no audit can find by itself."""
    with open_journal("memory:") as journal:
        events = list(played(safe(), 45, journal=journal, seed=6).read("shop"))
    plain = [event for event in events if event.kind != "snapshot"]
    return [msgspec.structs.asdict(event) | {"payload": event.value()} for event in plain]


def another_time(rows: list[Row]) -> list[Row]:
    rows[1]["time"] = rows[0]["time"]
    return rows


def another_reason(rows: list[Row]) -> list[Row]:
    next(row for row in rows if row["kind"] == "mode")["payload"]["reason"] = "what the insider likes better"
    return rows


def removed_tail(rows: list[Row]) -> list[Row]:
    return rows[:-1]


FORGERIES = (invented_rewards, another_time, another_reason, removed_tail)


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: str(forge.__name__))
def test_a_chain_that_was_computed_anew_is_found_by_a_kept_receipt(
    forge: Forgery, honest: Path, tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    shutil.copy(honest, path)
    receipt = kept(path)
    rewrite(path, forge)
    with open_journal(path, read_only=True) as journal:
        assert audit(journal, "shop").is_clean, "by itself the forgery fits"
        whole = audit_journal(journal, expect=[receipt])
        found = audit(journal, "shop", expect=whole.expected["shop"])
    assert [(finding.event, finding.what) for finding in found.findings] == [(receipt.number, "expected")]


def test_receipts_of_events_that_were_not_touched_fit_all_the_same(honest: Path, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    shutil.copy(honest, path)
    early = [kept(path, number) for number in (1, 17, 30)]
    rewrite(path, removed_tail)
    with open_journal(path, read_only=True) as journal:
        report = audit(journal, "shop", expect=audit_journal(journal, expect=early).expected["shop"])
    assert report.is_clean
    assert report.heads == 3


def noted(journal: Journal) -> ExpectedHead:
    """Note where all experiments stand, and keep the head of the journal's own chain."""
    head = note_heads(journal, {name: journal.head(name) for name in journal.names()}, time=1.0)
    return ExpectedHead(JOURNAL, *head)


def forget(path: Path, name: str) -> None:
    """Remove an experiment as if it had never been, from the journal's own chain, too."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        ((gone,),) = connection.execute("SELECT id FROM experiments WHERE name = ?", (name,)).fetchall()
        for table in ("events", "attachments"):
            connection.execute(f"DELETE FROM {table} WHERE experiment = ?", (gone,))
        connection.execute("DELETE FROM experiments WHERE id = ?", (gone,))


def rewrite_own_chain(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        ((own,),) = connection.execute("SELECT id FROM experiments WHERE name = ?", (JOURNAL,)).fetchall()
        rows = connection.execute(
            "SELECT number, kind, time, payload FROM events WHERE experiment = ? ORDER BY number", (own,)
        ).fetchall()
        head = START
        for number, kind, time, payload in rows:
            value = msgspec.json.decode(payload)
            value.get("heads", {}).pop(name, None)
            event = next_event(JOURNAL, head, kind=kind, payload=canonical(value), time=time)
            connection.execute(
                "UPDATE events SET payload = ?, previous = ?, hash = ? WHERE experiment = ? AND number = ?",
                (event.payload, event.previous, event.hash, own, number),
            )
            head = event.head
        connection.execute("UPDATE experiments SET hash = ? WHERE id = ?", (head.hash, own))


@pytest.mark.parametrize("is_careful", [False, True], ids=["as it is", "own chain rewritten"])
def test_an_experiment_that_was_removed_is_missed(is_careful: bool, honest: Path, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    shutil.copy(honest, path)
    with open_journal(path) as journal:
        played(safe(), 5, journal=Renamed(journal, "blue"))
        outside = noted(journal)
    with open_journal(path, read_only=True) as journal:
        assert audit_journal(journal, expect=[outside]).is_clean
    forget(path, "blue")
    if is_careful:
        rewrite_own_chain(path, "blue")
    with open_journal(path, read_only=True) as journal:
        assert audit_journal(journal).is_clean is is_careful, "an insider who rewrites both is found from outside alone"
        found = audit_journal(journal, expect=[outside]).findings
    assert [finding.what for finding in found] == ["expected" if is_careful else "removed"]


def test_a_rewritten_experiment_is_found_by_the_journals_own_chain(honest: Path, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    shutil.copy(honest, path)
    with open_journal(path) as journal:
        head = journal.head("shop")
        noted(journal)
    rewrite_shop(path, another_time)
    with open_journal(path, read_only=True) as journal:
        found = audit(journal, "shop", expect=audit_journal(journal).expected["shop"]).findings
    assert [(finding.event, finding.what) for finding in found] == [(head.number, "expected")]


def rewrite_shop(path: Path, forge: Forgery) -> None:
    """`rewrite`, in a file that holds the journal's own chain beside."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        own = connection.execute("SELECT * FROM events WHERE experiment <> 1").fetchall()
        heads = connection.execute("SELECT number, hash, id FROM experiments WHERE id <> 1").fetchall()
        connection.execute("DELETE FROM events WHERE experiment <> 1")
    rewrite(path, forge)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", own)
        connection.executemany("UPDATE experiments SET number = ?, hash = ? WHERE id = ?", heads)


class Renamed(Journal):
    """A journal in which the experiment that `played` calls shop has another name."""

    def __init__(self, journal: Journal, name: str) -> None:
        self.journal, self.name = journal, name

    def create(self, name: str, payload: bytes, *, time: float) -> Any:
        return self.journal.create(self.name, payload, time=time)

    def transact(self, name: str, work: Any, *, keys: Any = ()) -> Any:
        return self.journal.transact(self.name, work, keys=keys)

    def view(self, name: str) -> Any:
        return self.journal.view(self.name)

    def names(self) -> list[str]:
        return self.journal.names()

    def close(self) -> None:
        self.journal.close()


def forge_snapshot(path: Path, **changed: Any) -> None:
    """Put another state in place of the newest snapshot, with its digest and every hash after it computed anew."""
    with open_journal(path) as journal:
        event = journal.latest("shop", "snapshot")
        assert event is not None
        state = unpack(journal.attachment("shop", event.value()["digest"]) or b"", dict[str, Any])
        for name, value in changed.items():
            state[name] = value(state[name]) if callable(value) else value
        digest = journal.transact("shop", lambda transaction: transaction.attach(pack(state)))
    rewrite(path, lambda rows: [_pointing(row, event.number, digest) for row in rows])


def _pointing(row: Row, number: int, digest: str) -> Row:
    return {**row, "payload": {**row["payload"], "digest": digest}} if row["number"] == number else row


@pytest.fixture
def snapshotted(tmp_path: Path) -> Path:
    """An experiment that was paused, and a snapshot of it."""
    path = tmp_path / "paused.db"
    with open_journal(path) as journal:
        played(safe(), 12, journal=journal)
        shop = Experiment.open(journal, "shop")
        shop.set_mode("paused")
        shop.snapshot()
    return path


def test_a_forged_snapshot_does_not_change_the_mode_and_is_found(snapshotted: Path) -> None:
    receipt = kept(snapshotted)
    forge_snapshot(snapshotted, mode="guarded")
    with open_journal(snapshotted) as journal:
        assert Experiment.open(journal, "shop").status().mode == "paused"
        found = audit(journal, "shop").findings
        assert [finding.what for finding in found] == ["snapshot"]
        assert "mode it says 'guarded', but the events say 'paused'" in str(next(iter(found)))
        heads = audit_journal(journal, expect=[receipt]).expected["shop"]
        assert "expected" in audit(journal, "shop", expect=heads).findings.counts


def forge_ledger(policy: Row) -> Row:
    return {**policy, "ledger": policy["ledger"] + 1.0}


def test_a_snapshot_with_another_ledger_is_found_by_a_replay(snapshotted: Path) -> None:
    assert CliRunner().invoke(app, ["audit", str(snapshotted)]).exit_code == 0
    forge_snapshot(snapshotted, policy=forge_ledger)
    done = CliRunner().invoke(app, ["audit", str(snapshotted), "--json"])
    assert done.exit_code == 1
    (report,) = json.loads(done.output)
    assert [one["text"] for one in report["listed"]] == ["its state.policy.ledger is not what the events come to"]


def test_the_command_takes_receipts_and_names_what_is_gone(honest: Path, tmp_path: Path) -> None:
    path, lines = tmp_path / "shop.db", tmp_path / "receipts.jsonl"
    shutil.copy(honest, path)
    receipts = [kept(path, 9), kept(path)]
    lines.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in receipts))
    done = CliRunner().invoke(app, ["audit", str(path), "--expect", str(lines)])
    assert done.exit_code == 0, done.output
    assert "2 found in the chain" in done.output
    with lines.open("ab") as file:
        file.write(msgspec.json.encode(ExpectedHead("blue", 3, "ab" * 32)) + b"\n")
    done = CliRunner().invoke(app, ["audit", str(path), "--expect", str(lines), "--expect", receipts[0].hash])
    assert done.exit_code == 1
    assert "experiment 'blue' is gone, which once had event 3" in done.output.replace("\n", " ")


def test_an_older_copy_is_found_by_a_kept_receipt(honest: Path, tmp_path: Path) -> None:
    path, copy = tmp_path / "shop.db", tmp_path / "backup.db"
    shutil.copy(honest, path)
    shutil.copy(path, copy)
    with open_journal(path) as journal:
        answer = Experiment.open(journal, "shop").decide([[0.1, 0.1, 0.1]], baseline=0)
        assert answer.head is not None
        assert (answer.head.number, answer.head.hash) == journal.head("shop")
    with open_journal(copy, read_only=True) as journal:
        assert audit(journal, "shop").is_clean
        found = audit(journal, "shop", expect=[answer.head]).findings
    assert [(finding.event, finding.what) for finding in found] == [(answer.head.number, "expected")]
