"""The place where shards meet does not answer: they go on within their leases, then play the baseline, then recover."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import numpy as np
import psycopg
import pytest

import surefoot
from surefoot.audit import audit_shards
from surefoot.errors import JournalError
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import open_journal
from tests.journal.servers import PostgresServer, new_database, running_server
from tests.sharing.shards import SETTINGS, World

Outage = Literal["frozen", "cut"]


class Proxy:
    """Stands between callers and PostgreSQL: forwards, holds everything back, or cuts every connection."""

    def __init__(self, folder: Path, target: str) -> None:
        self._target, self._listening = target, socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen(64)
        self._flows, self._is_cut = threading.Event(), False
        self._flows.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def away(self, outage: Outage) -> None:
        self._flows.clear()
        if outage == "cut":
            self._is_cut = True
            for one in self._open:
                one.shutdown(socket.SHUT_RDWR)

    def back(self) -> None:
        self._is_cut = False
        self._flows.set()

    def close(self) -> None:
        self.away("cut")
        self._flows.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            if self._is_cut:
                caller.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            self._open += [caller, server]
            for one, other in ((caller, server), (server, caller)):
                threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                self._flows.wait()
                other.sendall(data)
        except OSError:
            pass
        finally:
            for end in (one, other):
                if end in self._open:
                    self._open.remove(end)
                end.close()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def hub(server: PostgresServer) -> Iterator[tuple[Proxy, str, str]]:
    """A proxy, the address through it, and the address past it."""
    with tempfile.TemporaryDirectory(prefix="px") as folder:
        direct = new_database(server)
        told = psycopg.conninfo.conninfo_to_dict(direct)
        target = Path(str(told["host"])) / f".s.PGSQL.{told.get('port') or 5432}"
        proxy = Proxy(Path(folder), str(target))
        user = urlsplit(direct).username or os.environ.get("USER", "postgres")
        through = f"postgresql:///{told['dbname']}?{urlencode({'host': folder, 'user': user})}"
        yield proxy, through, direct
        proxy.close()


def visit(world: World, shop: Experiment, sources: list[str], slowest: list[float]) -> None:
    began = time.perf_counter()
    answer = shop.decide(world.rows, baseline=world.baseline)
    slowest.append(time.perf_counter() - began)
    sources.append(answer.source)
    shop.reward(answer.decision_id, world.played(answer.action))


def outlast(hub: tuple[Proxy, str, str], outage: Outage, seconds: float) -> None:
    proxy, through, direct = hub
    world = World(np.random.default_rng(7))
    told: dict[str, Any] = {**SETTINGS, "constraint": {"name": "reserve", "granted": 6.0}}
    slowest = list[float]()
    with open_journal(through) as place, open_journal("memory:") as one, open_journal("memory:") as two:
        create_shared(place, "shop", surefoot.SafeLUCB(**told), mode="guarded", skew=5.0)
        journals = {"a": one, "b": two}
        shops: list[Any] = [
            Experiment.join(place, "shop", journal, shard=shard, every=40, seconds=0.2)
            for shard, journal in journals.items()
        ]
        proxy.away(outage)
        until, away = time.monotonic() + seconds, [list[str](), list[str]()]
        while time.monotonic() < until:
            for shop, sources in zip(shops, away, strict=True):
                visit(world, shop, sources, slowest)
            time.sleep(0.005)
        assert all(sources[:3] == ["learner"] * 3 for sources in away)
        for sources in away:  # the leases are spent, but for what rounds of the baseline have earned since
            assert sources[-100:].count("baseline") > 70
        assert world.least > -6.0
        if outage == "cut":
            assert all(isinstance(shop.leases.error, JournalError) for shop in shops)
        proxy.back()
        deadline, after = time.monotonic() + 30.0, [list[str](), list[str]()]
        while not all(set(sources[-10:]) == {"learner"} for sources in after):
            assert time.monotonic() < deadline
            for shop, sources in zip(shops, after, strict=True):
                visit(world, shop, sources, slowest)
            time.sleep(0.005)
        for shop in shops:
            while not shop.leases.renew():
                time.sleep(0.01)
        assert max(slowest) < 1.0  # no decision waited for the hub
        assert world.least > -6.0
        with open_journal(direct) as straight:
            assert audit_shards(straight, "shop", journals).is_clean


@pytest.mark.parametrize("outage", ["frozen", "cut"])
def test_shards_go_on_without_their_coordinator_and_recover(hub: tuple[Proxy, str, str], outage: Outage) -> None:
    outlast(hub, outage, 2.0)


@pytest.mark.long
@pytest.mark.parametrize("outage", ["frozen", "cut"])
def test_a_minute_without_the_coordinator(hub: tuple[Proxy, str, str], outage: Outage) -> None:
    outlast(hub, outage, 60.0)
