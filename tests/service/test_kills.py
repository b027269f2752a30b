"""A load of decisions and rewards from 64 connections while the server is killed: nothing is lost, nothing twice."""

import asyncio
import random
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from surefoot.audit import audit
from surefoot.client import AsyncClient, Client
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.journal.private_text import by_alias
from surefoot.rounds import Answer, events
from tests.service.servers import POLICY, Apart

CONNECTIONS = 64


def rows_of(decision_id: str) -> dict[str, list[float]]:
    rows = np.random.default_rng(zlib.crc32(decision_id.encode())).uniform(0.0, 0.7, size=(3, 2))
    return {name: row.tolist() for name, row in zip("abc", rows, strict=True)}


def reward_of(decision_id: str) -> float:
    return random.Random(decision_id).random()


async def visit(client: AsyncClient, prefix: str, visits: int, told: dict[str, Answer]) -> None:
    for n in range(visits):
        decision_id = f"{prefix}.{n}"
        decision = await client.decide("shop", rows_of(decision_id), decision_id=decision_id)
        assert not decision.is_fallback
        assert decision_id not in told
        told[decision_id] = decision
        receipt = await client.reward("shop", decision_id, reward_of(decision_id))
        assert receipt.is_accepted
        assert not receipt.is_queued


async def load(server: Apart, visits: int, kills: int) -> dict[str, Answer]:
    """The load, with kills at random moments while it lasts."""
    told: dict[str, Answer] = {}
    rng = random.Random(visits)
    async with AsyncClient(server.address, timeout=120) as client:
        visitors = [asyncio.create_task(visit(client, str(n), visits, told)) for n in range(CONNECTIONS)]
        for _ in range(kills):
            await asyncio.sleep(rng.uniform(0.3, 1.0))
            assert not all(visitor.done() for visitor in visitors), "the load ended before the last kill"
            server.kill()
            await asyncio.to_thread(server.start)
        await asyncio.gather(*visitors)
    return told


def check(database: Path, told: dict[str, Answer]) -> None:
    """What every caller was told is in the journal, once; and the audit finds nothing."""
    with open_journal(database) as journal:
        shop, rounds = Experiment.open(journal, "shop"), [e for e in journal.read("shop") if e.kind == events.ROUND]
        made = [shop.kind.opened(event, journal.view("shop")) for event in rounds]
        status = shop.status()
        report = audit(journal, "shop")
    assert len({entry.decision_id for entry in made}) == len(made)
    found = {entry.decision_id: (entry.round, entry.action, entry.source) for entry in made}
    assert found == {name: (entry.round, entry.action, entry.source) for name, entry in told.items()}
    assert status.rounds == status.rewards == status.learned == len(told)
    assert report.is_clean, list(report.findings)


@pytest.mark.parametrize(
    ("visits", "kills"), [(10, 2), pytest.param(200, 12, marks=pytest.mark.long)], ids=["a few", "many"]
)
def test_every_decision_is_acknowledged_once_though_the_server_is_killed(
    tmp_path: Path, visits: int, kills: int
) -> None:
    with Apart(tmp_path) as server:
        with Client(server.address, patience=120) as client:
            client.create_experiment("shop", POLICY, mode="guarded")
        told = asyncio.run(load(server, visits, kills))
        assert server.stop() == 0
    assert len(told) == CONNECTIONS * visits
    check(tmp_path / "shop.journal", told)


def test_a_stop_is_graceful_it_drains_and_takes_a_snapshot(tmp_path: Path) -> None:
    with Apart(tmp_path) as server:
        with Client(server.address, patience=120) as client:
            client.create_experiment("shop", POLICY, mode="guarded")

        async def visit_while_stopping() -> list[Answer]:
            async with AsyncClient(server.address, timeout=30) as client:
                asked = [
                    asyncio.create_task(client.decide("shop", rows_of(str(n)), decision_id=str(n))) for n in range(40)
                ]
                await asyncio.sleep(0.05)
                code = await asyncio.to_thread(server.stop)
                assert code == 0
                done = [task.result() for task in asked if task.done() and not task.exception()]
                for task in asked:
                    task.cancel()
                await asyncio.gather(*asked, return_exceptions=True)
                return done

        done = asyncio.run(visit_while_stopping())
    with open_journal(tmp_path / "shop.journal") as journal:
        assert journal.latest("shop", events.SNAPSHOT) is not None
        assert all(journal.find("shop", by_alias(decision.decision_id)) is not None for decision in done)
    assert '"event":"stopped"' in server.log.read_text()


def test_windows_that_were_open_when_the_server_died_close_after_its_restart(tmp_path: Path) -> None:
    with Apart(tmp_path) as server, Client(server.address, patience=120, timeout=60) as client:
        client.create_experiment("shop", POLICY, mode="guarded", reward_window=0.5, default_reward=0.25)
        client.decide("shop", rows_of("open"), decision_id="open")
        server.kill()
        server.start()
        for _ in range(400):
            if client.experiment("shop")["learned"]:
                break
            time.sleep(0.05)
        assert client.experiment("shop")["defaults"] == 1
