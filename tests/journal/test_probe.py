"""A probe tries every experiment: one that takes no events is named, whichever it is, and leaves no trace elsewhere."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from surefoot.errors import JournalError
from surefoot.journal import Journal, open_journal, sql
from tests.journal.servers import PostgresServer, new_database

NAMES = ("first", "second", "third")
REFUSE = {
    "sqlite": """CREATE TRIGGER refusing BEFORE INSERT ON events WHEN NEW.experiment IN ({ids})
                 BEGIN SELECT RAISE(ABORT, 'not here'); END""",
    "postgres": """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN RAISE EXCEPTION 'not here'; END $$;
                   CREATE TRIGGER refusing BEFORE INSERT ON surefoot.events FOR EACH ROW
                   WHEN (NEW.experiment IN ({ids})) EXECUTE FUNCTION refuse();""",
}
ADMIT = {
    "sqlite": "DROP TRIGGER refusing",
    "postgres": "DROP TRIGGER refusing ON surefoot.events; DROP FUNCTION refuse()",
}
TABLE = {"sqlite": "experiments", "postgres": "surefoot.experiments"}


class Store:
    """A journal with three experiments, and a way past it."""

    def __init__(self, kind: str, address: str) -> None:
        self.kind, self.address = kind, address
        self.journal: Journal = open_journal(address)
        for name in NAMES:
            self.journal.create(name, b"{}", time=0.0)

    def execute(self, statement: str) -> list[tuple[int]]:
        if self.kind == "postgres":
            with psycopg.connect(self.address, autocommit=True) as connection:
                cursor = connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
        with sqlite3.connect(self.address, timeout=10) as file:
            found = file.execute(statement).fetchall()
        file.close()
        return found

    def refuse(self, *names: str) -> None:
        told = ", ".join(f"'{name}'" for name in names)
        ids = self.execute(f"SELECT id FROM {TABLE[self.kind]} WHERE name IN ({told})")
        self.execute(REFUSE[self.kind].format(ids=", ".join(str(row[0]) for row in ids)))

    def admit(self) -> None:
        self.execute(ADMIT[self.kind])


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    places: dict[str, Callable[[], str]] = {
        "sqlite": lambda: str(tmp_path / "shop.db"),
        "postgres": lambda: new_database(request.getfixturevalue("server")),
    }
    made = Store(request.param, places[request.param]())
    yield made
    made.journal.close()


@pytest.mark.parametrize("bad", NAMES)
def test_one_that_takes_no_events_is_named_and_is_well_again_once_it_does(store: Store, bad: str) -> None:
    heads = {name: store.journal.head(name) for name in NAMES}
    assert store.journal.probe() == {}
    store.refuse(bad)
    for _ in range(3):
        found = store.journal.probe()
        assert list(found) == [bad]
        assert "not here" in found[bad]
    for name in set(NAMES) - {bad}:
        store.journal.transact(name, lambda turn: turn.append("decision", b"{}", time=1.0))
    store.admit()
    assert store.journal.probe() == {}
    store.journal.transact(bad, lambda turn: turn.append("decision", b"{}", time=1.0))
    assert {name: store.journal.head(name).number for name in NAMES} == {name: heads[name].number + 1 for name in NAMES}


def test_where_none_takes_events_it_is_the_journal(store: Store) -> None:
    store.refuse(*NAMES)
    with pytest.raises(JournalError, match="not here"):
        store.journal.probe()
    store.admit()
    assert store.journal.probe() == {}


def test_of_many_each_has_its_turn(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "PROBED_AT_ONCE", 1)
    store.journal.probe()
    store.refuse("second", "third")
    found = [sorted(store.journal.probe()) for _ in range(4)]
    assert found[-1] == ["second", "third"]  # and the first, which takes events, is asked each time


def test_a_lock_that_nobody_writes_under_is_told_and_one_that_is_written_under_is_not(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database(server)
    store = Store("postgres", url)
    lock = "SELECT number FROM surefoot.experiments WHERE name = 'second' FOR UPDATE"
    with store.journal, psycopg.connect(url) as other:
        other.execute(lock)
        assert store.journal.probe() == {}
        monkeypatch.setattr(sql, "STUCK_SECONDS", 0.0)
        assert list(store.journal.probe()) == ["second"]
        other.rollback()
        assert store.journal.probe() == {}
        for _ in range(3):  # somebody who writes holds it at every probe, and comes on
            other.execute(lock)
            assert store.journal.probe() == {}
            other.rollback()
            store.journal.transact("second", lambda turn: turn.append("decision", b"{}", time=1.0))


def test_what_is_gone_is_forgotten() -> None:
    probe = sql.Probe()
    rows = [(1, "a", 1), (2, "b", 1)]
    assert probe.note(probe.choose(rows), {"b": JournalError("why")}) == {"b": "why"}
    assert probe.note(probe.choose(rows[:1]), {}) == {}
