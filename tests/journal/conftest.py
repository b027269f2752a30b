"""Journals of every kind, each fresh and empty, and the server that some of them live on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surefoot.journal import Journal, open_journal
from tests.journal.servers import PostgresServer, new_database, running_server

BACKENDS = ("memory", "sqlite", "postgres")


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(params=BACKENDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a fresh journal of each kind can be opened."""
    places: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory:",
        "sqlite": lambda: str(tmp_path / "a journal ?#%.db"),
        "postgres": lambda: new_database(request.getfixturevalue("server")),
    }
    return places[request.param]()


@pytest.fixture
def journal(address: str) -> Iterator[Journal]:
    with open_journal(address) as journal:
        yield journal
