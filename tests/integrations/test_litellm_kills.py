"""Callers of real proxies that are killed in the middle of their requests: no decision is lost or drawn again.

One proxy with a journal of its own; three that write one journal on PostgreSQL; three with a lease each of one promise,
which meet on PostgreSQL.
"""

import asyncio
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import surefoot
from surefoot.audit import audit, audit_shards
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import open_journal
from surefoot.rounds import decode, events
from tests.integrations.model_server import model_server
from tests.integrations.proxies import FORKS, KEY, configuration, free_port, serve
from tests.journal.servers import PostgresServer, new_database, running_server

CALLERS, UNITS = 8, 40
NAMES = ("north", "south", "west")
EARNS = {"big": 0.6, "small": 0.2}  # on average: the small model must be kept out
ALPHA, RESERVE = 0.2, 3.0
SESSIONS = {
    "mode": "guarded", "goal": "save", "delta": 0.05, "unit_window": 100_000,
    "metrics": {"quality": {"kind": "floor", "low": 0, "high": 1, "alpha": 0.4}},
}  # fmt: skip


class Callers:
    """Sessions that ask again, with the same id, until they are answered; and who answered.

    Each caller has a proxy; those who may roam ask any of them, again as well.
    """

    def __init__(self, ports: list[int], *, may_roam: bool) -> None:
        self.urls, self.may_roam = [f"http://127.0.0.1:{port}" for port in ports], may_roam
        self.answers, self.units, self.again = dict[str, str](), dict[str, str](), 0
        self.is_over = False

    async def ask(self, http: httpx.AsyncClient, caller: int) -> None:
        for n in itertools.count():
            if self.is_over:
                return
            decision_id = f"{caller}.{n}"
            unit = self.units[decision_id] = f"session-{random.Random(decision_id).randrange(UNITS)}"
            metadata = {"decision_id": decision_id, "session_id": unit}
            body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "metadata": metadata}
            response = await self.post(http, caller, "/v1/chat/completions", body)
            assert response.headers["x-surefoot-decision-id"] == decision_id
            answer = response.json()["choices"][0]["message"]["content"]
            assert self.answers.setdefault(decision_id, answer) == answer
            value = 0.01 if self.may_roam else float(random.Random(decision_id).random() < EARNS[answer])
            await self.post(http, caller, "/surefoot/rewards", {"decision_id": decision_id, "value": value})

    async def post(self, http: httpx.AsyncClient, caller: int, path: str, body: Any) -> httpx.Response:
        while True:
            place = random.randrange(len(self.urls)) if self.may_roam else caller % len(self.urls)
            try:
                response = await http.post(self.urls[place] + path, json=body)
            except httpx.HTTPError:  # killed, or not yet there again
                self.again += 1
                await asyncio.sleep(0.02)
            else:
                assert response.status_code == 200, response.text
                return response


async def kills(folders: list[Path], times: int, seed: int, *, may_roam: bool) -> Callers:
    rng, ports = random.Random(seed), [free_port() for _ in folders]
    callers = Callers(ports, may_roam=may_roam)
    headers = {"Authorization": f"Bearer {KEY}"}

    def started(place: int) -> Any:
        proxy = FORKS.Process(target=serve, args=(str(folders[place]), ports[place]), daemon=True)
        proxy.start()
        return proxy

    proxies = [started(place) for place in range(len(folders))]
    async with httpx.AsyncClient(headers=headers, timeout=600) as http:
        asking = [asyncio.create_task(callers.ask(http, caller)) for caller in range(CALLERS)]
        for life in range(times + 1):
            goal = len(callers.answers) + 1 + rng.randrange(3 * CALLERS)
            while len(callers.answers) < goal:
                for proxy, folder in zip(proxies, folders, strict=True):
                    assert proxy.is_alive(), (folder / "proxy.log").read_text()[-3000:]
                for caller in asking:
                    if caller.done():
                        caller.result()
                await asyncio.sleep(0.005)
            await asyncio.sleep(rng.uniform(0.0, 0.02))
            if life == times:
                callers.is_over = True
                await asyncio.gather(*asking)
                break
            place = rng.randrange(len(proxies))
            proxies[place].kill()
            await asyncio.to_thread(proxies[place].join)
            proxies[place] = started(place)
    for proxy in proxies:
        proxy.kill()
        proxy.join()
    return callers


def run(folder: Path, times: int, settings: dict[str, Any], *, seed: int = 1, may_roam: bool = True) -> Callers:
    """A proxy for each of the settings, in a folder of its own."""
    for name in settings:
        (folder / name).mkdir()
    with model_server("big") as big, model_server("small") as small:
        for name, each in settings.items():
            config = configuration(big.url, small.url, {"deadline": 600, **each})
            (folder / name / "config.yaml").write_text(config)
        callers = asyncio.run(kills([folder / name for name in settings], times, seed, may_roam=may_roam))
    assert callers.again >= times
    print(f"\n{len(callers.answers):,} decisions, {times} kills")
    return callers


def check(address: Path | str, callers: Callers) -> None:
    """Each answer is in the journal once, as it was given; a session has one side in it, and one for its callers."""
    decided, sides = dict[str, str](), dict[str, set[str]]()
    with open_journal(address) as journal:
        for event in journal.view("chat").read():
            if event.kind in (events.ROUND, events.VISIT):
                record = decode(event, events.PairRound)
                assert record.decision_id not in decided
                decided[record.decision_id] = record.action.removeprefix("openai/")
                sides.setdefault(callers.units[record.decision_id], set()).add(decided[record.decision_id])
            assert event.kind != events.VOIDED
        report = audit(journal, "chat")
    assert report.is_clean, report.findings
    assert decided == callers.answers
    assert all(len(side) == 1 for side in sides.values()), sides
    assert {side for (side,) in sides.values()} == {"big", "small"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.mark.parametrize("times", [5, pytest.param(300, marks=pytest.mark.long)])
def test_a_killed_proxy_loses_no_decision_and_no_session_sees_both_models(tmp_path: Path, times: int) -> None:
    callers = run(tmp_path, times, {"proxy": {"journal": "chat.journal", **SESSIONS}})
    check(tmp_path / "proxy" / "chat.journal", callers)


@pytest.mark.parametrize("times", [2, pytest.param(100, marks=pytest.mark.long)])
def test_no_session_sees_both_models_over_three_proxies_on_one_postgresql(
    tmp_path: Path, server: PostgresServer, times: int
) -> None:
    address = new_database(server)
    callers = run(tmp_path, times, {name: {"journal": address, **SESSIONS} for name in NAMES})
    check(address, callers)


@pytest.mark.parametrize(
    ("times", "seed"), [(2, 0), *(pytest.param(100, seed, marks=pytest.mark.long) for seed in range(1, 6))]
)
def test_three_proxies_with_leases_keep_one_floor_and_lose_no_decision(
    tmp_path: Path, server: PostgresServer, times: int, seed: int
) -> None:
    address = new_database(server)
    with open_journal(address) as hub:
        guard = surefoot.Guard(alpha=ALPHA, delta=0.001, reserve=RESERVE)
        create_shared(hub, "chat", guard, mode="guarded", skew=5.0)
    shards = {name: {"journal": "own.db", "hub": address, "shard": name} for name in NAMES}
    callers = run(tmp_path, times, shards, seed=seed, may_roam=False)
    rounds, decided = list[tuple[float, float]](), dict[str, str]()
    with open_journal(address) as hub:
        journals = {name: open_journal(tmp_path / name / "own.db") for name in NAMES}
        for name, journal in journals.items():
            leases = Experiment.join(hub, "chat", journal, shard=name).leases
            assert leases is not None
            assert leases.renew()  # hands in what a killed one has left
            for event in journal.read("chat"):
                if event.kind == events.ROUND:
                    record = decode(event, events.PairRound)
                    assert record.decision_id not in decided
                    decided[record.decision_id] = record.action.removeprefix("openai/")
                    rounds.append((event.time, record.share))
        report = audit_shards(hub, "chat", journals)
        for journal in journals.values():
            journal.close()
    assert report.is_clean, [one.findings for one in (report.hub, *report.shards.values())]
    assert report.hub.tally.decisions == len(decided)
    assert decided == callers.answers
    assert "small" in decided.values()
    gain, slack = EARNS["small"] - EARNS["big"], RESERVE
    for _, share in sorted(rounds):  # true means, coins averaged
        slack += share * gain + ALPHA * EARNS["big"]
        assert slack > 0.0
