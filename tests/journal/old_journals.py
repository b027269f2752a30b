"""Journals of earlier versions, kept as files: each must open for ever.

`python -m tests.journal.old_journals` writes those of today's version; a file that exists is never written again.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from surefoot.journal import Journal, Transaction, canonical
from surefoot.journal.migrations import NEWEST
from surefoot.journal.postgres import PostgresJournal
from surefoot.journal.sqlite import SqliteJournal
from tests.journal.servers import dump, new_database, running_server

FOLDER = Path(__file__).parent / "fixtures"
# What every kept journal ends with: should the tables or the hash change, these still have to come out.
HEADS = {
    "shop": (8, "89d146ccea53e596b78c2e7d77ff80462330ad01166aa75eeb88b87327760e06"),
    "büro": (1, "d7f98fb284fc78cebb763955b6097f2b7b0a2e69bfe87e7a823d1bc70566a9dd"),
}


def fill(journal: Journal) -> None:
    """A little of everything that a journal can hold."""

    def work(transaction: Transaction) -> None:
        for n in range(3):
            payload = canonical({"action": n, "features": [0.1 * n, 1 / 3], "note": "é\u2028"})
            transaction.append("decision", payload, time=1754000000.25 + n, key=f"d-{n}")
            transaction.append("reward", canonical({"reward": -n / 7}), time=1754000001.0 + n, key=f"reward/d-{n}")
        digest = transaction.attach(b"a snapshot of the state")
        transaction.append("snapshot", canonical({"digest": digest}), time=1754000009.0)

    journal.create("shop", canonical({"alpha": 0.05}), time=1754000000.0)
    journal.create("büro", canonical({}), time=0.5)
    journal.transact("shop", work)


def write_sqlite(path: Path) -> None:
    """One small file, without a log beside it."""
    with SqliteJournal(path) as journal:
        fill(journal)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    path.with_name(path.name + "-writer").unlink()


def write_postgres(path: Path) -> None:
    """The statements that make the tables and fill them, as pg_dump writes them."""
    with running_server() as server:
        url = new_database(server)
        with PostgresJournal(url) as journal:
            fill(journal)
        path.write_text(dump(server, url), encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, write in (
        (FOLDER / f"version{NEWEST}.journal", write_sqlite),
        (FOLDER / f"version{NEWEST}.sql", write_postgres),
    ):
        if not path.exists():
            write(path)
