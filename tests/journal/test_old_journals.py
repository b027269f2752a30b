"""A journal that some version of surefoot wrote opens in every later one, with every event as it was."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from surefoot.journal import Journal, open_journal
from surefoot.journal.in_memory import MemoryJournal
from surefoot.journal.migrations import NEWEST
from tests.journal.old_journals import FOLDER, HEADS, fill
from tests.journal.servers import PostgresServer, restore

VERSIONS = range(1, NEWEST + 1)


def holds_what_was_written(journal: Journal) -> None:
    with MemoryJournal() as fresh:
        fill(fresh)
        assert journal.names() == fresh.names() == sorted(HEADS)
        for name in HEADS:
            assert list(journal.read(name)) == list(fresh.read(name))
            assert journal.head(name) == HEADS[name]
    snapshot = journal.latest("shop", "snapshot")
    assert snapshot is not None
    assert journal.attachment("shop", snapshot.value()["digest"]) == b"a snapshot of the state"
    found = journal.find("shop", "reward/d-2")
    assert found is not None
    assert found.number == 7


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_every_version_opens(version: int, tmp_path: Path) -> None:
    path = tmp_path / "old.journal"
    shutil.copy(FOLDER / f"version{version}.journal", path)
    with open_journal(path) as journal:
        holds_what_was_written(journal)
        assert journal.transact("shop", lambda t: t.append("decision", b"{}", time=0.0)).number == 9


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_every_version_opens(version: int, server: PostgresServer) -> None:
    url = restore(server, (FOLDER / f"version{version}.sql").read_text(encoding="utf-8"))
    with open_journal(url) as journal:
        holds_what_was_written(journal)
        assert journal.transact("shop", lambda t: t.append("decision", b"{}", time=0.0)).number == 9


def test_the_kept_file_has_the_tables_of_today(tmp_path: Path) -> None:
    open_journal(tmp_path / "new.journal").close()
    kept, new = (_tables(path) for path in (FOLDER / f"version{NEWEST}.journal", tmp_path / "new.journal"))
    assert kept == new


def _tables(path: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
