"""A journal on PostgreSQL stays one chain under several processes, lost connections and a server that goes away."""

import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from surefoot.errors import (
    JournalConflictError,
    JournalCorruptedError,
    JournalError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
    JournalUnavailableError,
    OutcomeUnknownError,
)
from surefoot.journal import Event, Transaction, open_journal
from surefoot.journal.postgres import PostgresJournal
from tests.journal.killing import Told, kill_at_random, nothing_lost_nothing_twice, start
from tests.journal.proxy import Proxy
from tests.journal.servers import PostgresServer, new_database, running_server
from tests.journal.writer import NAME


@pytest.fixture
def url(server: PostgresServer) -> str:
    return new_database(server)


@pytest.fixture
def journal(url: str) -> Iterator[PostgresJournal]:
    with PostgresJournal(url) as journal:
        journal.create(NAME, b"{}", time=0.0)
        yield journal


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with tempfile.TemporaryDirectory() as folder:
        proxy = Proxy(url, Path(folder))
        yield proxy
        proxy.close()


def append(journal: PostgresJournal, key: str) -> Event:
    return journal.transact(NAME, lambda t: t.append("decision", b"{}", time=0.0, key=key))


def test_two_journals_drive_one_chain(journal: PostgresJournal, url: str) -> None:
    with PostgresJournal(url) as other:

        def count_up(journal: PostgresJournal) -> None:
            for _ in range(40):
                journal.transact(NAME, lambda t: t.append("decision", b"%d" % t.head.number, time=0.0))

        threads = [threading.Thread(target=count_up, args=(each,)) for each in (journal, other, journal, other)]
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


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.long)])
def test_killed_writers_lose_nothing_that_they_acknowledged(journal: PostgresJournal, url: str, kills: int) -> None:
    dice, told = random.Random(kills), Told()
    for n in range(kills):
        unsure = sorted(told.unsure)
        writers = [start(url, f"{n}{w}", set(unsure[i::2])) for i, w in enumerate("ab")]
        kill_at_random(writers, dice, told, 0.2)
        nothing_lost_nothing_twice(journal, told)
    assert len(told.done) > 5 * kills


@pytest.mark.parametrize("stop", [signal.SIGQUIT, signal.SIGINT], ids=["crash", "fast stop"])
def test_a_server_that_stops_and_comes_back_loses_nothing(stop: signal.Signals) -> None:
    told, halt = Told(), threading.Event()

    def keep_sending(journal: PostgresJournal, worker: int) -> None:
        for n in range(100_000):
            key = f"{worker}-{n}"
            told.sent.add(key)
            try:
                append(journal, key)
                told.done.add(key)
            except (JournalUnavailableError, OutcomeUnknownError):
                halt.wait(0.02)
            if halt.is_set():
                return

    with running_server() as server, PostgresJournal(server.get_uri()) as journal:
        journal.create(NAME, b"{}", time=0.0)
        threads = [threading.Thread(target=keep_sending, args=(journal, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            _wait_for_more(told)
            os.kill(server.get_pid() or 0, stop)
            _wait_until(lambda: not (server.pgdata / "postmaster.pid").exists())
            server.start()
        _wait_for_more(told)
        halt.set()
        for thread in threads:
            thread.join()
        nothing_lost_nothing_twice(journal, told)


def _wait_for_more(told: Told) -> None:
    before = len(told.done)
    _wait_until(lambda: len(told.done) > before + 20)


def _wait_until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_commit_whose_answer_is_lost_was_written_once(journal: PostgresJournal, proxy: Proxy) -> None:
    with PostgresJournal(proxy.url) as remote:
        append(remote, "before")
        proxy.lose = "answer"
        assert append(remote, "d") == journal.find(NAME, "d")
        proxy.lose = "answer"
        assert remote.create("other", b"{}", time=0.0).head == journal.head("other")
        assert append(remote, "after").number == 4


def test_a_commit_that_never_arrives_was_not_written(journal: PostgresJournal, proxy: Proxy) -> None:
    with PostgresJournal(proxy.url) as remote:
        proxy.lose = "request"
        with pytest.raises(JournalUnavailableError, match="nothing was written"):
            append(remote, "d")
        proxy.lose = "request"
        with pytest.raises(JournalUnavailableError, match="nothing was written"):
            remote.create("other", b"{}", time=0.0)
        assert journal.names() == [NAME]
        assert append(remote, "d").number == 2


def test_a_commit_with_no_way_to_look_is_an_unknown_outcome(journal: PostgresJournal, proxy: Proxy) -> None:
    with PostgresJournal(proxy.url, patience=0.3) as remote:
        append(remote, "before")
        proxy.lose, proxy.accepts = "answer", False
        with pytest.raises(OutcomeUnknownError, match="Look it up by its key"):
            append(remote, "d")
        proxy.accepts = True
        assert remote.find(NAME, "d") == journal.find(NAME, "d")
        assert append(remote, "after") == journal.find(NAME, "after")


def test_a_connection_that_died_idle_is_replaced(journal: PostgresJournal, url: str) -> None:
    append(journal, "before")
    _end_sessions(url)
    assert journal.head(NAME).number == 2
    _end_sessions(url)
    assert append(journal, "after").number == 3


def test_a_connection_that_dies_inside_a_transaction_writes_nothing(journal: PostgresJournal, url: str) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append("decision", b"", time=0.0, key="d")
        _end_sessions(url)

    with pytest.raises(JournalUnavailableError):
        journal.transact(NAME, work)
    assert journal.find(NAME, "d") is None
    assert append(journal, "d").number == 2


def test_work_that_swallows_an_error_of_the_server_is_not_acknowledged(journal: PostgresJournal) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append("decision", b"", time=0.0, key="d")
        with pytest.raises(JournalError):
            transaction.over._query("SELECT 1/0", ())  # type: ignore[attr-defined]

    with pytest.raises(JournalError):
        journal.transact(NAME, work)
    assert journal.head(NAME).number == 1


def _end_sessions(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_reader_writes_nothing(journal: PostgresJournal, url: str, server: PostgresServer) -> None:
    append(journal, "d")
    with open_journal(url, read_only=True) as reader:
        assert reader.head(NAME).number == 2
        with pytest.raises(JournalReadOnlyError):
            reader.transact(NAME, lambda t: None)
    with pytest.raises(JournalNotFoundError):
        open_journal(new_database(server), read_only=True)


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailableError):
        open_journal(f"postgresql://postgres@/postgres?host={tmp_path}")


def test_a_newer_journal_and_edited_events_are_refused(journal: PostgresJournal, url: str) -> None:
    append(journal, "d")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE surefoot.events SET time = 1 WHERE number = 2")
        with pytest.raises(JournalCorruptedError, match="event 2"):
            list(journal.read(NAME))
        connection.execute("DELETE FROM surefoot.events WHERE number = 2")
        with pytest.raises(JournalCorruptedError, match="missing"):
            append(journal, "e")
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
