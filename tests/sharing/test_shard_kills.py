"""Servers and the database killed under load: nothing that was acknowledged is lost, one floor, a clean audit."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.audit import audit_shards
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode
from surefoot.rounds.events import REWARD, ROUND, PairRound, Reward, RowsRound
from tests.experiment.killing import Notes
from tests.journal.servers import PostgresServer, new_database, running_server
from tests.sharing.experiments import at
from tests.sharing.shard_server import ALPHA, MEANS, NAME, RESERVE, THETA, begin_in, joined, live, rows_of

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.sharing.shard_server"])
SHARDS = ("berlin", "lima", "tokyo")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


class Servers:
    """Three servers, each with a journal of its own, that meet on one PostgreSQL."""

    def __init__(self, hub: str, folder: Path) -> None:
        self.hub, self.folder = hub, folder
        self.notes = {shard: Notes(folder / f"{shard}.notes") for shard in SHARDS}
        self.lives = dict.fromkeys(SHARDS, 0)
        self.processes: dict[str, Any] = {}

    def own(self, shard: str) -> str:
        return str(self.folder / f"{shard}.db")

    def start(self, shard: str) -> None:
        notes = self.notes[shard]
        notes.catch_up()
        self.lives[shard] += 1
        told_ = (self.hub, self.own(shard), shard, self.lives[shard], str(notes.path), notes.unsure)
        self.processes[shard] = FORKS.Process(target=live, args=told_, daemon=True)
        self.processes[shard].start()

    def kill(self, shard: str) -> None:
        self.processes[shard].kill()
        self.processes[shard].join()

    def work(self, count: int) -> None:
        """Wait until every server has done so much more."""
        for notes in self.notes.values():
            notes.catch_up()
            notes.await_more(count)


def stop_at_once(server: PostgresServer) -> None:
    """As after a crash, and start again."""
    process = server.get_postmaster_info().process
    assert process is not None
    os.kill(process.pid, signal.SIGQUIT)
    deadline = time.monotonic() + 60
    while (server.pgdata / "postmaster.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    server.ensure_postgres_running()


def check_told(journal: Journal, notes: Notes, kind: Any) -> None:
    """Whatever a caller was told is in the journal, as it was told, and once."""
    decided, paid = {}, set()
    for event in journal.read(NAME):
        if event.kind == ROUND:
            found: Any = decode(event, kind)
            assert found.decision_id not in decided
            decided[found.decision_id] = f"{found.decision_id} {found.round} {found.action} {found.source}"
        elif event.kind == REWARD:
            reward = decode(event, Reward)
            assert reward.refused is None
            paid.add(reward.decision_id)
    assert notes.got.items() <= decided.items()
    assert notes.paid <= paid
    assert not notes.refused


def least_slack(journals: dict[str, Journal], kind: Any) -> float:
    """The least that the true means of all shards' rounds, in the order of their moments, lay above the floor."""
    rounds: list[tuple[float, str, int, Any]] = [
        (event.time, shard, event.number, decode(event, kind))
        for shard, journal in journals.items()
        for event in journal.read(NAME)
        if event.kind == ROUND
    ]
    slack = least = 0.0
    for *_, made in sorted(rounds, key=lambda entry: entry[:3]):
        if isinstance(made, PairRound):
            slack += made.share * MEANS[1] + (ALPHA - made.share) * MEANS[0]
            least = min(least, slack + RESERVE)
            continue
        means = rows_of(made.decision_id) @ THETA
        slack += float(means[made.action] - (1 - ALPHA) * means[0])
        least = min(least, slack)
    return least


def killed(
    server: PostgresServer, folder: Path, *, kills: int, crashes: int, seed: int, is_guard: bool = False
) -> None:
    rng, hub, kind = random.Random(seed), new_database(server), PairRound if is_guard else RowsRound
    with open_journal(hub) as place:
        begin_in(place, is_guard=is_guard)
    servers = Servers(hub, folder)
    for shard in SHARDS:
        servers.start(shard)
    fates = [*SHARDS, *rng.choices(SHARDS, k=kills - len(SHARDS)), *[""] * crashes]
    for fate in rng.sample(fates, k=len(fates)):
        servers.work(rng.randrange(5, 60))
        if fate:
            servers.kill(fate)
            servers.start(fate)
        else:
            stop_at_once(server)
    servers.work(60)
    for shard in SHARDS:
        servers.kill(shard)
        servers.notes[shard].catch_up()
    with open_journal(hub) as place:
        journals = {shard: open_journal(servers.own(shard)) for shard in SHARDS}
        for shard, journal in journals.items():  # whoever comes next hands in what was left
            shop = joined(place, journal, shard)
            assert shop.leases.renew()
            learned, leased, pot = at(shop, lambda it: (it.pot.learned(), it.leased, it.pot.totals()))
            assert max(np.ravel(leased) - np.maximum(0.0, np.ravel(pot))) <= 0.0
        report = audit_shards(place, NAME, journals)
        for shard, journal in journals.items():
            check_told(journal, servers.notes[shard], kind)
        least = least_slack(journals, kind)
        for journal in journals.values():
            journal.close()
    findings = [list(one.findings) for one in (report.hub, *report.shards.values())]
    assert findings == [[], [], [], []]
    assert report.is_clean
    assert least > -1e-9
    assert learned > 10 * kills
    print(f"{kills} kills and {crashes} crashes: {report.hub.tally.decisions} rounds, {learned} rewards learned")


def test_what_was_acknowledged_survives_kills_of_servers_and_of_the_database(
    server: PostgresServer, tmp_path: Path
) -> None:
    killed(server, tmp_path, kills=6, crashes=1, seed=5)


@pytest.mark.long
def test_what_was_acknowledged_survives_a_hundred_kills(server: PostgresServer, tmp_path: Path) -> None:
    killed(server, tmp_path, kills=100, crashes=5, seed=6)


@pytest.mark.long
def test_what_a_guard_has_acknowledged_survives_kills(server: PostgresServer, tmp_path: Path) -> None:
    killed(server, tmp_path, kills=30, crashes=3, seed=7, is_guard=True)
