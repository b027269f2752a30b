"""Journals of every kind, each fresh and empty, and the server that some of them live on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surefoot.journal import Journal, open_journal
from surefoot.journal.postgres import PostgresJournal
from surefoot.journal.sqlite import SqliteJournal
from tests.journal.writer import NAME

BACKENDS = ("memory", "file", "unsynced file", "sqlite", "postgres")


@pytest.fixture(params=BACKENDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a fresh journal of each kind can be opened."""
    places: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory:",
        "file": lambda: str(tmp_path / "a journal ?#%.log"),
        "unsynced file": lambda: str(tmp_path / "unsynced ?#%.log"),
        "sqlite": lambda: str(tmp_path / "a journal ?#%.db"),
        "postgres": lambda: str(request.getfixturevalue("url")),
    }
    return places[request.param]()


@pytest.fixture
def journal(address: str) -> Iterator[Journal]:
    with open_journal(address, sync="unsynced" not in address) as journal:
        yield journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.journal"


@pytest.fixture
def sqlite(path: Path) -> Iterator[SqliteJournal]:
    """A journal in a file, with one experiment."""
    with SqliteJournal(path) as journal:
        journal.create(NAME, b"{}", time=0.0)
        yield journal


@pytest.fixture
def postgres(url: str) -> Iterator[PostgresJournal]:
    """A journal on PostgreSQL, with one experiment."""
    with PostgresJournal(url) as journal:
        journal.create(NAME, b"{}", time=0.0)
        yield journal
