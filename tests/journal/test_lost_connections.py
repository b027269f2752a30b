"""A server that goes away at any moment, even in the middle of a commit, leaves nobody in doubt for long."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from surefoot.errors import (
    JournalError,
    JournalUnavailableError,
    OutcomeUnknownError,
)
from surefoot.journal import Transaction
from surefoot.journal.postgres import PostgresJournal
from tests.journal.killing import Told, nothing_lost_nothing_twice
from tests.journal.proxy import Proxy
from tests.journal.servers import running_server
from tests.journal.writer import NAME, append


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("stop", [signal.SIGQUIT, signal.SIGINT], ids=["crash", "fast stop"])
def test_a_server_that_stops_and_comes_back_loses_nothing(stop: signal.Signals) -> None:
    told, refused, halt = Told(), set[str](), threading.Event()

    def keep_sending(journal: PostgresJournal, worker: int) -> None:
        for n in range(100_000):
            key = f"{worker}-{n}"
            told.sent.add(key)
            try:
                append(journal, key)
                told.done.add(key)
            except JournalUnavailableError:
                refused.add(key)
                halt.wait(0.02)
            except OutcomeUnknownError:
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
        assert not refused & set(told.kept)  # who was told that nothing was written plays the baseline


COMMITTING = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query = 'COMMIT'"


def test_a_session_that_is_ended_while_it_commits_leaves_nobody_in_doubt() -> None:
    with running_server() as server, psycopg.connect(server.get_uri(), autocommit=True) as operator:
        # So that there is time to end it.
        operator.execute("ALTER SYSTEM SET commit_delay = 100000")
        operator.execute("ALTER SYSTEM SET commit_siblings = 0")
        operator.execute("SELECT pg_reload_conf()")
        with PostgresJournal(server.get_uri()) as journal:
            journal.create(NAME, b"{}", time=0.0)

            def end() -> None:
                _wait_until(lambda: operator.execute(COMMITTING).rowcount > 0)
                operator.execute(f"SELECT pg_terminate_backend(pid) FROM ({COMMITTING}) AS found")

            for n in range(3):
                thread = threading.Thread(target=end)
                thread.start()
                assert append(journal, f"d{n}") == journal.find(NAME, f"d{n}")
                thread.join()


def _wait_for_more(told: Told) -> None:
    before = len(told.done)
    _wait_until(lambda: len(told.done) > before + 20)


def _wait_until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("lost", ["answer", "rest"])
def test_a_commit_whose_answer_is_lost_was_written_once(postgres: PostgresJournal, proxy: Proxy, lost: str) -> None:
    with PostgresJournal(proxy.url) as remote:
        append(remote, "before")
        proxy.lose = lost
        assert append(remote, "d") == postgres.find(NAME, "d")
        proxy.lose = lost
        assert remote.create("other", b"{}", time=0.0).head == postgres.head("other")
        assert append(remote, "after").number == 4


def test_a_commit_that_never_arrives_was_not_written(postgres: PostgresJournal, proxy: Proxy) -> None:
    with PostgresJournal(proxy.url) as remote:
        proxy.lose = "request"
        with pytest.raises(JournalUnavailableError, match="nothing was written"):
            append(remote, "d")
        proxy.lose = "request"
        with pytest.raises(JournalUnavailableError, match="nothing was written"):
            remote.create("other", b"{}", time=0.0)
        assert postgres.names() == [NAME]
        assert append(remote, "d").number == 2


def test_a_commit_with_no_way_to_look_is_an_unknown_outcome(postgres: PostgresJournal, proxy: Proxy) -> None:
    with PostgresJournal(proxy.url, patience=0.3) as remote:
        append(remote, "before")
        proxy.lose, proxy.accepts = "answer", False
        with pytest.raises(OutcomeUnknownError, match="Look it up by its key"):
            append(remote, "d")
        proxy.accepts = True
        assert remote.find(NAME, "d") == postgres.find(NAME, "d")
        assert append(remote, "after") == postgres.find(NAME, "after")


def test_a_connection_that_died_idle_is_replaced(postgres: PostgresJournal, url: str) -> None:
    append(postgres, "before")
    _end_sessions(url)
    assert postgres.head(NAME).number == 2
    _end_sessions(url)
    assert append(postgres, "after").number == 3


def test_a_connection_that_dies_inside_a_transaction_writes_nothing(postgres: PostgresJournal, url: str) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append("decision", b"", time=0.0, key="d")
        _end_sessions(url)

    with pytest.raises(JournalUnavailableError):
        postgres.transact(NAME, work)
    assert postgres.find(NAME, "d") is None
    assert append(postgres, "d").number == 2


def test_work_that_swallows_an_error_of_the_server_is_not_acknowledged(postgres: PostgresJournal) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append("decision", b"", time=0.0, key="d")
        with pytest.raises(JournalError):
            transaction.over.over._query("SELECT 1/0", ())  # type: ignore[attr-defined]

    with pytest.raises(JournalError):
        postgres.transact(NAME, work)
    assert postgres.head(NAME).number == 1


def _end_sessions(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_work_runs_alone_even_when_the_server_forgets_its_lock(postgres: PostgresJournal, url: str) -> None:
    order = list[str]()

    def first(transaction: Transaction) -> None:
        transaction.append("decision", b"", time=0.0, key="d")
        _end_sessions(url)
        other.start()
        time.sleep(0.3)
        order.append("first ended")

    def second(transaction: Transaction) -> None:
        order.append("second began")
        transaction.append("decision", b"", time=0.0, key="e")

    other = threading.Thread(target=lambda: postgres.transact(NAME, second))
    with pytest.raises(JournalUnavailableError):
        postgres.transact(NAME, first)
    other.join()
    assert order == ["first ended", "second began"]
    assert [event.key for event in postgres.read(NAME, 1)] == ["e"]


PATIENCE = 1.0


@pytest.mark.parametrize("lost", ["hang before", "hang after"])
def test_a_session_that_hangs_in_its_commit_leaves_nobody_in_doubt(
    postgres: PostgresJournal, proxy: Proxy, lost: str
) -> None:
    with PostgresJournal(proxy.url, patience=PATIENCE) as remote:
        append(remote, "before")
        proxy.lose = lost
        if lost == "hang after":
            assert append(remote, "d") == postgres.find(NAME, "d")
        else:
            with pytest.raises(JournalUnavailableError, match="nothing was written"):
                append(remote, "d")
            assert postgres.find(NAME, "d") is None
        assert append(remote, "after") == postgres.find(NAME, "after")


def test_other_experiments_go_on_while_a_session_hangs_and_the_probe_names_its_experiment(
    postgres: PostgresJournal, proxy: Proxy
) -> None:
    with PostgresJournal(proxy.url, patience=4.0) as remote:
        remote.create("other", b"{}", time=0.0)
        proxy.lose, named = "hang after", dict[str, str]()
        hanging = threading.Thread(target=append, args=(remote, "d"))
        hanging.start()
        _wait_until(lambda: proxy.lose is None)
        while NAME not in named and hanging.is_alive():
            remote.transact("other", lambda t: t.append("decision", b"", time=0.0))
            named = remote.probe()
        assert "not answered" in named[NAME]
        assert "other" not in named
        hanging.join()
        assert remote.find(NAME, "d") is not None
        assert remote.probe() == {}


def test_a_server_that_falls_silent_is_unavailable_and_comes_back(postgres: PostgresJournal, proxy: Proxy) -> None:
    with PostgresJournal(proxy.url, patience=PATIENCE) as remote:
        with ThreadPoolExecutor(4) as threads:  # several sessions that are idle then
            list(threads.map(lambda n: append(remote, f"before {n}"), range(8)))
        proxy.is_silent = True
        for call in (lambda: append(remote, "d"), lambda: remote.head(NAME), remote.probe, remote.clock):
            with pytest.raises((JournalUnavailableError, OutcomeUnknownError)):
                call()
        proxy.is_silent = False
        _wait_until(lambda: _is_there(remote))
        assert append(remote, "after") == postgres.find(NAME, "after")
        assert remote.probe() == {}


def _is_there(journal: PostgresJournal) -> bool:
    try:
        return journal.names() == [NAME]
    except JournalError:
        return False


def test_a_process_that_hangs_in_a_transaction_does_not_stop_the_others(postgres: PostgresJournal, url: str) -> None:
    with PostgresJournal(url, patience=PATIENCE) as other:
        began, held = threading.Event(), threading.Event()

        def work(transaction: Transaction) -> None:
            transaction.append("decision", b"", time=0.0, key="d")
            began.set()
            held.wait(60)

        future = other.submit(NAME, work, executor=ThreadPoolExecutor(1))
        began.wait(60)
        _wait_until(lambda: append_or_none(postgres, "from elsewhere") is not None)
        held.set()
        with pytest.raises(JournalUnavailableError):
            future.result()
        assert [event.key for event in postgres.read(NAME, 1)] == ["from elsewhere"]


def append_or_none(journal: PostgresJournal, key: str) -> object:
    try:
        return append(journal, key)
    except JournalError:
        return None
