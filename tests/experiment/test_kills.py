"""Processes under load that are killed at random moments, and servers that go away: nothing is lost, nothing twice."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot.errors import JournalUnavailableError
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from tests.experiment.client import NAME, begin
from tests.experiment.killing import Notes, a_moment, check, check_all, one_life
from tests.journal.servers import PostgresServer, new_database, running_server


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


def sqlite_kills(path: Path, notes: Notes, kills: int, seed: int) -> None:
    rng, address = random.Random(seed), str(path)
    begin(address)
    for life in range(kills):
        one_life(address, notes, [f"life{life}"], a_moment(rng, notes))
        if life % 4 == 0:
            with open_journal(address) as journal:
                check(journal, notes)
    check_all(address, notes)
    assert len(notes.paid) > 10 * kills
    assert len(notes.voids) > kills


def postgres_kills(url: str, notes: Notes, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    begin(url)
    for life in range(kills):
        one_life(url, notes, [f"left{life}", f"right{life}"], a_moment(rng, notes))
    check_all(url, notes)
    assert len(notes.paid) > 5 * kills


def test_sqlite_loses_nothing_when_its_process_is_killed(tmp_path: Path, notes: Notes) -> None:
    sqlite_kills(tmp_path / "shop.db", notes, kills=24, seed=1)


def test_postgres_loses_nothing_when_two_processes_are_killed(server: PostgresServer, notes: Notes) -> None:
    postgres_kills(new_database(server), notes, kills=12, seed=2)


@pytest.mark.long
def test_sqlite_loses_nothing_in_hundreds_of_kills(tmp_path: Path, notes: Notes) -> None:
    sqlite_kills(tmp_path / "shop.db", notes, kills=400, seed=3)


@pytest.mark.long
def test_postgres_loses_nothing_in_hundreds_of_kills(server: PostgresServer, notes: Notes) -> None:
    postgres_kills(new_database(server), notes, kills=200, seed=4)


def bounce(server: PostgresServer, times: int, rng: random.Random) -> None:
    """Stop the server, gently or not, and start it again."""
    for _ in range(times):
        time.sleep(rng.uniform(0.1, 0.4))
        if rng.random() < 0.5:
            server.stop()
        else:
            process = server.get_postmaster_info().process
            assert process is not None
            os.kill(process.pid, signal.SIGQUIT)  # at once, as after a crash
            process.wait(20)
        time.sleep(rng.uniform(0.0, 0.2))
        server.start()
    time.sleep(0.3)


def test_two_writers_go_through_restarts_of_the_server(server: PostgresServer, notes: Notes) -> None:
    rng, url = random.Random(5), new_database(server)
    begin(url)
    for life in range(2):
        one_life(url, notes, [f"left{life}", f"right{life}"], lambda: bounce(server, 2, rng))
    check_all(url, notes)
    assert len(notes.paid) > 10


def test_a_server_that_is_away_is_an_error_and_nothing_more(server: PostgresServer) -> None:
    url = new_database(server)
    begin(url)
    with open_journal(url) as journal:
        shop = Experiment.open(journal, NAME)
        shop.decide([[0.5, 0.5]], baseline=0, decision_id="before")
        server.stop()
        try:
            with pytest.raises(JournalUnavailableError):
                shop.decide([[0.5, 0.5]], baseline=0, decision_id="during")
        finally:
            server.start()
        assert shop.decide([[0.5, 0.5]], baseline=0, decision_id="during").round == 2
        assert shop.decide([[0.5, 0.5]], baseline=0, decision_id="before").is_repeat
