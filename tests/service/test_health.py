"""Readiness that is true: failed flushes, a full disk, damaged experiments and a clock that jumps."""

import json
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from surefoot.audit import audit
from surefoot.client import Client
from surefoot.journal import open_journal
from surefoot.service.health import HealthMonitor
from surefoot.service.settings import Settings
from surefoot.service.trusted_clock import TrustedClock
from tests.journal.failing_flush import failing_flush
from tests.journal.proxy import Proxy
from tests.journal.test_postgres import ADMITTING_ALL, REFUSING_ALL
from tests.journal.test_probe import Store
from tests.service.servers import ACTIONS, Apart, create, running

SHOP = "/v1/experiments/shop"
TEN_YEARS = 10 * 365.25 * 86400


def until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def apart(folder: Path, **options: Any) -> Iterator[tuple[Apart, httpx.Client]]:
    server = Apart(folder, **options)
    server.start()
    try:
        with httpx.Client(base_url=server.address, timeout=30, trust_env=False) as client:
            create(client)
            yield server, client
    finally:
        server.kill()


def decide(client: httpx.Client, decision_id: str) -> int:
    return client.post(f"{SHOP}/decisions", json={"actions": ACTIONS, "decision_id": decision_id}).status_code


def status(client: httpx.Client) -> tuple[int, str]:
    found = client.get("/readyz")
    return found.status_code, found.json()["status"]


def gauge(client: httpx.Client, name: str) -> float:
    line = next(line for line in client.get("/metrics").text.splitlines() if line.startswith(f"{name} "))
    return float(line.split()[-1])


def test_a_failed_flush_is_not_ready_and_heals_by_itself(tmp_path: Path) -> None:
    environment, switch = failing_flush(tmp_path)
    with apart(tmp_path, environment=environment) as (_, client):
        assert decide(client, "before") == 201
        assert status(client) == (200, "ready")
        switch.touch()
        assert [decide(client, f"during-{n}") for n in range(3)] == [503] * 3
        until(lambda: status(client) == (503, "unwritable"))
        assert "takes no events now" in client.get("/readyz").json()["detail"]
        assert gauge(client, "surefoot_ready") == 0.0
        assert gauge(client, "surefoot_journal_failed_writes_total") > 0
        assert client.get("/livez").status_code == 200
        switch.unlink()
        until(lambda: status(client) == (200, "ready"))
        assert decide(client, "after") == 201
        assert {decide(client, f"during-{n}") for n in range(3)} <= {200, 201}
        assert decide(client, "before") == 200
        assert client.get(SHOP).json()["rounds"] == 5
    with open_journal(tmp_path / "shop.journal") as journal:
        assert audit(journal, "shop").is_clean


def test_a_full_disk_is_not_ready_until_there_is_room(tmp_path: Path) -> None:
    with apart(tmp_path) as (server, client):
        assert server.process is not None
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1000, most))
        assert decide(client, "during") == 503
        until(lambda: status(client) == (503, "unwritable"))
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
        until(lambda: status(client) == (200, "ready"))
        assert decide(client, "during") in (200, 201)


def test_what_postgresql_refuses_of_events_alone_is_not_ready_and_heals_and_the_log_stays_json(
    tmp_path: Path, url: str
) -> None:
    with apart(tmp_path, database=url) as (server, client), psycopg.connect(url, autocommit=True) as connection:
        assert decide(client, "before") == 201
        connection.execute(REFUSING_ALL)
        assert [decide(client, f"during-{n}") for n in range(3)] == [503] * 3
        until(lambda: status(client) == (503, "unwritable"))
        connection.execute(ADMITTING_ALL)
        until(lambda: status(client) == (200, "ready"))
        assert [decide(client, f"after-{n}") for n in range(20)] == [201] * 20
        assert client.get(SHOP).json()["rounds"] == 21
        assert server.stop() == 0
        lines = server.log.read_text().splitlines()
    assert {"error", "info"} <= {json.loads(line)["level"] for line in lines}
    assert not [line for line in lines if "user=" in line]


def test_a_server_that_is_not_ready_says_nothing_to_strangers(tmp_path: Path) -> None:
    environment, switch = failing_flush(tmp_path)
    with apart(tmp_path, environment=environment) as (_, client):
        switch.touch()
        until(lambda: status(client) == (503, "unwritable"))
        assert str(tmp_path) not in client.get("/readyz").text


def test_a_write_that_does_not_come_back_is_not_ready_either() -> None:
    now = [100.0]
    monitor = HealthMonitor(TrustedClock(10.0), now=lambda: now[0])
    monitor.is_open = True
    with open_journal("memory:") as journal:
        monitor.probe(journal)
        assert monitor.read().status == "ready"
        now[0] += 16.0
        assert (monitor.read().status, monitor.read().seconds_since_write) == ("unwritable", 16.0)
        monitor.probe(journal)
        assert monitor.read().status == "ready"


def damage(path: Path, statement: str) -> None:
    """A journal with an experiment that is well, and one whose second event somebody has edited."""
    settings = Settings(database=str(path), snapshot_every=10**6)
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
        for name in ("other", "shop"):
            create(client, name)
            body = {"actions": ACTIONS, "decision_id": "a"}
            assert client.post(f"/v1/experiments/{name}/decisions", json=body).status_code == 201
    with sqlite3.connect(path) as connection:
        number = connection.execute("SELECT id FROM experiments WHERE name = 'shop'").fetchone()[0]
        assert connection.execute(f"{statement} AND experiment = {number}").rowcount == 1
        # Without them, opening goes through the events.
        connection.execute("DELETE FROM attachments")
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = CAST(replace(payload, '0.6', '0.7') AS BLOB) WHERE number = 2",
        "UPDATE events SET kind = 'unheard of' WHERE number = 2",
    ],
)
def test_one_damaged_experiment_does_not_blind_the_rest(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "shop.journal"
    damage(path, statement)
    with running(Settings(database=str(path))) as address:
        with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
            found = client.get("/v1/experiments")
            assert found.status_code == 200
            assert [one["name"] for one in found.json()["experiments"]] == ["other"]
            (damaged,) = found.json()["damaged"]
            assert damaged["name"] == "shop"
            assert "vent 2" in damaged["reason"]
            body = {"actions": ACTIONS, "decision_id": "b"}
            assert client.post("/v1/experiments/other/decisions", json=body).status_code == 201
            refused = client.post(f"{SHOP}/decisions", json=body)
            assert (refused.status_code, refused.json()["type"]) == (503, "/problems/damaged-experiment")
            until(lambda: client.get("/readyz").json()["damaged"] == 1)
            assert client.get("/readyz").status_code == 200
            until(lambda: 'surefoot_experiment_rounds{experiment="other"} 2.0' in client.get("/metrics").text)
            assert 'surefoot_experiment_is_damaged{experiment="shop"} 1.0' in client.get("/metrics").text
        with Client(address, timeout=0.5) as shop:
            # Somebody who decides there plays the baseline, and is not stopped by an error.
            assert shop.decide("shop", {"blue": [0.6, 0.1], "red": [0.9, 0.3]}).is_fallback
            shop.close(0.0)


def test_the_reason_of_a_damage_names_no_folder_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "shop.journal"
    damage(path, "UPDATE events SET kind = CAST(x'ff' AS TEXT) WHERE number = 2")
    with (
        running(Settings(database=str(path))) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as client,
    ):
        found = client.get("/v1/experiments")
        assert "shop.journal: " in found.json()["damaged"][0]["reason"]
        assert str(tmp_path) not in found.text


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_readiness_counts_an_experiment_that_is_damaged_wherever_it_stands(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """The second of two: one that refuses events while the server runs, and then one with an edited event."""
    with ExitStack() as stack:
        path = str(tmp_path / "shop.db") if kind == "sqlite" else str(request.getfixturevalue("url"))
        store = Store(kind, path)
        store.journal.close()  # three experiments that no server can read
        address = stack.enter_context(running(Settings(database=path)))
        with httpx.Client(base_url=address, timeout=30, trust_env=False) as client:
            create(client, "well")
            create(client, "shop")
            assert decide(client, "a") == 201
            until(lambda: client.get("/readyz").json()["damaged"] == 3)
            store.refuse("shop")
            until(lambda: client.get("/readyz").json()["damaged"] == 4)
            assert status(client) == (200, "ready")
            assert 'surefoot_experiment_is_damaged{experiment="shop"} 1.0' in client.get("/metrics").text
            body = {"actions": ACTIONS, "decision_id": "b"}
            assert client.post("/v1/experiments/well/decisions", json=body).status_code == 201
            assert decide(client, "b") == 503
            store.admit()
            until(lambda: client.get("/readyz").json()["damaged"] == 3)
            assert decide(client, "b") == 201


def test_metrics_are_served_while_the_database_hangs(url: str) -> None:
    proxy = Proxy(url)
    with (
        closing(proxy),
        running(Settings(database=proxy.url)) as address,
        httpx.Client(base_url=address, timeout=30, trust_env=False) as client,
    ):
        for name in ("shop", "other", "third"):
            create(client, name)
        assert decide(client, "a") == 201
        until(lambda: 'surefoot_experiment_rounds{experiment="shop"} 1.0' in client.get("/metrics").text)
        proxy.is_silent = True
        with ThreadPoolExecutor(40) as callers:  # more than the server has threads for its journal
            waiting = [callers.submit(client.get, SHOP, timeout=120) for _ in range(40)]
            time.sleep(0.5)
            page = client.get("/metrics", timeout=3.0).text
            assert 'surefoot_experiment_rounds{experiment="shop"} 1.0' in page
            assert not any(one.done() for one in waiting)
            proxy.is_silent = False


class Clocks:
    """A system's clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.wrong_by = 0.0

    def wall(self) -> float:
        return time.time() + self.wrong_by

    def trusted(self) -> TrustedClock:
        return TrustedClock(10.0, wall=self.wall)


def test_a_clock_that_jumps_closes_no_window_and_stamps_nothing(tmp_path: Path) -> None:
    clocks, settings = Clocks(), Settings(database=str(tmp_path / "shop.journal"), window_seconds=0.05)
    running_ = running(settings, clock=clocks.trusted())
    with running_ as address, httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
        create(client, reward_window=3600.0, default_reward=0.25)
        assert decide(client, "a") == 201
        clocks.wrong_by = TEN_YEARS
        assert decide(client, "b") == 201
        until(lambda: not client.get("/readyz").json()["is_clock_trusted"])
        assert client.get("/readyz").json()["clock_offset"] == pytest.approx(TEN_YEARS, abs=5.0)
        assert gauge(client, "surefoot_clock_trusted") == 0.0
        time.sleep(0.5)
        assert client.get(SHOP).json()["defaults"] == 0
        assert client.post(f"{SHOP}/decisions/a/reward", json={"value": 0.5}).status_code == 200
        assert client.get(SHOP).json()["time"] == pytest.approx(time.time(), abs=30.0)
        clocks.wrong_by = 0.0
        until(lambda: client.get("/readyz").json()["is_clock_trusted"])
        until(lambda: gauge(client, "surefoot_clock_trusted") == 1.0)
        assert decide(client, "c") == 201
    with open_journal(tmp_path / "shop.journal") as journal:
        assert all(abs(event.time - time.time()) < 120.0 for event in journal.read("shop"))


def test_a_start_with_a_clock_that_is_a_day_ahead_is_noticed_on_sqlite(tmp_path: Path) -> None:
    settings = Settings(database=str(tmp_path / "shop.journal"))

    def start(name: str) -> tuple[bool, int]:
        """Whether the clock is believed, and by how many days it is off for the server."""
        with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
            create(client, name)
            found = client.get("/readyz").json()
            assert gauge(client, "surefoot_clock_trusted") == found["is_clock_trusted"]
        with open_journal(settings.database, read_only=True) as journal:
            return found["is_clock_trusted"], round((next(journal.read(name)).time - time.time()) / 86_400.0)

    def set_forward(seconds: float) -> None:
        """As if the system's clock had been set while no server ran."""
        with closing(sqlite3.connect(settings.database)) as file, file:
            assert file.execute("UPDATE clock SET ahead = ahead - ?", (seconds,)).rowcount == 1

    assert start("right") == (True, 0)
    set_forward(86_400.0)
    assert start("ahead") == (False, -1)
    set_forward(-86_400.0)
    assert start("set-right") == (True, 0)


def test_time_goes_on_at_its_pace_while_the_clock_is_wrong() -> None:
    wall, steady = [1000.0], [5.0]
    clock = TrustedClock(10.0, wall=lambda: wall[0], steady=lambda: steady[0])
    wall[0], steady[0] = 1007.0, 8.0  # corrected by four seconds
    assert (clock(), clock.is_off) == (1007.0, False)
    clock.follow()
    wall[0], steady[0] = 1020.0, 12.0  # and by nine more
    assert (clock(), clock.is_off) == (1020.0, False)
    clock.follow()
    wall[0], steady[0] = 5.0, 20.0
    assert (clock(), clock.is_off) == (1028.0, True)
    clock.follow()
    wall[0], steady[0] = 9e9, 30.0
    assert (clock(), clock.is_off) == (1038.0, True)
    wall[0] = 1040.0
    assert (clock(), clock.is_off) == (1040.0, False)


def test_a_server_that_starts_with_a_wrong_clock_goes_by_the_journals() -> None:
    class Shared:
        def __init__(self) -> None:
            self.now = 2000.0

        def probe(self) -> dict[str, str]:
            return {}

        def clock(self) -> float:
            return self.now

    wall, steady, shared = [9e9], [5.0], Shared()
    clock = TrustedClock(10.0, wall=lambda: wall[0], steady=lambda: steady[0])
    monitor = HealthMonitor(clock)
    monitor.probe(shared)  # type: ignore[arg-type]
    assert (clock(), monitor.is_clock_trusted) == (2000.0, False)
    wall[0], steady[0], shared.now = 2010.0, 15.0, 2010.0
    monitor.probe(shared)  # type: ignore[arg-type]
    assert (clock(), monitor.is_clock_trusted) == (2010.0, True)
    shared.now = 9e9  # the server's clock has jumped: time goes on all the same
    monitor.probe(shared)  # type: ignore[arg-type]
    assert (clock(), monitor.is_clock_trusted) == (2010.0, False)
