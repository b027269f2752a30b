"""A journal on PostgreSQL stays one chain under several processes, and refuses what it cannot read."""

import random
import threading
from pathlib import Path

import psycopg
import pytest

from surefoot.errors import (
    JournalConflictError,
    JournalCorruptedError,
    JournalFullError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
    JournalUnavailableError,
)
from surefoot.journal import Transaction, open_journal, verify
from surefoot.journal.postgres import PostgresJournal
from surefoot.journal.private_text import PrivateText
from tests.journal.killing import Told, kill_at_random, nothing_lost_nothing_twice, start
from tests.journal.servers import PostgresServer, new_database
from tests.journal.writer import NAME, append


def test_two_journals_drive_one_chain(postgres: PostgresJournal, url: str) -> None:
    with PostgresJournal(url) as other:

        def count_up(postgres: PostgresJournal) -> None:
            for _ in range(40):
                postgres.transact(NAME, lambda t: t.append("decision", b"%d" % t.head.number, time=0.0))

        threads = [threading.Thread(target=count_up, args=(each,)) for each in (postgres, other, postgres, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        events = list(other.read(NAME, 1))
    assert [event.value() for event in events] == list(range(1, 161))


def test_many_processes_may_open_an_empty_database_at_once(url: str) -> None:
    opened, threads = list[PostgresJournal](), list[threading.Thread]()
    for _ in range(6):
        threads.append(threading.Thread(target=lambda: opened.append(PostgresJournal(url))))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 6
    for journal in opened:
        journal.close()


REFUSING = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
CREATE TRIGGER refusing BEFORE INSERT ON surefoot.private FOR EACH ROW WHEN (NEW.number > 20) EXECUTE FUNCTION refuse();
"""
REFUSING_ALL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
CREATE TRIGGER refusing BEFORE INSERT ON surefoot.events FOR EACH ROW EXECUTE FUNCTION refuse();
"""
ADMITTING_ALL = "DROP TRIGGER refusing ON surefoot.events; DROP FUNCTION refuse()"


def append_sealed(transaction: Transaction, count: int) -> None:
    for n in range(count):
        private = PrivateText(f"visit-{transaction.head.number}-{n}", None, b"salt", b"text")
        transaction.append("decision", b"{}", time=0.0, private=private)


@pytest.mark.parametrize("groups", [1, 5])
def test_one_refusal_among_statements_that_are_sent_together_stops_no_later_write(
    postgres: PostgresJournal, url: str, groups: int
) -> None:
    # psycopg prepares a statement that it has sent five times, and groups of several sizes are several statements.
    dice = random.Random(groups)

    def write(journal: PostgresJournal) -> None:
        journal.transact(NAME, lambda transaction: append_sealed(transaction, dice.randint(1, 40)))

    with PostgresJournal(url) as journal, psycopg.connect(url, autocommit=True) as connection:
        for _ in range(groups):
            write(journal)
        connection.execute(REFUSING_ALL)
        with pytest.raises(JournalFullError):
            write(journal)
        connection.execute(ADMITTING_ALL)
        for _ in range(20):
            write(journal)
        verify(NAME, journal.read(NAME))


def test_what_is_refused_among_statements_that_are_sent_together_is_said_and_nothing_is_written(
    postgres: PostgresJournal, url: str
) -> None:
    def work(transaction: Transaction) -> None:
        append_sealed(transaction, 40)

    before = postgres.head(NAME)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(REFUSING)
        with pytest.raises(JournalFullError):
            postgres.transact(NAME, work)
        assert postgres.head(NAME) == before
        assert list(postgres.view(NAME).privates(0, 100)) == []
        connection.execute("DROP TRIGGER refusing ON surefoot.private")
    postgres.transact(NAME, work)
    assert postgres.head(NAME).number == before.number + 40
    assert len(postgres.view(NAME).privates(0, 100)) == 40
    verify(NAME, postgres.read(NAME))


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.long)])
def test_killed_writers_lose_nothing_that_they_acknowledged(postgres: PostgresJournal, url: str, kills: int) -> None:
    dice, told = random.Random(kills), Told()
    for n in range(kills):
        unsure = sorted(told.unsure)
        writers = [start(url, f"{n}{w}", set(unsure[i::2])) for i, w in enumerate("ab")]
        kill_at_random(writers, dice, told, 0.2)
        nothing_lost_nothing_twice(postgres, told)
    assert len(told.done) > 5 * kills


def test_a_reader_writes_nothing(postgres: PostgresJournal, url: str, server: PostgresServer) -> None:
    append(postgres, "d")
    with open_journal(url, read_only=True) as reader:
        assert reader.head(NAME).number == 2
        with pytest.raises(JournalReadOnlyError):
            reader.transact(NAME, lambda t: None)
    with pytest.raises(JournalNotFoundError):
        open_journal(new_database(server), read_only=True)


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailableError):
        open_journal(f"postgresql://postgres@/postgres?host={tmp_path}")


def test_a_newer_journal_and_edited_events_are_refused(postgres: PostgresJournal, url: str) -> None:
    append(postgres, "d")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE surefoot.events SET time = 1 WHERE number = 2")
        with pytest.raises(JournalCorruptedError, match="event 2"):
            list(postgres.read(NAME))
        connection.execute("DELETE FROM surefoot.events WHERE number = 2")
        with pytest.raises(JournalCorruptedError, match="missing"):
            append(postgres, "e")
        connection.execute("INSERT INTO surefoot.schema VALUES (999)")
    for read_only in (False, True):
        with pytest.raises(JournalSchemaError, match="version 999"):
            open_journal(url, read_only=read_only)


def test_a_commit_is_flushed_even_where_the_server_would_not(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET synchronous_commit = off")
    with PostgresJournal(url) as journal:
        assert journal._read("SHOW synchronous_commit", ()) == [("on",)]
        journal.create(NAME, b"", time=0.0)
        with pytest.raises(JournalConflictError):
            journal.create(NAME, b"", time=0.0)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"], ids=["zero", "half a letter"])
def test_a_name_that_no_experiment_can_have_is_not_found(postgres: PostgresJournal, name: str) -> None:
    with pytest.raises(JournalNotFoundError):
        postgres.view(name)
    with pytest.raises(JournalNotFoundError):
        postgres.transact(name, lambda transaction: transaction.head)
    assert append(postgres, "d").number == 2
