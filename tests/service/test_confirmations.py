"""Clients say what they played with their next call, so that what a dead one leaves behind counts at its worst."""

import asyncio
import time
from typing import Any

import httpx

from surefoot.audit import audit
from surefoot.client import AsyncClient, Client
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from tests.service.servers import POLICY, running

ROWS = {"blue": [0.6, 0.1], "red": [0.62, 0.12]}
FREE = {**POLICY, "alpha": 0.5}  # the learner plays soon, for the baseline is nearly as good


def kinds(database: str) -> list[str]:
    with open_journal(database, read_only=True) as journal:
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
        return [event.kind for event in journal.read("shop")]


def first_of_learner(client: Client) -> Any:
    for _ in range(500):
        decision = client.decide("shop", ROWS)
        if decision.source == "learner":
            return decision
        client.reward("shop", decision.decision_id, 0.5)
    raise AssertionError("the learner never played")


def test_a_client_says_with_its_next_question_what_it_played(database: str) -> None:
    with running(Settings(database=database)) as address, Client(address, timeout=60) as client:
        client.create_experiment("shop", FREE, mode="guarded", confirm_within=3600)
        decision = first_of_learner(client)
        assert decision.confirm_within == 3600.0
        assert len(client.played) == 1
        client.decide("shop", ROWS)
        assert kinds(database).count("confirmed") == 1
        before = kinds(database).count("confirmed")
        last = first_of_learner(client)
        client.reward("shop", last.decision_id, 0.5)
        assert last.decision_id not in client.played.of("shop"), "a reward says so, too"
        assert kinds(database).count("confirmed") >= before
        first_of_learner(client)
    assert len(client.played) == 0, "what is left is said when the client is closed"
    assert kinds(database)[-1] in ("confirmed", "snapshot")


def test_what_a_client_takes_with_it_counts_at_its_worst_until_somebody_knows(database: str) -> None:
    settings = Settings(database=database, window_seconds=0.05)
    with running(settings) as address, Client(address, timeout=60) as operator:
        operator.create_experiment("shop", FREE, mode="guarded", confirm_within=0.3)
        dead = Client(address, timeout=60)
        lost = first_of_learner(dead)
        dead.close(0.0)
        deadline = time.monotonic() + 60
        while operator.experiment("shop")["unconfirmed"] != 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        told = operator.experiment("shop")
        assert (told["unconfirmed"], told["debt"] > 0.9) == (1, True)
        answer = httpx.post(
            f"{address}/v1/experiments/shop/confirmations", json={"decision_ids": [lost.decision_id, "nobody"]}
        ).json()
        assert answer["confirmed"] == 1
        assert operator.experiment("shop")["debt"] == 0.0
    found = kinds(database)
    assert (found.count("overdue"), found.count("confirmed")) == (1, 1)


def test_the_asynchronous_client_says_so_too(database: str) -> None:
    async def play(address: str) -> int:
        async with AsyncClient(address, timeout=60) as client:
            for _ in range(500):
                decision = await client.decide("shop", ROWS)
                if decision.source == "learner":
                    break
                await client.reward("shop", decision.decision_id, 0.5)
            said = len(client.played)
            await client.flush()
            return said + 10 * len(client.played)

    with running(Settings(database=database)) as address, Client(address, timeout=60) as operator:
        operator.create_experiment("shop", FREE, mode="guarded", confirm_within=3600, sealed=False)
        assert asyncio.run(play(address)) == 1
    assert kinds(database).count("confirmed") == 1


def test_nobody_is_asked_where_nothing_was_declared(database: str) -> None:
    with running(Settings(database=database)) as address, Client(address, timeout=60) as client:
        client.create_experiment("shop", FREE, mode="guarded")
        assert first_of_learner(client).confirm_within is None
        assert len(client.played) == 0
