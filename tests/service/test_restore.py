"""Backups of a journal in use, older copies that no server takes in silence, and journals that move."""

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psycopg
import pytest

from surefoot.audit import ExpectedHead, audit, audit_journal
from surefoot.audit.chain import read_expected
from surefoot.client import Client
from surefoot.errors import ConfigError, JournalConflictError
from surefoot.experiment import Experiment
from surefoot.experiment.removal import delete
from surefoot.journal import Head, open_journal
from surefoot.journal.copying import copy_experiment, copy_journal, heads_of
from surefoot.journal.events import JOURNAL
from surefoot.service.preflight import check_heads
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.cli.shell import shell
from tests.experiment.honest import played, safe
from tests.journal.servers import PostgresServer, new_database
from tests.service.servers import POLICY, Apart, running

ROWS = {"blue": [0.6, 0.1], "red": [0.9, 0.3]}


def test_a_backup_of_a_journal_in_use_holds_what_was_acknowledged_before(database: str, tmp_path: Path) -> None:
    copy, ended = tmp_path / "copy.journal", threading.Event()
    with running(Settings(database=database)) as address, Client(address, timeout=60) as client:
        client.create_experiment("shop", POLICY, mode="guarded")
        before = [client.decide("shop", ROWS).head for _ in range(20)]

        def load() -> None:
            while not ended.is_set():
                client.decide("shop", ROWS)

        thread = threading.Thread(target=load)
        thread.start()
        code, said, _ = shell("backup", database, copy)
        ended.set()
        thread.join()
        after = client.decide("shop", ROWS).head
    assert code == 0
    heads = [msgspec.json.decode(line, type=ExpectedHead) for line in said.splitlines()]
    assert {one.experiment for one in heads} == {"shop", JOURNAL}
    assert all(one.time > 0 for one in heads)
    with open_journal(copy, read_only=True) as journal:
        assert all(journal.view("shop").follows(Head(head.number, head.hash)) for head in before if head is not None)
        assert after is not None
        assert journal.head("shop").number < after.number
        whole = audit_journal(journal, expect=heads)
        assert whole.is_clean
        assert audit(journal, "shop", expect=whole.expected["shop"]).is_clean
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == ["copy.journal"]


def test_a_backup_never_writes_over_a_file(database: str, tmp_path: Path) -> None:
    open_journal(database).close()
    (tmp_path / "copy").write_text("precious")
    assert shell("backup", database, tmp_path / "copy")[0] == 2
    assert (tmp_path / "copy").read_text() == "precious"
    code, _, error = shell("backup", "postgresql://nobody@127.0.0.1:1/none", tmp_path / "other")
    assert code == 2
    assert "pg_dump" in error


def old_copy(database: str, heads: Path) -> Path:
    """A copy of the journal from before its last decisions, which the head file knows of."""
    copy = Path(database).with_name("older.journal")
    settings = Settings(database=database, heads=str(heads))
    with running(settings) as address, Client(address, timeout=60) as client:
        client.create_experiment("shop", POLICY, mode="guarded")
        client.create_experiment("blue", POLICY)
        client.decide("shop", ROWS)
    shutil.copy(database, copy)
    with running(settings) as address, Client(address, timeout=60) as client:
        client.decide("shop", ROWS, decision_id="lost")
    return copy


def test_no_server_starts_on_an_older_copy_in_silence(tmp_path: Path) -> None:
    database, heads = str(tmp_path / "shop.journal"), tmp_path / "heads.jsonl"
    copy = old_copy(database, heads)
    with open_journal(database, read_only=True) as journal:
        check_heads(journal, str(heads))
    Path(database).rename(tmp_path / "dead.journal")
    shutil.copy(copy, database)
    with (
        open_journal(database, read_only=True) as journal,
        pytest.raises(ConfigError, match=r"lacks event \d+ of 'shop'.*restore JOURNAL --expect .* --accept-loss"),
    ):
        check_heads(journal, str(heads))
    server = Apart(tmp_path, database=database, heads=heads)
    server.start(wait=False)
    assert server.process is not None
    assert server.process.wait(60) == 2
    assert "it is an older copy, or was rewritten" in server.log.read_text()
    for file in tmp_path.glob("shop.journal*"):  # with what SQLite may have left beside it
        file.unlink()

    options = ("--by", "ops", "--reason", "the disk died", "--from", copy, "--expect", heads)
    code, _, error = shell("restore", database, *options)
    assert code == 2
    assert "had event" in error
    assert not Path(database).exists(), "a refusal changes nothing"
    code, _, error = shell("restore", database, *options[:-2])
    assert code == 2
    assert "The last known heads must be given" in error

    code, said, _ = shell("restore", database, *options, "--accept-loss")
    assert code == 0
    assert "Lost: shop had event" in said
    with open_journal(database, read_only=True) as journal:
        assert {name: Experiment.open(journal, name).status().mode for name in journal.names()} == {
            "shop": "paused",
            "blue": "shadow",
        }
        (noted,) = [event.value() for event in journal.read(JOURNAL) if event.kind == "restored"]
        assert (noted["by"], noted["reason"], set(noted["lost"])) == ("ops", "the disk died", {"shop", "blue", JOURNAL})
        whole = audit_journal(journal, expect=read_expected(heads))
        report = audit(journal, "shop", expect=whole.expected["shop"])
        assert "expected" in report.findings.counts, "what was acknowledged and lost stays a finding"
        assert audit(journal, "shop").is_clean
    with Apart(tmp_path, database=database, heads=heads) as server, Client(server.address, timeout=60) as client:
        assert client.decide("shop", ROWS).source == "baseline"
        assert client.set_mode("shop", "guarded")["mode"] == "guarded"
        assert server.stop() == 0
    with open_journal(database, read_only=True) as journal:
        check_heads(journal, str(heads))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_was_erased_after_the_backup_is_erased_again(kind: str, tmp_path: Path, server: PostgresServer) -> None:
    here = str(tmp_path / "shop.journal")
    database, backup = (here, tmp_path / "backup") if kind == "sqlite" else (new_database(server), tmp_path / "dump")
    heads, settings = tmp_path / "heads.jsonl", Settings(database=database, heads=str(tmp_path / "heads.jsonl"))
    guard: dict[str, Any] = {"alpha": 0.1, "delta": 0.05, "unit_window": 5}
    with running(settings) as address, Client(address, timeout=60) as client:
        client.create_experiment("shop", POLICY, mode="guarded")
        client.create_experiment("guard", guard, policy="Guard", mode="guarded")
        client.create_experiment("winter", POLICY)
        for n, person in enumerate(("amy", "bob", "amy", "eve")):
            client.decide("shop", ROWS, decision_id=f"{person}-{n}", context={"person": person})
            client.decide("guard", baseline="old", proposal="new", unit=person, decision_id=f"{person}-{n}")
        client.void("guard", "amy-0", action="something else", reason="it was sold out")
        erase(address, "shop", person="eve")
    if kind == "sqlite":
        assert shell("backup", database, backup)[0] == 0
    else:
        backup.write_bytes(dump(server, database))
    with running(settings) as address:
        erase(address, "shop", person="amy")
        erase(address, "guard", decision_ids=["amy-0"])
    with open_journal(database) as journal:  # no server runs: the next one lists it
        assert Experiment.open(journal, "guard").erase(person="bob", by="ops", reason="asked by letter") == 1
        delete(journal, "winter", by="ops", reason="the season is over")
    with running(settings) as address, Client(address, timeout=60) as client:
        client.decide("shop", ROWS, decision_id="last")
    listed = heads.with_name("heads.jsonl.erased")
    assert listed.stat().st_mode & 0o777 == 0o600
    assert not {b"amy", b"bob", b"eve"} & {word for word in (b"amy", b"bob", b"eve") if word in listed.read_bytes()}
    place: list[Any] = ["--from", backup]
    if kind == "sqlite":
        for file in tmp_path.glob("shop.journal*"):
            if file.is_file():
                file.unlink()
    else:
        place = []
        load(server, database, backup.read_bytes())
    options = ("--by", "ops", "--reason", "the disk died", *place, "--expect", heads, "--accept-loss")
    code, said, _ = shell("restore", database, *options)
    assert code == 0
    assert "Erased again: 2 private texts of 'shop', as had been done after the copy was made." in said
    assert "Erased again: 3 private texts of 'guard'" in said, "the round, what was really played, and bob's"
    assert "Erased again: the experiment 'winter'" in said
    with open_journal(database, read_only=True) as journal:
        assert journal.names() == ["guard", "shop"]
        assert [journal.view("shop").about(person) for person in ("amy", "eve")] == [[], []]
        assert len(journal.view("shop").about("bob")) == 1, "nobody else is erased"
        assert audit_journal(journal).is_clean
        assert all(audit(journal, name).is_clean for name in journal.names())
    with running(settings) as address:  # and the list goes on
        erase(address, "shop", person="bob")
    with open_journal(database, read_only=True) as journal:
        newest = journal.latest("shop", "erased")
    assert newest is not None
    assert newest.hash.encode() in listed.read_bytes()
    assert shell("restore", database, "--by", "ops", "--reason", "again", "--expect", heads)[0] == 0


def test_every_file_of_a_server_is_its_owners_alone(tmp_path: Path) -> None:
    database, heads, tokens = tmp_path / "shop.journal", tmp_path / "heads.jsonl", tmp_path / "tokens"
    before = os.umask(0)
    try:
        token = TokenFile(tokens).create(["admin"])
        settings = Settings(database=str(database), heads=str(heads), tokens=str(tokens))
        with running(settings) as address, Client(address, token=token, timeout=60) as client:
            client.create_experiment("shop", POLICY)
            client.create_experiment("guard", {"alpha": 0.1, "delta": 0.05}, policy="Guard", mode="guarded")
            client.decide("guard", baseline="old", proposal="new")
            client.decide("shop", ROWS, decision_id="gone")
            body = {"decision_ids": ["gone"], "reason": "asked by letter"}
            bearer = {"authorization": f"Bearer {token}"}
            httpx.post(f"{address}/v1/experiments/shop/erasures", json=body, headers=bearer, trust_env=False)
            assert shell("backup", database, tmp_path / "backup")[0] == 0
            for file in ("shop.csv", "shop.parquet", "shop.json", "guard.csv", "guard.json"):
                assert shell("experiment", "export", database, Path(file).stem, tmp_path / file)[0] == 0
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
        by = ("--by", "ops", "--reason", "the season is over")
        assert shell("experiment", "archive", database, "shop", tmp_path / "archive", *by)[0] == 0
        with open_journal(tmp_path / "edge.log") as journal:
            played(safe(), 5, journal=journal)
    finally:
        os.umask(before)
    modes |= {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert {
        "shop.journal-wal",
        "heads.jsonl.erased",
        "backup",
        "archive",
        "tokens.trail",
        "edge.log",
        "guard.csv",
    } <= modes.keys()
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def erase(address: str, name: str, **about: Any) -> None:
    body = {**about, "reason": "asked by letter"}
    httpx.post(f"{address}/v1/experiments/{name}/erasures", json=body, trust_env=False).raise_for_status()


def dump(server: PostgresServer, database: str) -> bytes:
    command = [str(server.bin_path / "pg_dump"), "--schema=surefoot", database]
    return subprocess.run(command, capture_output=True, check=True).stdout


def load(server: PostgresServer, database: str, content: bytes) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA surefoot CASCADE")
    psql = [str(server.bin_path / "psql"), "-q", "-v", "ON_ERROR_STOP=1", database]
    subprocess.run(psql, input=content, check=True, capture_output=True)


def test_a_restore_without_the_list_says_so_and_with_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    database, heads = str(tmp_path / "shop.journal"), tmp_path / "heads.jsonl"
    old_copy(database, heads)
    options = ("--by", "ops", "--reason", "a new disk", "--from", database, "--expect", heads)
    code, _, warning = shell("restore", tmp_path / "new.journal", *options)
    assert (code, "No list of erasures stands beside these heads" in warning) == (0, True)
    heads.with_name("heads.jsonl.erased").write_text("nonsense\n")
    code, _, error = shell("restore", tmp_path / "newer.journal", *options)
    assert (code, "must be the list of erasures" in error) == (2, True)
    assert not (tmp_path / "newer.journal").exists()


def test_a_copy_that_holds_every_known_head_is_restored_without_a_word_of_loss(tmp_path: Path) -> None:
    database, heads = str(tmp_path / "shop.journal"), tmp_path / "heads.jsonl"
    old_copy(database, heads)
    options = ("--by", "ops", "--reason", "a new disk", "--from", database, "--expect", heads)
    code, said, _ = shell("restore", tmp_path / "new.journal", *options)
    assert code == 0
    assert "Lost" not in said


def test_a_journal_moves_to_postgres_and_back_with_every_hash(tmp_path: Path, server: PostgresServer) -> None:
    source, back, url = tmp_path / "shop.db", tmp_path / "back.db", new_database(server)
    with open_journal(source) as journal:
        played(safe(), 120, journal=journal)
        Experiment.open(journal, "shop").snapshot()
        heads = heads_of(journal)
        receipts = [event.head for event in journal.read("shop")][::7]
    assert shell("move", source, url)[0] == 0
    code, said, _ = shell("move", url, back)
    assert code == 0
    assert heads["shop"].hash in said
    for address in (url, back):
        with open_journal(address) as journal:
            assert heads_of(journal) == heads
            assert audit(journal, "shop", expect=receipts).is_clean
            assert journal.attachment("shop", journal.latest("shop", "snapshot").value()["digest"])  # type: ignore[union-attr]
            assert Experiment.open(journal, "shop").status().rounds == 120


def test_a_move_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as source, open_journal("memory:") as target:
        played(safe(), 30, journal=source)
        first = next(source.read("shop"))
        target.create("shop", first.payload, time=first.time)
        second = list(source.read("shop", 1, limit=5))
        target.transact("shop", lambda t: [t.append(e.kind, e.payload, time=e.time, key=e.key) for e in second])
        assert copy_journal(source, target) == heads_of(target) == heads_of(source)


def test_a_move_onto_another_chain_is_refused(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as source, open_journal("memory:") as target:
        played(safe(), 5, journal=source)
        played(safe(), 5, journal=target, seed=9)
        before = target.head("shop")
        with pytest.raises(JournalConflictError, match="or has otherwise"):
            copy_experiment(source, target, "shop")
        assert target.head("shop") == before


def test_config_check_finds_an_older_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, heads = str(tmp_path / "shop.journal"), tmp_path / "heads.jsonl"
    copy = old_copy(database, heads)
    for name, path in (("SUREFOOT_HEADS", heads), ("SUREFOOT_PORT", "0")):
        monkeypatch.setenv(name, str(path))
    monkeypatch.setenv("SUREFOOT_DATABASE", database)
    assert shell("config", "check")[0] == 0
    monkeypatch.setenv("SUREFOOT_DATABASE", str(copy))
    assert shell("config", "check")[0] == 2
