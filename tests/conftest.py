"""A PostgreSQL server for all tests of a process, which takes seconds to start, and new databases on it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.journal.servers import PostgresServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Proxies of LiteLLM first: they wait for most of their time, and no worker is left alone with them at the end."""
    items.sort(key=lambda item: "integrations" not in item.path.parts)


@pytest.fixture(scope="session")
def server() -> "Iterator[PostgresServer]":
    """A server that nobody stops: whoever does starts one of its own."""
    from tests.journal.servers import running_server  # of psycopg and a server, which few tests need

    with running_server() as server:
        yield server


@pytest.fixture
def url(server: "PostgresServer") -> str:
    """The address of a new, empty database."""
    from tests.journal.servers import new_database

    return new_database(server)
